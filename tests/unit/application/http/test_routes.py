"""The HTTP interface, through a real server and a plain client."""

import ctypes
import http.client
import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvicorn
from openapi_spec_validator import validate

from logkeep.application.data_directory import DirectoryLock, read_directory
from logkeep.application.http.guard import LARGEST_BODY, Guard
from logkeep.application.http.openapi import openapi
from logkeep.application.http.operations import ServedApplication
from logkeep.application.http.routes import http_application
from logkeep.application.http.server import ServingOptions, check_options, read_token, serve
from logkeep.checkpoint.archive.copies import copy_request
from logkeep.embedded.ports import free_ports
from logkeep.errors import ConfigError, UsageError
from logkeep.model.time import utc_now
from logkeep.repository.restores import list_restores
from tests.support.processes import wait_for
from tests.support.scripted_application import ScriptedApplication, VirtualClock, World
from tests.support.servers.certificates import authority

TOKEN = "a-token"
BACKUPS = "/v1/applications/shop/backups"


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]


class Client(NamedTuple):
    port: int
    app: ScriptedApplication
    world: World
    directory: Path
    """What a server that allows restores replaces."""

    def __call__(
        self, method: str, path: str, body: Any = None, *, token: str | None = TOKEN, **headers: str
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"Authorization": f"Bearer {token}"} if token is not None else {}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body)
        if data is not None:
            sent["Content-Type"] = "application/json"
        connection.request(method, path, data, {**sent, **{k.replace("_", "-"): v for k, v in headers.items()}})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return Answer(answer.status, json.loads(text) if text else None, dict(answer.getheaders()))


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with _serving(tmp_path, allow_restore=False) as made:
        yield made


