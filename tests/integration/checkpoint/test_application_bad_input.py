"""Bad input to backups of an application, through the real verbs and HTTP routes: code, words, and nothing is lost."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient

from logkeep.application.control import ControlServer
from logkeep.application.data_directory import DirectoryLock, open_directory
from logkeep.application.http.operations import ServedApplication
from logkeep.application.http.routes import http_application
from logkeep.application.runtime import Runtime
from logkeep.application.worker_factory import RuntimeOptions
from logkeep.model.time import utc_now
from logkeep.repository.access import open_repository
from logkeep.store.local.store import LocalStore
from tests.support.cli.in_process import Here
from tests.support.running_application import bank, new_repository
from tests.support.scripted_application import ScriptedApplication, VirtualClock, World


class _Bank(NamedTuple):
    """It runs and archives to `repo`; backup 7 is completed."""

    here: Here
    data: Path
    runtime: Runtime

    def app(self, verb: str, *arguments: str, code: int = 0) -> dict[str, Any]:
        words = ("app", verb, *(word.format(data=self.data, root=self.here.root) for word in arguments))
        return self.here.error(*words, code=code) if code else self.here.json(*words)


@contextmanager
def _running(data: Path, repository: Path, partitions: int = 2) -> Iterator[Runtime]:
    data.mkdir(parents=True)
    lock = DirectoryLock(data)
    directory = open_directory(data, "bank", partitions, utc_now())
    place = open_repository(LocalStore(repository)).place("bank")
    runtime = Runtime(bank(), directory, RuntimeOptions(open_place=lambda: place, source=place.source))
    runtime.start()
    server = ControlServer(runtime, data)
    try:
        yield runtime
    finally:
        server.close()
        runtime.stop()
        lock.release()


@pytest.fixture(scope="module")
def bank_at_work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Bank]:
    root = tmp_path_factory.mktemp("bank")
    new_repository(root / "repo")
    new_repository(root / "other-repo")
    (root / "full").mkdir()
    (root / "full" / "file").write_text("something")
    with _running(root / "data", root / "repo") as runtime:
        made = _Bank(Here(root), root / "data", runtime)
        runtime.submit("move", "a", {"amount": 1, "to": "b"})
        assert made.app("backup", "bank", "--data", "{data}", "--id", "7")["state"] == "completed"
        yield made


DATA = ("bank", "--data", "{data}")
VERBS: dict[str, tuple[int, str, tuple[str, ...]]] = {
    "the id was used": (40, "not larger than the last one, 7", ("backup", *DATA, "--id", "7")),
    "an older id": (40, "not larger than the last one, 7", ("backup", *DATA, "--id", "3")),
    "the id is 0": (40, "0", ("backup", *DATA, "--id", "0")),
    "the id is negative": (40, "-8", ("backup", *DATA, "--id", "-8")),
    "the id is text": (40, "text", ("backup", *DATA, "--id", "text")),
    "the id is too large": (40, "9223372036854775808", ("backup", *DATA, "--id", "9223372036854775808")),
    "a marker with a used id": (40, "not larger than the last one, 7", ("checkpoint", *DATA, "--id", "7")),
    "no time": (40, "no time is left", ("backup", *DATA, "--id", "8", "--timeout", "0s")),
    "another store": (
        40,
        "archives to repository",
        ("backup", *DATA, "--id", "8", "--repo", "file://{root}/other-repo"),
    ),
    "another name": (40, "it archives to source bank, not to shop", ("backup", "shop", *DATA[1:], "--id", "8")),
    "a marker by another name": (40, "it archives to source bank, not to shop", ("checkpoint", "shop", *DATA[1:])),
    "no application there": (51, "nowhere", ("backup", "bank", "--data", "{root}/nowhere", "--id", "8")),
    "no data directory": (40, "--data is missing", ("backup", "bank", "--id", "8")),
    "restore over it while it runs": (31, "is running", ("restore", "7", *DATA[1:], "--replace", "--yes")),
    "restore into files of others": (31, "full", ("restore", "7", "--data", "{root}/full", "--yes")),
    "restore what is not there": (
        40,
        "no archived log has checkpoint 99",
        ("restore", "99", "--data", "{root}/new", "--source", "bank", "--yes"),
    ),
    "restore text": (40, "text", ("restore", "text", "--data", "{root}/new", "--source", "bank", "--yes")),
    "the status of text": (40, "text", ("status", "text", "--source", "bank")),
}


def _without_leases(here: Here) -> dict[str, str]:
    return {name: found for name, found in here.tree().items() if not name.startswith("leases/")}


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_refuses_it_and_nothing_changes(bank_at_work: _Bank, name: str) -> None:
    code, words, arguments = VERBS[name]
    before = _without_leases(bank_at_work.here)
    told = bank_at_work.app(*arguments, code=code)
    assert words in str(told), told
    assert _without_leases(bank_at_work.here) == before
    assert bank_at_work.runtime.submit("add", "c", 1) is not None


class _Served(NamedTuple):
    """The routes over an application in memory whose pauses pass at once; backup 7 is completed."""

    http: TestClient
    app: ScriptedApplication

    def post(self, body: Any) -> Any:
        return self.http.post(BACKUPS, content=body) if isinstance(body, bytes) else self.http.post(BACKUPS, json=body)


BACKUPS = "/v1/applications/shop/backups"


@pytest.fixture
def served() -> _Served:
    clock = VirtualClock()
    world = World(clock)
    app = ScriptedApplication(world)

    def pause(seconds: float) -> bool:
        clock.now += timedelta(seconds=seconds)
        return False

    made = ServedApplication(
        "shop", world.place, lambda: nullcontext(app), clock, world.tokens, pause, timedelta(minutes=1)
    )
    found = _Served(TestClient(http_application([made])), app)
    assert found.post({"backupId": 7}).status_code == 202
    return found


@pytest.mark.parametrize(
    ("status", "words", "body"),
    [
        (409, "not larger than the last one, 7", {"backupId": 7}),
        (409, "not larger than the last one, 7", {"backupId": 3}),
        (400, "backupId", {"backupId": 0}),
        (400, "backupId", {"backupId": "text"}),
        (400, "backupId", {"backupId": 2**63}),
        (400, "timeoutSeconds", {"backupId": 8, "timeoutSeconds": 0}),
        (400, "not as expected", b"{"),
        (400, "not as expected", b"\xff"),
        (400, "not as expected", b"[" * 100_000),
    ],
)
def test_a_request_is_refused_and_nothing_is_sent(served: _Served, status: int, words: str, body: Any) -> None:
    sent = list(served.app.sent)
    answer = served.post(body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert words in answer.json()["detail"]
    assert served.app.sent == sent


def test_a_partition_that_never_answers_is_named_over_http(served: _Served) -> None:
    served.app.deaf = {1}
    answer = served.post({"backupId": 8, "timeoutSeconds": 5})
    assert answer.status_code == 504
    assert "partition 1: it did not answer" in answer.json()["detail"]
    assert "larger id" in answer.json()["remedy"]
    failed = served.http.get(f"{BACKUPS}/8").json()
    assert (failed["state"], failed["reason"].startswith("partition 1")) == ("failed", True)
    served.app.deaf = set()
    assert served.post({"backupId": 9}).status_code == 202


def test_a_take_that_fails_for_another_reason_is_no_timeout(served: _Served) -> None:
    served.app.jumping = {2}
    answer = served.post({"backupId": 8})
    assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json")
    assert "partition 2: it jumped over 8" in answer.json()["detail"]
    served.app.jumping, served.app.failing = set(), {1: "the disk of this partition is full"}
    answer = served.post({"backupId": 10})
    assert answer.status_code == 502
    assert (answer.json()["detail"], answer.json()["status"]) == (
        "partition 1: the disk of this partition is full",
        502,
    )
    assert served.http.get(f"{BACKUPS}/10").json()["state"] == "failed"


def test_a_partition_with_another_store_is_named_over_http(served: _Served) -> None:
    served.app.repository = "another"
    answer = served.post({"backupId": 8})
    assert (answer.status_code, "archives to repository another" in answer.json()["detail"]) == (400, True)
    assert served.http.get(f"{BACKUPS}/8").status_code == 404
    served.app.down = True
    assert served.post({"backupId": 8}).status_code == 502


@pytest.mark.parametrize("number", ["0", "text", "-1", "9" * 30, "7%2F..", "%00"])
def test_a_number_that_is_no_id_is_refused(served: _Served, number: str) -> None:
    for answer in (served.http.get(f"{BACKUPS}/{number}"), served.http.delete(f"{BACKUPS}/{number}")):
        assert answer.status_code in (400, 404), answer.text
        assert answer.headers["content-type"] == "application/problem+json"
    assert served.http.get(f"{BACKUPS}/7").json()["state"] == "completed"
