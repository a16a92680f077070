"""What answers of object stores mean, on a real HTTP server that says what it is told; and where listings resume."""

import itertools
import pickle
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import obstore
import obstore.store
import pytest

from logkeep.embedded.ports import free_ports
from logkeep.errors import (
    AlreadyExists,
    ConfigError,
    LogkeepError,
    ObjectMissing,
    StoreBusy,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreLocationMissing,
    StoreUnreachable,
    VersionMismatch,
)
from logkeep.store.access import open_store
from logkeep.store.address import parse_address
from logkeep.store.base import ObjectInfo, ObjectWriter, Store
from logkeep.store.buckets.aws_files import file_credentials
from logkeep.store.buckets.store import ObjectStore, resume_point
from tests.support.servers.s3 import ENVIRONMENT


class _Answer:
    """What the server says to everything, and how often it was asked."""

    def __init__(self, status: int, code: str) -> None:
        self.status = status
        self.body = f"<Error><Code>{code}</Code><Message>m</Message></Error>".encode() if code else b""
        self.requests = 0


@contextmanager
def _server(answer: _Answer) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            answer.requests += 1
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer  # noqa: N815  # names that http.server asks for

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name in http.server
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def _store(endpoint: str) -> Store:
    return open_store(f"s3://bucket/p?endpoint={endpoint}&region=us-east-1")


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    (
        (403, "AccessDenied", StoreDenied),
        (403, "RequestTimeTooSkewed", StoreDenied),
        (401, "", StoreDenied),
        (404, "NoSuchBucket", StoreLocationMissing),
        (429, "", StoreBusy),
        (503, "SlowDown", StoreBusy),
        (409, "ConditionalRequestConflict", StoreBusy),
        (500, "InternalError", StoreUnreachable),
        (502, "", StoreUnreachable),
        (507, "", StoreFull),
        (400, "MalformedXML", StoreError),
    ),
)
def test_every_refusal_has_its_error(status: int, code: str, kind: type[LogkeepError]) -> None:
    with _server(_Answer(status, code)) as endpoint:
        store = _store(endpoint)
        for call in (
            lambda: store.put_new("a", b""),
            lambda: store.replace("a", b"", '"v"'),
            lambda: store.get("a", 1),
            lambda: store.get_range("a", 0, 1),
            lambda: list(store.list("")),
            lambda: store.delete("a"),
        ):
            with pytest.raises(kind) as caught:
                call()
            assert type(caught.value) is kind
            assert "Error performing" not in f"{caught.value} {caught.value.remedy}"


def test_a_conditional_put_is_sent_once() -> None:
    answer = _Answer(503, "SlowDown")
    with _server(answer) as endpoint:
        store = _store(endpoint)
        with pytest.raises(StoreBusy):
            store.put_new("a", b"")
        with pytest.raises(StoreBusy):
            store.replace("a", b"", '"v"')
    assert answer.requests == 2


def test_taken_stale_and_missing() -> None:
    with _server(_Answer(412, "PreconditionFailed")) as endpoint:
        with pytest.raises(AlreadyExists):
            _store(endpoint).put_new("a", b"")
        with pytest.raises(VersionMismatch):  # also what HEAD says here
            _store(endpoint).replace("a", b"", '"v"')
    with _server(_Answer(404, "NoSuchKey")) as endpoint:
        store = _store(endpoint)
        store.delete("a")
        with pytest.raises(ObjectMissing):
            store.get("a", 1)
        with pytest.raises(ObjectMissing):
            store.replace("a", b"", '"v"')


def test_nobody_there() -> None:
    (port,) = free_ports(1)
    store = _store(f"http://127.0.0.1:{port}")
    for call in (lambda: store.put_new("a", b""), lambda: store.head("a"), lambda: list(store.list(""))):
        with pytest.raises(StoreUnreachable):
            call()


def _fill(writer: ObjectWriter) -> None:
    for _ in range(20):
        writer.write(bytes(4 << 20))
    writer.close()


