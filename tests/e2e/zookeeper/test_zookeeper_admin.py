"""Snapshots over HTTP from the AdminServer of a real ZooKeeper 3.9.5, by the command: exact, fuzzy, unproven, none."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from tests.support.cli.in_process import Here
from tests.support.cli.zookeeper_repository import server_on, written
from tests.support.zookeeper import raw_client as raw
from tests.support.zookeeper.running_servers import CACHE
from tests.support.zookeeper.tree_judge import logged
from tests.support.zookeeper.tree_recorder import record

pytestmark = pytest.mark.xdist_group("zookeeper-admin")
_ROUNDS = 4
"""So often a session sets each seventh node before it waits for an answer."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    with EmbeddedZooKeeper(
        tmp_path_factory.mktemp("admin"), CACHE, admin=True, java_options=("-Dzookeeper.forceSync=no",)
    ) as server:
        yield server


@pytest.fixture(scope="module")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("initialised")
    (root / "repo").mkdir()
    Here(root).run("init")
    return root / "repo"


@pytest.fixture
def here(initialised: Path, tmp_path: Path) -> Here:
    shutil.copytree(initialised, tmp_path / "repo")
    return Here(tmp_path)


def _asked(here: Here, server: EmbeddedZooKeeper, line: str | None = None) -> tuple[str, ...]:
    file = here.root / "auth"
    file.write_text(line or f"digest:super:{server.password}\n")
    file.chmod(0o600)
    url = server.admin_url.removesuffix("/commands")
    return ("zookeeper", "backup", "--admin-server", f"zk1={url}", "--auth-file", str(file))


def test_a_quiet_server_gives_its_tree_and_its_password_stays_secret(
    server: EmbeddedZooKeeper, here: Here, tmp_path: Path
) -> None:
    live, log = written(server, 1), tmp_path / "run.log"
    told = here.run(*_asked(here, server), "--log-file", str(log), "--log-level", "debug", "--json")
    report = told.document
    assert (report["exit_code"], report["findings"], report["new_snapshots"], report["new_logs"]) == (0, [], 1, 0)
    (member,) = report["members"]
    assert (member["name"], member["role"], member["version"]) == ("zk1", "standalone", "3.9.5")
    assert int(report["backup_zxid"], 16) >= live.zxid
    assert server.password not in told.stdout + told.stderr + log.read_text()
    target = tmp_path / "target"
    target.mkdir()
    done = here.json("zookeeper", "restore", "latest", "--data-dir", str(target), "--log-dir", str(target), "--yes")
    assert (done["verdict"], done["tree"]["epoch"]) == ("proven", None)
    with server_on(tmp_path / "other", target) as restored:
        assert logged(record(restored.client, restored.password).nodes) == logged(live.nodes)
    again = here.json(*_asked(here, server))
    assert (again["history"], again["exit_code"]) == ("1", 0)


@contextmanager
def _written_to(server: EmbeddedZooKeeper, nodes: int) -> Iterator[None]:
    """Every node is set again and again: a snapshot that takes its time has some as they were, some as they became.

    Two sessions take turns, so that the server has thousands of requests before it whatever else this machine does.
    """
    with (
        raw.RawSession(server.client, password=server.password) as client,
        raw.RawSession(server.client, password=server.password) as other,
    ):
        for start in range(0, nodes, 500):
            client.must(*(raw.create(f"/n{number}", b"x" * 50) for number in range(start, start + 500)))
        stop = threading.Event()
        changes = [raw.set_data(f"/n{number}", b"y" * 50) for number in range(nodes - 1, -1, -7)] * _ROUNDS

        def write() -> None:
            first, second = client, other
            first.send(changes)
            while not stop.is_set():
                second.send(changes)
                first.receive(len(changes))
                first, second = second, first
            first.receive(len(changes))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            yield
        finally:
            stop.set()
            writer.join()


