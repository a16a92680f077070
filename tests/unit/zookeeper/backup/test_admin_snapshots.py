"""Snapshots over HTTP from an AdminServer that was made up: what a real one sends in one moment of a thousand."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from logkeep.errors import BackupFailed, ClusterUnreachable
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Acl, Create, CreateSession, Transaction
from logkeep.model.secret import Secret
from logkeep.model.time import random_token, utc_now
from logkeep.zookeeper.backup.admin_snapshot import back_up_by_admin
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone
from logkeep.zookeeper.model.tree import new_tree, rows_of
from logkeep.zookeeper.repo.sink import archiving
from logkeep.zookeeper.server.admin_http import AdminServer, download, sent_in_clear
from tests.support.zookeeper.handmade_directories import INLINE
from tests.support.zookeeper.repositories import new_place, newest

SECRET = (Acl(31, b"digest", b"shop:abc"),)
Serve = Callable[..., AdminServer]


def snapshot(*, with_acls: bool) -> bytes:
    """Of a tree at 5, whose last node has a list of ACLs of its own; without it, as of before that node came."""
    tree = new_tree(with_config=False)
    tree.apply(Transaction(7, 1, 5, 1_700_000_000_000, 1, Create(b"/secret", b"x", SECRET, False, 1), None))
    acls, rows = rows_of(tree)
    return b"".join(exact_snapshot({}, acls if with_acls else {}, list(rows), zxid=5, digest=tree.digest))


def snapshot_of_a_session(at: int, *, with_session: bool) -> bytes:
    """Session 7 made an ephemeral at 4; sessions may have been copied before it began. Then quiet, up to `at`."""
    tree = new_tree(with_config=False)
    tree.apply(Transaction(7, 1, 3, 1_700_000_000_000, -10, CreateSession(30_000), None))
    tree.apply(Transaction(7, 1, 4, 1_700_000_000_000, 1, Create(b"/lock", b"x", OPEN_ACL, True, 1), None))
    acls, rows = rows_of(tree)
    sessions = tree.sessions if with_session else {}
    return b"".join(exact_snapshot(sessions, acls, list(rows), zxid=at, digest=tree.digest))


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A server that sends these snapshots one after the other, the last one for good."""
    running: list[ThreadingHTTPServer] = []

    def start(*snapshots: bytes) -> AdminServer:
        left = list(snapshots)

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = b'{"server_stats":{"server_state":"standalone"},"version":"3.9.5-x"}'
                if "snapshot" in self.path:
                    content = left.pop(0) if len(left) > 1 else left[0]
                self.send_response(200)
                self.send_header("last_zxid", "0x4")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                return

        made = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        running.append(made)
        threading.Thread(target=made.serve_forever, daemon=True).start()
        return AdminServer(f"http://127.0.0.1:{made.server_port}")

    yield start
    for one in running:
        one.shutdown()
        one.server_close()


def backed_up(server: AdminServer) -> tuple[ZooKeeperBackupDone, list[tuple[str, int | None]]]:
    place = new_place()
    with archiving(place, clock=utc_now, tokens=random_token) as sink:
        done = back_up_by_admin(server, "zk1", sink, INLINE, lambda _: None)
    return done, [(one.name, one.fuzzy_end) for one in newest(place).snapshots]


def test_a_snapshot_that_names_acls_which_it_lacks_is_fuzzy(serve: Serve) -> None:
    """Its digest fits all the same: no digest counts ACLs."""
    done, kept = backed_up(serve(snapshot(with_acls=False)))
    assert (done.exit_code, [f.code for f in done.findings]) == (2, ["snapshot-fuzzy"])
    assert "the ACLs of a node are not in it" in done.findings[0].what
    assert kept == [("snapshot.4", 5)]


def test_another_one_is_fetched_that_has_them(serve: Serve) -> None:
    done, kept = backed_up(serve(snapshot(with_acls=False), snapshot(with_acls=True)))
    assert (done.exit_code, done.findings) == (0, [])
    assert kept == [("snapshot.5", 5)]


@pytest.mark.parametrize("at", [4, 5])
def test_a_snapshot_that_lacks_the_session_of_an_ephemeral_is_fuzzy(serve: Serve, at: int) -> None:
    """Also where the server stood still from when it told where it was (4): no digest counts sessions."""
    done, kept = backed_up(serve(snapshot_of_a_session(at, with_session=False)))
    assert (done.exit_code, [f.code for f in done.findings]) == (2, ["snapshot-fuzzy"])
    assert "the sessions of an ephemeral node are not in it" in done.findings[0].what
    assert f"it needs the log from 0x3 to {at:#x}" in done.findings[0].what
    assert kept == [("snapshot.3", at)]


def test_another_one_is_fetched_that_has_the_session(serve: Serve) -> None:
    done, kept = backed_up(
        serve(snapshot_of_a_session(4, with_session=False), snapshot_of_a_session(4, with_session=True))
    )
    assert (done.exit_code, done.findings) == (0, [])
    assert kept == [("snapshot.4", 4)]


def test_a_full_disk_is_not_a_wrong_address(serve: Serve) -> None:
    with pytest.raises(BackupFailed, match="No space left on device") as refused:
        download(serve(snapshot(with_acls=True)), Path("/dev/full"), lambda _: None)
    assert refused.value.subject == "/dev/full"
    assert "TMPDIR" in refused.value.remedy


def test_a_directory_that_is_gone_is_named(serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(BackupFailed, match="No such file") as refused:
        download(serve(snapshot(with_acls=True)), tmp_path / "gone" / "fetched", lambda _: None)
    assert refused.value.subject == str(tmp_path / "gone" / "fetched")


def test_nobody_at_the_address_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(ClusterUnreachable, match="refused"):
        download(AdminServer("http://127.0.0.1:1"), tmp_path / "fetched", lambda _: None)


@pytest.mark.parametrize(
    ("url", "password", "warned"),
    [
        ("http://zk1.internal:8080", True, True),
        ("http://10.0.0.7:8080", True, True),
        ("http://[fe80::1]:8080", True, True),
        ("http://zk1.internal:8080", False, False),
        ("https://zk1.internal:8080", True, False),
        ("http://localhost:8080", True, False),
        ("http://127.8.0.1:8080", True, False),
        ("http://[::1]:8080", True, False),
    ],
)
def test_a_password_that_others_can_read_is_told(url: str, password: bool, warned: bool) -> None:
    found = sent_in_clear(AdminServer(url, Secret("digest super:hush") if password else None))
    assert [f.code for f in found] == ["sent-in-clear"] * warned
    assert not any("hush" in f"{f.what}{f.remedy}{f.where}" for f in found)