def test_a_failing_stream_can_be_aborted() -> None:
    with _server(_Answer(403, "AccessDenied")) as endpoint:
        writer = _store(endpoint).open_new("a")
        with pytest.raises(StoreDenied):
            _fill(writer)
        writer.abort()
        with pytest.raises(StoreError):
            writer.close()


def test_a_store_that_cannot_be_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(ConfigError):
        open_store("az://container/p")


def test_is_picklable_by_its_address_and_tells_no_secret() -> None:
    store = open_store("s3://bucket/p?region=us-east-1")
    data = pickle.dumps(store)
    assert ENVIRONMENT["AWS_SECRET_ACCESS_KEY"].encode() not in data
    copy = pickle.loads(data)  # noqa: S301  # our own bytes
    assert isinstance(copy, ObjectStore)
    assert copy.url == store.url


class TestCredentialsFile:
    def test_static_keys_of_the_profile(self, tmp_path: Path) -> None:
        path = tmp_path / "credentials"
        path.write_text("[default]\naws_access_key_id = A\naws_secret_access_key = B\n[other]\naws_access_key_id = C\n")
        environment = {"AWS_SHARED_CREDENTIALS_FILE": str(path)}
        assert file_credentials(environment) == {"access_key_id": "A", "secret_access_key": "B"}
        assert file_credentials({**environment, "AWS_PROFILE": "other"}) == {"access_key_id": "C"}
        assert file_credentials({**environment, "AWS_PROFILE": "nobody"}) == {}

    def test_the_environment_goes_first(self, tmp_path: Path) -> None:
        assert file_credentials({"AWS_ACCESS_KEY_ID": "x", "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path)}) == {}

    def test_a_broken_file_is_not_quoted(self, tmp_path: Path) -> None:
        path = tmp_path / "credentials"
        path.write_text("CANARY-9f2c\n")
        with pytest.raises(ConfigError) as caught:
            file_credentials({"AWS_SHARED_CREDENTIALS_FILE": str(path)})
        assert "CANARY" not in f"{caught.value}{caught.value.remedy}"


class _Counting(ObjectStore):
    """A store whose listing is one of obstore's own memory, as of a custom endpoint; counts what it reads of it."""

    read = 0

    def _info(self, meta: Any) -> ObjectInfo:
        self.read += 1
        return super()._info(meta)


def test_some_objects_of_a_server_that_may_not_list_in_order_need_no_whole_listing() -> None:
    store = _Counting(parse_address("s3://bucket/p?endpoint=http://127.0.0.1:1"))
    memory = obstore.store.MemoryStore()
    store.__dict__["_client"] = memory
    for number in range(3_000):
        obstore.put(memory, f"a/{number:05d}", b"x")
    assert len(store.some("a/", 10)) == 10
    assert store.read < 1_000
    assert len(store.some("a/", 5_000)) == len([*store.list("a/")]) == 3_000


def _walk_order(name: str) -> tuple[str, ...]:
    return tuple(name.split("/"))


@pytest.mark.parametrize("seed", range(30))
def test_no_server_leaves_anything_out_from_a_resume_point(seed: int) -> None:
    """Against models of both kinds of server: by whole names, and by directories (which skips the point's own)."""
    chance = random.Random(seed)
    words = {"".join(letters) for n in (1, 2, 3) for letters in itertools.product("a-.0", repeat=n)}
    pieces = sorted(words - {".", ".."})
    names = {"/".join(chance.choices(pieces, k=chance.randint(1, 3))) for _ in range(300)}
    prefix = chance.choice(["", f"{chance.choice(pieces)}/"])
    below = [prefix + name for name in names]
    for after in chance.sample(below, 100):
        point = resume_point(prefix, after) or ""
        wanted = {name for name in below if name > after}
        by_name = {name for name in below if name > point}
        by_directory = {
            name for name in below if _walk_order(name) > _walk_order(point) and not name.startswith(f"{point}/")
        }
        assert wanted <= by_name
        assert not point or wanted <= by_directory
