"""Backups of real servers while they work: nothing is missing, nothing is torn, and everything replays."""

import threading
import time
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import RELEASES, EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.model.secret import Secret
from logkeep.model.segments import Codec, Proof
from logkeep.model.time import random_token, utc_now
from logkeep.zookeeper.backup.admin_snapshot import back_up_by_admin
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.bundle.writer import new_bundle
from logkeep.zookeeper.model.archived import FileOrigin
from logkeep.zookeeper.server.admin_http import AdminServer
from tests.support.processes import wait_for
from tests.support.zookeeper.changed_documents import stored_path
from tests.support.zookeeper.handmade_directories import INLINE
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.repositories import new_place, newest
from tests.support.zookeeper.running_servers import CACHE, archive_of, bundle_of, place_of, plain_copy, replays
from tests.support.zookeeper.server_files import bodies_of, loaded
from tests.support.zookeeper.tree_judge import differences
from tests.support.zookeeper.tree_recorder import kazoo, record

pytestmark = pytest.mark.xdist_group("zookeeper-backup")
SETTINGS = {"snapCount": "600", "preAllocSize": "4096", "forceSync": "no"}
JAVA = ("-Dzookeeper.forceSync=no", "-Xmx256m")


class Purging:
    """Apache's own purge, again and again: at most three snapshots stay, and the logs that they need."""

    def __init__(self, server: EmbeddedZooKeeper) -> None:
        self._server, self._end = server, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.runs = 0

    def __enter__(self) -> "Purging":
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        arguments = [str(self._server.log_dir), str(self._server.data_dir), "-n", "3"]
        while not self._end.is_set():
            self._server.java_tool("org.apache.zookeeper.server.PurgeTxnLog", arguments)
            self.runs += 1


def judge(version: str, directory: Path, backups: int) -> None:
    release = ZooKeeperRelease(version)
    server = EmbeddedZooKeeper(
        directory / "server",
        CACHE,
        release=release,
        settings=SETTINGS,
        log_dir=directory / "server" / "logs",
        java_options=JAVA,
    )
    compared = 0
    with server, Load([server.client], server.password, line=release.line, most_per_s=2000) as load:
        load.wait_for(1000)
        with Purging(server) as purging:
            for number in range(backups):
                load.wait_for(200)
                wait_for(lambda: purging.runs >= number, "a purge since the backup before")  # noqa: B023 - called here
                view, done = bundle_of(server, directory / "out", f"b{number}", Codec.ZSTD)
                assert done.exit_code == 0, done.findings
                files = plain_copy(view, "standalone", directory / f"files{number}")
                for _, replay in replays(view, "standalone", files):
                    assert replay.wrong == []
                    compared += replay.compared
                assert {log.proof for log in view.logs} == {Proof.PROVEN}
        with load.paused():
            live = record(server.client, server.password)
            view, done = bundle_of(server, directory / "out", "last", Codec.GZIP)
    assert done.exit_code == 0
    files = plain_copy(view, "standalone", directory / "files")
    for tree, replay in replays(view, "standalone", files, live.zxid):
        assert replay.wrong == []
        assert differences(live, tree) == []
    assert compared > 0 or release.line < (3, 6)
    check_with_apaches_tool(server, view, files)


def check_with_apaches_tool(server: EmbeddedZooKeeper, view: BundleView, files: Path) -> None:
    """The pieces are logs for Apache's own reader too.

    Before 3.6 that is LogFormatter: 3.4 has no other, and TxnLogToolkit of 3.5 ends with a
    NullPointerException when it prints a node that was made without data.
    """
    log = view.logs[-1]
    path = str(files / f"log.{log.first:x}")
    if server.release.line >= (3, 6):
        told = server.java_tool("org.apache.zookeeper.server.persistence.TxnLogToolkit", ["-d", path])
    else:
        told = server.java_tool("org.apache.zookeeper.server.LogFormatter", [path])
    assert f"0x{log.last:x}" in told


@pytest.mark.parametrize("version", ["3.9.5"])
def test_a_backup_under_load_replays(version: str, tmp_path: Path) -> None:
    judge(version, tmp_path, backups=2)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", RELEASES)
def test_many_backups_under_load_replay(version: str, tmp_path: Path) -> None:
    judge(version, tmp_path, backups=30)


def test_incremental_backups_under_load_join_without_a_seam(tmp_path: Path) -> None:
    place = new_place()
    server = EmbeddedZooKeeper(tmp_path / "server", CACHE, settings=SETTINGS, java_options=JAVA)
    with server, Load([server.client], server.password, line=(3, 9), most_per_s=2000) as load:
        for _ in range(3):
            load.wait_for(300)
            assert archive_of(place, place_of(server, "zk1")).exit_code == 0
        load.stop()
        server.stop()
        server.start()  # a new log begins, in the same epoch
        with Load([server.client], server.password, line=(3, 9), seed=2) as more:
            more.wait_for(300)
            with more.paused():
                live = record(server.client, server.password)
                assert archive_of(place, place_of(server, "zk1")).exit_code == 0
    view = newest(place)
    assert view.manifest.gaps == ()
    files = plain_copy(view, "zk1", tmp_path / "files")
    for tree, replay in replays(view, "zk1", files, live.zxid):
        assert replay.wrong == []
        assert differences(live, tree) == []
    pieces = [log for log in view.logs if log.name == view.logs[0].name]
    joined = [body for log in pieces for body in bodies_of(files / f"log.{log.first:x}")]
    assert joined == list(bodies_of(server.log_dir / "version-2" / pieces[0].name))


def test_large_records_and_odd_names_come_through(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(tmp_path / "server", CACHE, settings={"snapCount": "1000"}, java_options=JAVA)
    with server:
        with kazoo(server.client, server.password) as client:
            for name in ("/ümlaut", "/鍵", "/x y"):
                client.create(name, b"z" * 900_000)
            client.set("/鍵", b"")
        live = record(server.client, server.password)
        view, done = bundle_of(server, tmp_path / "out", "one", Codec.GZIP)
    assert done.exit_code == 0
    files = plain_copy(view, "standalone", tmp_path / "files")
    tree, replay = replays(view, "standalone", files, live.zxid)[-1]
    assert replay.wrong == []
    assert differences(live, tree) == []


def test_without_disk_access_a_quiet_server_gives_an_exact_snapshot(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(tmp_path / "server", CACHE, settings=SETTINGS, java_options=JAVA, admin=True)
    admin = AdminServer(server.admin_url.removesuffix("/commands"), Secret(f"digest super:{server.password}"))
    with server, Load([server.client], server.password, line=(3, 9)) as load:
        load.wait_for(500)
        with load.paused():
            live = record(server.client, server.password)
            with new_bundle(tmp_path / "out", "one", clock=utc_now, tokens=random_token, codec=Codec.NONE) as sink:
                done = back_up_by_admin(admin, "zk1", sink, INLINE, time.sleep)
    view = BundleView(sink.path)
    assert done.exit_code == 0, done.findings
    (snapshot,) = view.snapshots
    assert snapshot.fuzzy_end == snapshot.zxid >= live.zxid
    assert snapshot.origin is FileOrigin.ADMIN
    tree, _ = loaded(stored_path(view, snapshot))
    tree.zxid = live.zxid  # who looked has ended its session since, which changes nothing in the tree
    assert differences(live, tree) == []