@contextmanager
def _serving(directory: Path, *, allow_restore: bool) -> Iterator[Client]:
    world = World(clock=VirtualClock(utc_now()))
    app = ScriptedApplication(world, 3)
    (port,) = free_ports(1)
    served = ServedApplication(
        "shop",
        world.place,
        lambda: nullcontext(app),
        world.clock,
        world.tokens,
        lambda _: False,
        timedelta(minutes=1),
        directory / "data" if allow_restore else None,
    )
    options = ServingOptions("127.0.0.1", port, Path("unused"))
    server = uvicorn.Server(
        uvicorn.Config(
            Guard(http_application([served]), options.hosts, TOKEN), port=port, log_level="warning", lifespan="off"
        )
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_for(lambda: server.started, "the server")
    try:
        yield Client(port, app, world, directory / "data")
    finally:
        server.should_exit = True
        thread.join(30)


def test_r4_a_take_is_accepted_before_the_copies_are_done_and_completed_later(client: Client) -> None:
    client.app.copying = {0, 1}
    taken = client("POST", BACKUPS, {"backupId": 7})
    assert (taken.status, taken.body["state"]) == (202, "ongoing")
    assert client("GET", f"{BACKUPS}/7").body["state"] == "ongoing"
    client.world.drain(client.app.copy(2, 7))
    shown = client("GET", f"{BACKUPS}/7", token=None)
    assert (shown.status, shown.body["state"], shown.body["backupId"]) == (200, "completed", 7)
    assert [b["backupId"] for b in client("GET", BACKUPS).body["backups"]] == [7]


def test_an_id_that_was_used_is_a_conflict_and_a_wrong_one_a_bad_request(client: Client) -> None:
    assert client("POST", BACKUPS, {"backupId": 7}).status == 202
    assert client("POST", BACKUPS, {"backupId": 6}).status == 409
    for wrong in ({"backupId": 0}, {"backupId": "x"}, {}, {"backupId": 8, "other": 1}, b"{", b"[" * 50_000):
        answer = client("POST", BACKUPS, wrong)
        assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json"), wrong
        assert answer.body["detail"]


def test_r7_an_unknown_id_does_not_exist(client: Client) -> None:
    answer = client("GET", f"{BACKUPS}/99")
    assert (answer.status, answer.body["state"]) == (404, "doesNotExist")
    assert client("GET", f"{BACKUPS}/x").status == 400
    assert client("GET", "/v1/applications/other/backups").status == 404
    assert client("GET", "/elsewhere").headers["content-type"] == "application/problem+json"


def test_an_ongoing_backup_that_is_deleted_fails_first(client: Client) -> None:
    client.app.copying = {0, 1}
    client("POST", BACKUPS, {"backupId": 7})
    assert client("DELETE", f"{BACKUPS}/7").status == 204
    assert client("GET", f"{BACKUPS}/7").body["state"] == "failed"
    assert client("POST", BACKUPS, {"backupId": 7}).status == 409


def test_the_last_good_backup_is_not_deleted(client: Client) -> None:
    client("POST", BACKUPS, {"backupId": 7})
    client("POST", BACKUPS, {"backupId": 8})
    assert client("DELETE", f"{BACKUPS}/7").status == 204
    assert client("DELETE", f"{BACKUPS}/8").status == 400
    assert client("GET", f"{BACKUPS}/8").body["state"] == "completed"


def test_a_restore_is_planned_and_not_carried_out(client: Client) -> None:
    client("POST", BACKUPS, {"backupId": 7})
    planned = client("POST", f"{BACKUPS}/7/restore", {})
    assert (planned.status, planned.body["dryRun"], planned.body["plan"]["checkpoint"]) == (200, True, 7)
    refused = client("POST", f"{BACKUPS}/7/restore", {"dryRun": False})
    assert (refused.status, "--allow-restore" in refused.body["remedy"]) == (409, True)
    assert not client.directory.exists()


def test_a_server_that_allows_it_restores_to_its_own_directory(tmp_path: Path) -> None:
    with _serving(tmp_path, allow_restore=True) as client:
        client("POST", BACKUPS, {"backupId": 7})
        assert client("POST", f"{BACKUPS}/8/restore", {"dryRun": False}).status == 404
        named = client("POST", f"{BACKUPS}/7/restore", {"dryRun": False, "directory": str(tmp_path / "other")})
        assert (named.status, client.directory.exists()) == (400, False)
        done = client("POST", f"{BACKUPS}/7/restore", {"dryRun": False})
        assert (done.status, done.body["dryRun"], done.body["history"], done.body["before"]) == (200, False, 1, None)
        assert read_directory(client.directory).document.history == 1
        lock = DirectoryLock(client.directory)
        running = client("POST", f"{BACKUPS}/7/restore", {"dryRun": False})
        assert (running.status, "running" in running.body["detail"]) == (409, True)
        lock.release()
        again = client("POST", f"{BACKUPS}/7/restore", {"dryRun": False}).body
        assert (again["history"], (Path(again["before"]) / "application.json").exists()) == (2, True)
        kept = [(row.id, row.state) for row in list_restores(client.world.place)]
        assert kept == [(done.body["restore"], "proven"), (again["restore"], "proven")]


def test_what_a_new_leader_does_is_chosen_with_the_backup(client: Client) -> None:
    client.app.copying = {0, 1, 2}
    client("POST", BACKUPS, {"backupId": 7, "onFailover": "retake"})
    request = copy_request(client.world.place, 7)
    assert request is not None
    assert request.on_failover == "retake"
    assert client("POST", BACKUPS, {"backupId": 8, "onFailover": "pray"}).status == 400


@pytest.mark.parametrize("token", [None, "", "wrong"])
def test_changes_need_the_token(client: Client, token: str | None) -> None:
    for method, path in (("POST", BACKUPS), ("DELETE", f"{BACKUPS}/7"), ("POST", f"{BACKUPS}/7/restore")):
        assert client(method, path, {"backupId": 7}, token=token).status == 401
    assert client.app.sent == []


def test_other_hosts_kinds_and_sizes_are_refused(client: Client) -> None:
    assert client("GET", BACKUPS, Host="evil.example").status == 421
    assert client("POST", BACKUPS, {"backupId": 7}, Content_Type="text/plain").status == 415
    assert client("POST", BACKUPS, b" " * (LARGEST_BODY + 1)).status == 413
    assert "access-control-allow-origin" not in client("GET", BACKUPS, Origin="http://evil.example").headers


def test_every_operation_of_the_document_is_served(client: Client) -> None:
    document = client("GET", "/openapi.json").body
    validate(document)
    client("POST", BACKUPS, {"backupId": 7})
    bodies = {"takeBackup": {"backupId": 8}, "restoreBackup": {"dryRun": True}}
    every = [
        (method, path, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method != "parameters"
    ]
    for method, path, operation in sorted(every, key=lambda each: each[0] == "delete"):
        real = path.replace("{application}", "shop").replace("{id}", "7")
        answer = client(method.upper(), real, bodies.get(operation["operationId"]))
        assert str(answer.status) in operation["responses"], (method, path, answer)


def test_the_document_names_no_schema_that_it_lacks() -> None:
    validate(openapi())


def test_a_served_name_is_a_host_with_and_without_its_port(tmp_path: Path) -> None:
    hosts = ServingOptions("127.0.0.2", 8470, tmp_path, names=("Backup.example",)).hosts
    assert {"127.0.0.2:8470", "localhost:8470", "backup.example", "backup.example:8470"} <= hosts
    assert "localhost" not in hosts


def test_the_token_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    token = read_token(tmp_path / "token")
    assert len(token) > 40
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert read_token(tmp_path / "token") == token
    (tmp_path / "token").chmod(0o640)
    with pytest.raises(ConfigError):
        read_token(tmp_path / "token")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has it")
def test_the_memory_of_a_process_that_knows_the_token_is_hidden(tmp_path: Path) -> None:
    get_dumpable, set_dumpable, kernel = 3, 4, ctypes.CDLL(None)
    kernel.prctl(set_dumpable, 1, 0, 0, 0)
    read_token(tmp_path / "token")
    assert kernel.prctl(get_dumpable, 0, 0, 0, 0) == 0


def test_other_addresses_than_loopback_need_tls(tmp_path: Path) -> None:
    check_options(ServingOptions("127.0.0.1", 1, tmp_path))
    check_options(ServingOptions("192.0.2.1", 1, tmp_path, *_pair(tmp_path)))
    for wrong in (ServingOptions("192.0.2.1", 1, tmp_path), ServingOptions("127.0.0.1", 1, tmp_path, tmp_path / "c")):
        with pytest.raises(UsageError):
            check_options(wrong)


def _pair(directory: Path) -> tuple[Path, Path]:
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    own = authority("shop")
    certificate.write_text(own.pem)
    key.write_text(own.key_pem)
    for each in (certificate, key):
        each.chmod(0o600)
    return certificate, key


def test_tls_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    certificate, key = _pair(tmp_path)
    for pair, named in (
        ((tmp_path / "none", key), tmp_path / "none"),
        ((certificate, tmp_path / "none"), tmp_path / "none"),
        ((key, certificate), key),
    ):
        with pytest.raises(ConfigError) as found:
            check_options(ServingOptions("192.0.2.1", 1, tmp_path, *pair))
        assert found.value.subject == str(named)


def test_a_private_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    certificate, key = _pair(tmp_path)
    key.chmod(0o640)
    with pytest.raises(ConfigError, match="can be read by others"):
        check_options(ServingOptions("192.0.2.1", 1, tmp_path, certificate, key))


def test_a_token_file_in_no_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be opened") as found:
        read_token(tmp_path / "none" / "token")
    assert found.value.subject == str(tmp_path / "none" / "token")


def test_a_port_that_another_server_uses_is_an_error_and_nothing_is_served(tmp_path: Path) -> None:
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as other:
        options = ServingOptions("127.0.0.1", other.getsockname()[1], tmp_path / "token")
        with pytest.raises(UsageError, match="cannot listen at 127"):
            serve(http_application([]), options, said.append)
    assert said == []