def test_under_load_it_is_fuzzy_and_says_so(server: EmbeddedZooKeeper, here: Here) -> None:
    with _written_to(server, 20_000):
        told = here.json(*_asked(here, server), code=2)
    (finding,) = told["findings"]
    assert (finding["code"], finding["severity"]) == ("snapshot-fuzzy", "warning")
    assert "it needs the log from 0x" in finding["what"]
    (target := here.root / "target").mkdir()
    refused = here.error("zookeeper", "restore", "latest", "--data-dir", str(target), "--yes", code=30)
    assert refused["error"] == "restore-failed"
    quiet = here.json(*_asked(here, server))
    assert (quiet["findings"], quiet["history"]) == ([], "1")
    planned = here.json("zookeeper", "restore", "latest", "--data-dir", str(target), "--dry-run")
    assert (planned["tree"]["proof"], planned["tree"]["zxid"]) == ("proven", quiet["backup_zxid"])


def test_without_digests_it_is_unproven(server: EmbeddedZooKeeper, here: Here, tmp_path: Path) -> None:
    """And a server that packs its snapshots packs what it sends. Another one is not taken for its successor."""
    options = ("-Dzookeeper.digest.enabled=false", "-Dzookeeper.snapshot.compression.method=gz")
    with EmbeddedZooKeeper(tmp_path / "server", CACHE, admin=True, java_options=options) as silent:
        live = written(silent, 1)
        told = here.json(*_asked(here, silent), code=2)
    (finding,) = told["findings"]
    assert finding["code"] == "snapshot-unproven"
    assert "writes no digests" in finding["what"]
    assert int(told["backup_zxid"], 16) >= live.zxid
    assert told["new_snapshots"] == 1
    assert here.error(*_asked(here, server), code=31)["error"] == "history-unproven"
    assert here.json(*_asked(here, server), "--new-history")["history"] == "2"


def test_who_is_refused(server: EmbeddedZooKeeper, here: Here) -> None:
    asked = _asked(here, server)
    nobody = here.error(*asked[:-2], code=52)
    assert nobody["remedy"] == "give an identity that has all permissions on / with --auth-file"
    wrong = here.run_any(*_asked(here, server, "digest:super:wrong-password\n"), "--json")
    assert wrong.code in {0, 52}  # an open root lets everybody in who says who he is
    assert "wrong-password" not in wrong.stdout + wrong.stderr
    assert here.error(*_asked(here, server, "digest:super:grün\n"), code=40)["error"] == "usage-error"
    two = here.error(*_asked(here, server, "digest:a:b\nip:c\n"), code=40)
    assert two["message"] == "it has 2 credentials, and an AdminServer takes one"


@pytest.mark.parametrize(
    "given",
    [
        ("--admin-server", "zk1:8080"),
        ("--admin-server", "http://zk1:99999"),
        ("--admin-server", "ftp://zk1:8080"),
        ("--admin-server", "http://zk1:8080/commands/snapshot"),
        ("--admin-server", "http://user:geheim@zk1:8080"),
        ("--admin-server", "http://zk1:8080", "--data-dir", "/var/lib/zookeeper"),
        ("--admin-server", "http://zk1:8080", "--zk-host", "zk1:2181"),
        ("--admin-server", "http://zk1:8080", "--follow"),
        ("--admin-server", "http://zk1:8080", "--include-config"),
        ("--admin-server", "http://zk1:8080", "--dry-run"),
        ("--auth-file", "/nowhere", "--data-dir", "/var/lib/zookeeper"),
        ("--admin-server", "http://zk1:8080", "--auth-file", "/nowhere"),
    ],
)
def test_values_that_make_no_sense(tmp_path: Path, given: tuple[str, ...]) -> None:
    """Told before a repository is even looked for."""
    told = Here(tmp_path).run("zookeeper", "backup", *given, code=40)
    assert "try: " in told.stderr
    assert "geheim" not in told.stderr


def test_nobody_answers(here: Here, server: EmbeddedZooKeeper) -> None:
    """The client port speaks no HTTP, and another one nothing at all."""
    for port in (server.port, 1):
        told = here.error("zookeeper", "backup", "--admin-server", f"http://127.0.0.1:{port}", code=51)
        assert "AdminServer" in told["remedy"]
