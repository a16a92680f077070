"""Bundles from directories as servers leave them: what is kept, what is told, and what is refused."""

import gzip
import json
import resource
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from logkeep.errors import BackupFailed, Damaged, DataDirUnusable, Locked, StoreDenied, StoreFull, UsageError
from logkeep.model.segments import Codec, Proof
from logkeep.model.time import random_token, utc_now
from logkeep.store.local.store import LocalStore
from logkeep.zookeeper.backup.run import ZooKeeperBackupOptions, back_up, check_apart
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.bundle.writer import new_bundle
from logkeep.zookeeper.model.archived import LogFileEnding
from logkeep.zookeeper.server.four_letter import ServerState
from tests.support.zookeeper.changed_documents import stored_path
from tests.support.zookeeper.encoding import LOG_HEADER
from tests.support.zookeeper.handmade_directories import MadeServer, bundle_names, bundled, content, rounds, taken, txn
from tests.support.zookeeper.without_root import closed

EPOCH = 1 << 32


@pytest.fixture
def server(tmp_path: Path) -> MadeServer:
    """A snapshot at 2 and two logs up to 8, of which the server has committed 8."""
    made = MadeServer(tmp_path / "server", zxid=8)
    made.snapshot(2)
    made.log([1, 2, 3])
    made.log([4, 5, 6, 7, 8])
    return made


@pytest.mark.parametrize("codec", list(Codec))
def test_a_bundle_holds_the_used_bytes_of_every_file(server: MadeServer, tmp_path: Path, codec: Codec) -> None:
    view, done = bundled(server, tmp_path / "out", codec=codec)
    assert done.exit_code == 0
    assert content(view) == {
        "snapshot.2": (server.snapshot_dir / "snapshot.2").read_bytes(),
        "log.1": LOG_HEADER + b"".join(map(txn, (1, 2, 3))),
        "log.4": LOG_HEADER + b"".join(map(txn, (4, 5, 6, 7, 8))),
    }
    assert [(log.first, log.last, log.records) for log in view.logs] == [(1, 3, 3), (4, 8, 5)]
    assert {log.proof for log in view.logs} == {Proof.PROVEN}
    assert {log.ending for log in view.logs} == {LogFileEnding.CLEAN}


def test_the_document_has_the_fields_of_the_design(server: MadeServer, tmp_path: Path) -> None:
    view, _ = bundled(server, tmp_path / "out", codec=Codec.GZIP)
    info = json.loads((view.path / "metadata" / "backup_info.json").read_bytes())
    assert (info["version"], info["backup_id"]) == ("1.1", "one")
    assert info["backup_zxid"] == {"hex": "0x8", "decimal": 8}
    assert info["zookeeper"]["version"] == "3.9.5"
    assert info["zookeeper"]["data_dir"] == str(server.snapshot_dir)
    snapshot, log = info["files"]["snapshots"][0], info["files"]["txnlogs"][1]
    assert (snapshot["name"], snapshot["stored_name"], snapshot["zxid"]) == ("snapshot.2", "snapshot.2.gz", "0x2")
    assert (log["start_zxid"], log["end_zxid"], log["transaction_count"]) == ("0x4", "0x8", 5)
    assert log["size"] == len(LOG_HEADER + b"".join(map(txn, (4, 5, 6, 7, 8))))
    assert log["stored_size"] == (view.path / "txnlogs" / log["stored_name"]).stat().st_size
    assert log["checksum"].startswith("sha256:")
    assert info["validation"]["unrecoverable_files"] == 0
    assert info["statistics"]["compressed_size"] < info["statistics"]["total_size"]


def test_other_tools_read_what_was_packed(server: MadeServer, tmp_path: Path) -> None:
    zipped, _ = bundled(server, tmp_path / "out", "gz", codec=Codec.GZIP)
    assert gzip.decompress((zipped.path / "txnlogs" / "log.1.gz").read_bytes()) == content(zipped)["log.1"]
    framed, _ = bundled(server, tmp_path / "out", "zst", codec=Codec.ZSTD)
    if shutil.which("zstd"):
        told = subprocess.run(
            ["zstd", "-dc", str(framed.path / "txnlogs" / "log.1.zst")], capture_output=True, check=True
        )
        assert told.stdout == content(framed)["log.1"]


def test_files_are_private_and_in_their_places(server: MadeServer, tmp_path: Path) -> None:
    view, _ = bundled(server, tmp_path / "out")
    names = {str(p.relative_to(view.path)) for p in view.path.rglob("*") if p.is_file()}
    assert names == {
        *("snapshots/snapshot.2", "txnlogs/log.1", "txnlogs/log.4", "metadata/backup_info.json"),
        *("metadata/MANIFEST.txt", "metadata/zk_mntr.txt", "metadata/zk_stat.txt", "metadata/zk_conf.txt"),
        "logs/backup.log",
    }
    modes = {stat.S_IMODE(p.stat().st_mode) for p in view.path.rglob("*") if p.is_file()}
    assert modes == {0o600}
    assert {stat.S_IMODE(p.stat().st_mode) for p in [view.path, *view.path.rglob("*/")] if p.is_dir()} == {0o700}
    assert (view.path / "metadata" / "zk_mntr.txt").read_text() == "mntr"


def test_records_above_what_the_server_committed_are_left_for_later(server: MadeServer, tmp_path: Path) -> None:
    words = iter([6])
    asking = replace(rounds(server), ask=lambda _host: ServerState(next(words, 8), "follower", "3.9.5"))
    with new_bundle(tmp_path / "out", "one", clock=utc_now, tokens=random_token) as sink:
        done = back_up(ZooKeeperBackupOptions((server.place(),)), sink, asking, lambda _, word: word)
    view = BundleView(sink.path)
    assert (view.logs[-1].last, done.gathered.backup_zxid, done.exit_code) == (6, 6, 0)


def test_without_a_server_the_tail_is_kept_and_called_unproven(server: MadeServer, tmp_path: Path) -> None:
    server.zxid = None
    view, done = bundled(server, tmp_path / "out")
    assert [(log.first, log.last, log.proof) for log in view.logs] == [
        (1, 2, Proof.PROVEN),
        (3, 3, Proof.UNPROVEN),
        (4, 8, Proof.UNPROVEN),
    ]
    assert done.exit_code == 2
    assert "server-unreachable" in {f.code for f in done.findings}


@pytest.mark.parametrize("epoch", [0, EPOCH])
def test_forgotten_logs_are_told_at_once(tmp_path: Path, epoch: int) -> None:
    made = MadeServer(tmp_path / "server", zxid=epoch + 9, mode="leader" if epoch else "standalone")
    made.snapshot(epoch + 5)
    with new_bundle(tmp_path / "out", "one", clock=utc_now, tokens=random_token) as sink:
        patient = rounds(made, patience_s=1e9)
        done = back_up(ZooKeeperBackupOptions((made.place(),)), sink, patient, lambda _, word: word)
    found = {f.code: f for f in done.findings}
    assert (done.gathered.rounds, done.exit_code) == (2, 21)
    assert "--zk-log-dir" in found["no-log"].remedy
    assert "behind-the-server" not in found
    assert [(lost.first, lost.last) for lost in done.gathered.gaps] == [(epoch + 6, epoch + 9)]


def test_a_server_without_a_log_that_is_at_its_snapshot_lacks_nothing(tmp_path: Path) -> None:
    made = MadeServer(tmp_path / "server", zxid=5)
    made.snapshot(5)
    _, done = bundled(made, tmp_path / "out")
    assert (done.exit_code, done.findings) == (0, [])


@pytest.mark.parametrize("inside", ["data/version-2", "data/version-2/deeper", "data", "logs/version-2"])
def test_no_backup_goes_into_the_directories_of_the_server(tmp_path: Path, inside: str) -> None:
    made = MadeServer(tmp_path / "server", zxid=3, log_apart=True)
    made.snapshot(2)
    made.log([1, 2, 3])
    (made.root / inside).mkdir(exist_ok=True)
    (tmp_path / "link").symlink_to(made.root / inside)
    before = sorted(made.root.rglob("*"))
    for out in (made.root / inside, tmp_path / "link"):
        with pytest.raises(UsageError, match="a directory of the server itself"):
            bundled(made, out)
        with pytest.raises(UsageError, match="a directory of the server itself"):
            check_apart(LocalStore(out).url, made.place())
    assert sorted(made.root.rglob("*")) == before
    check_apart((tmp_path / "server" / "database").as_uri(), made.place())
    check_apart("s3://bucket" + str(made.root / inside), made.place())


@pytest.mark.parametrize("backup_id", ["log.ffff", "snapshot.0", "log.1.bak", "snapshot.5.gz"])
def test_no_backup_is_called_like_a_file_of_a_server(server: MadeServer, tmp_path: Path, backup_id: str) -> None:
    with pytest.raises(UsageError, match="ZooKeeper's own files have such names"):
        bundled(server, tmp_path / "out", backup_id)
    assert not (tmp_path / "out").exists()


def test_a_torn_end_of_the_active_log_is_no_loss(server: MadeServer, tmp_path: Path) -> None:
    server.log([4, 5, 6, 7, 8], tail=txn(9)[:-5], padding=0)
    view, done = bundled(server, tmp_path / "out")
    assert (view.logs[-1].last, done.exit_code) == (8, 0)


def test_a_torn_end_is_told_when_nobody_can_say_what_was_committed(server: MadeServer, tmp_path: Path) -> None:
    server.zxid = None
    server.log([4, 5, 6, 7, 8], tail=txn(9)[:-5], padding=0)
    view, done = bundled(server, tmp_path / "out")
    assert view.logs[-1].ending is LogFileEnding.ACTIVE_TAIL
    assert "active-tail" in {f.code for f in done.findings}


def test_damage_in_the_middle_makes_two_pieces_and_is_a_loss(server: MadeServer, tmp_path: Path) -> None:
    broken = bytearray(LOG_HEADER + b"".join(map(txn, (4, 5, 6, 7, 8))))
    broken[len(LOG_HEADER) + len(txn(4)) + 40] ^= 1  # within the second record
    (server.log_dir / "log.4").write_bytes(bytes(broken) + bytes(100))
    view, done = bundled(server, tmp_path / "out")
    assert [(log.first, log.last) for log in view.logs] == [(1, 3), (4, 4), (6, 8)]
    assert view.logs[1].ending is LogFileEnding.DAMAGED
    lost = next(f for f in done.findings if f.code == "lost-transactions")
    assert "0x5 to 0x5" in lost.what
    assert done.exit_code == 21
    assert [(g.first, g.last) for g in done.gathered.gaps] == [(5, 5)]


def test_damage_at_the_end_below_what_the_server_committed_is_a_loss(server: MadeServer, tmp_path: Path) -> None:
    server.zxid = 9
    server.log([4, 5, 6, 7, 8], tail=txn(9)[:-5], padding=0)
    _, done = bundled(server, tmp_path / "out")
    assert "behind-the-server" in {f.code for f in done.findings}
    assert done.exit_code == 21


def test_a_bad_header_is_rewritten_and_told(server: MadeServer, tmp_path: Path) -> None:
    path = server.log_dir / "log.4"
    path.write_bytes(b"XXXX" + path.read_bytes()[4:])
    view, done = bundled(server, tmp_path / "out")
    assert content(view)["log.4"] == LOG_HEADER + b"".join(map(txn, (4, 5, 6, 7, 8)))
    assert done.exit_code == 2


def test_a_missing_log_is_a_loss_whether_or_not_a_snapshot_stands_behind_it(server: MadeServer, tmp_path: Path) -> None:
    server.log([11, 12])
    server.zxid = 12
    _, done = bundled(server, tmp_path / "out", "without")
    assert (done.exit_code, [(g.first, g.last) for g in done.gathered.gaps]) == (21, [(9, 10)])
    server.snapshot(10)
    _, done = bundled(server, tmp_path / "out", "with")
    assert (done.exit_code, [(g.first, g.last) for g in done.gathered.gaps]) == (21, [(9, 10)])
    assert "hole" in {f.code for f in done.findings}


def test_a_new_epoch_is_no_hole(server: MadeServer, tmp_path: Path) -> None:
    server.log([EPOCH + 1, EPOCH + 2])
    server.zxid = EPOCH + 2
    _, done = bundled(server, tmp_path / "out")
    assert (done.exit_code, list(done.gathered.gaps)) == (0, [])


def test_an_unfinished_snapshot_is_left_out_and_told(server: MadeServer, tmp_path: Path) -> None:
    whole = server.snapshot(8).read_bytes()
    (server.snapshot_dir / "snapshot.8").write_bytes(whole[:-7])
    view, done = bundled(server, tmp_path / "out")
    assert [s.name for s in view.snapshots] == ["snapshot.2"]
    assert "snapshot-unfinished" in {f.code for f in done.findings}
    assert done.exit_code == 0


def test_without_any_whole_snapshot_nothing_can_be_restored_from_later_logs(tmp_path: Path) -> None:
    made = MadeServer(tmp_path / "server", zxid=8)
    made.log([4, 5, 6, 7, 8])
    with pytest.raises(BackupFailed, match="nothing could be restored"):
        bundled(made, tmp_path / "out")
    assert bundle_names(tmp_path / "out") == []


def test_a_snapshot_that_says_nothing_of_its_end_is_bounded_by_the_server(tmp_path: Path) -> None:
    made = MadeServer(tmp_path / "server", zxid=8)
    made.snapshot(2, digest=False)
    made.snapshot(5, digest=False)
    made.log(range(1, 9))
    view, _ = bundled(made, tmp_path / "out")
    assert [(s.zxid, s.fuzzy_end, s.bound) for s in view.snapshots] == [(2, None, 5), (5, None, 8)]


def test_a_fuzzy_end_that_the_logs_do_not_reach_is_told(server: MadeServer, tmp_path: Path) -> None:
    server.zxid = None
    server.snapshot(7, until=20)
    _, done = bundled(server, tmp_path / "out")
    assert "fuzzy-end-open" in {f.code for f in done.findings}


def test_strays_are_named_and_never_copied(server: MadeServer, tmp_path: Path) -> None:
    shutil.copy(server.log_dir / "log.4", server.log_dir / "log.4.bak")
    view, done = bundled(server, tmp_path / "out")
    assert not list(view.path.rglob("*.bak*"))
    assert any(f.code == "stray-file" and f.where.endswith("log.4.bak") for f in done.findings)
    assert "log.4.bak" in (view.path / "metadata" / "MANIFEST.txt").read_text()


def test_a_packed_snapshot_and_its_plain_twin_do_not_collide(server: MadeServer, tmp_path: Path) -> None:
    plain = (server.snapshot_dir / "snapshot.2").read_bytes()
    (server.snapshot_dir / "snapshot.2.gz").write_bytes(gzip.compress(plain))
    view, done = bundled(server, tmp_path / "out", codec=Codec.GZIP)
    assert done.exit_code == 0
    assert {s.name for s in view.snapshots} == {"snapshot.2", "snapshot.2.gz"}
    assert content(view)["snapshot.2"] == plain
    assert gzip.decompress(content(view)["snapshot.2.gz"]) == plain


def test_large_and_foreign_znodes_come_through(tmp_path: Path) -> None:
    made = MadeServer(tmp_path / "server", zxid=3)
    made.snapshot(0)
    made.log([1, 2, 3], data=b"\xe9\x8d\xb5" * 300_000)
    view, done = bundled(made, tmp_path / "out", codec=Codec.ZSTD)
    assert done.exit_code == 0
    assert content(view)["log.1"] == LOG_HEADER + b"".join(txn(z, b"\xe9\x8d\xb5" * 300_000) for z in (1, 2, 3))


def test_only_used_bytes_are_stored(tmp_path: Path) -> None:
    made = MadeServer(tmp_path / "server", zxid=3)
    made.snapshot(0)
    made.log([1, 2, 3], padding=1 << 34)
    view, _ = bundled(made, tmp_path / "out")
    assert view.logs[0].size_bytes < 1000


def test_an_end_that_cannot_be_restored_is_told(server: MadeServer, tmp_path: Path) -> None:
    server.log([11, 12])
    server.zxid = 12
    _, done = bundled(server, tmp_path / "out")
    assert "end-unreachable" in {f.code for f in done.findings}


def test_a_damaged_file_is_kept_as_it_is_too(server: MadeServer, tmp_path: Path) -> None:
    broken = bytearray((server.log_dir / "log.4").read_bytes())
    broken[len(LOG_HEADER) + len(txn(4)) + 40] ^= 1
    (server.log_dir / "log.4").write_bytes(broken)
    view, _ = bundled(server, tmp_path / "out")
    assert (view.path / "damaged" / "log.4").read_bytes() == broken
    (entry,) = view.info.files.damaged
    assert (entry.name, entry.positions) == ("log.4", (len(LOG_HEADER) + len(txn(4)),))


def test_every_epoch_is_a_piece_of_its_own_and_proves_itself(tmp_path: Path) -> None:
    """What a server has processed in one epoch says nothing of the last transactions of another."""
    made = MadeServer(tmp_path / "server", zxid=2 * EPOCH + 2, mode="follower")
    made.snapshot(1)
    made.log([1, 2, 3, EPOCH + 1, EPOCH + 2, 2 * EPOCH + 1, 2 * EPOCH + 2])
    made.snapshot(EPOCH + 1, until=EPOCH + 2)
    view, done = bundled(made, tmp_path / "out")
    assert [(log.first, log.last, log.proof) for log in view.logs] == [
        (1, 1, Proof.PROVEN),
        (2, 3, Proof.UNPROVEN),
        (EPOCH + 1, EPOCH + 2, Proof.PROVEN),
        (2 * EPOCH + 1, 2 * EPOCH + 2, Proof.PROVEN),
    ]
    assert [log.borders for log in view.logs[2:]] == [((3, EPOCH + 1),), ((EPOCH + 2, 2 * EPOCH + 1),)]
    assert "end-unreachable" in {f.code for f in done.findings}  # one member of several, and no digests


def test_an_epoch_may_end_with_a_file(server: MadeServer, tmp_path: Path) -> None:
    server.log([EPOCH + 1])
    server.zxid = EPOCH + 1
    view, _ = bundled(server, tmp_path / "out")
    assert view.logs[-1].borders == ((8, EPOCH + 1),)


def test_a_torn_file_shows_no_end_of_an_epoch(server: MadeServer, tmp_path: Path) -> None:
    server.log([4, 5, 6, 7, 8], tail=txn(9)[:-5], padding=0)
    server.log([EPOCH + 1])
    server.zxid = EPOCH + 1
    view, _ = bundled(server, tmp_path / "out")
    assert view.logs[-1].borders == ()


def test_the_same_records_twice_are_kept_once(server: MadeServer, tmp_path: Path) -> None:
    server.log([6, 7])
    view, done = bundled(server, tmp_path / "out", "same")
    assert [(log.first, log.last) for log in view.logs] == [(1, 3), (4, 8)]
    assert "log-overlap" not in {f.code for f in done.findings}
    server.log([6, 7], data=b"other")
    _, done = bundled(server, tmp_path / "out", "other")
    assert "log-overlap" in {f.code for f in done.findings}


def test_without_a_server_the_end_of_still_logs_bounds_a_snapshot(tmp_path: Path) -> None:
    made = MadeServer(tmp_path / "server")
    made.snapshot(2, digest=False)
    made.log(range(1, 9))
    view, _ = bundled(made, tmp_path / "out")
    assert [(s.fuzzy_end, s.bound) for s in view.snapshots] == [(None, 8)]


class TestRefusals:
    def test_a_directory_that_is_none_of_zookeepers(self, tmp_path: Path) -> None:
        (tmp_path / "empty" / "data").mkdir(parents=True)
        made = MadeServer(tmp_path / "server", zxid=1)
        shutil.rmtree(made.snapshot_dir)
        with pytest.raises(DataDirUnusable, match="no snapshot and no log"):
            bundled(made, tmp_path / "out")
        shutil.rmtree(tmp_path / "server")
        with pytest.raises(DataDirUnusable, match="no such directory"):
            bundled(made, tmp_path / "out")
        assert bundle_names(tmp_path / "out") == []
        assert list((tmp_path / "out").iterdir()) == []

    def test_files_from_before_version_2(self, tmp_path: Path) -> None:
        made = MadeServer(tmp_path / "server", zxid=1)
        shutil.rmtree(made.snapshot_dir)
        (tmp_path / "server" / "data" / "log.1").write_bytes(b"\0\0\0\1old")
        with pytest.raises(DataDirUnusable, match="before ZooKeeper 3"):
            bundled(made, tmp_path / "out")

    def test_a_directory_that_may_not_be_read(self, server: MadeServer, tmp_path: Path) -> None:
        with closed(server.snapshot_dir), pytest.raises(DataDirUnusable, match="permission denied"):
            bundled(server, tmp_path / "out")
        with closed(server.log_dir / "log.4"), pytest.raises(DataDirUnusable, match="permission denied"):
            bundled(server, tmp_path / "out")
        assert bundle_names(tmp_path / "out") == []

    def test_a_place_that_may_not_be_written(self, server: MadeServer, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        with closed(tmp_path / "out", 0o500), pytest.raises(StoreDenied):
            bundled(server, tmp_path / "out")

    def test_a_full_disk(self, server: MadeServer, tmp_path: Path) -> None:
        server.log([4, 5, 6, 7, 8], data=b"x" * 200_000)
        bundled(server, tmp_path / "out", "before")
        with largest_file(100_000), pytest.raises(StoreFull):
            bundled(server, tmp_path / "out")
        assert bundle_names(tmp_path / "out") == ["before"]
        assert [p.name for p in (tmp_path / "out").iterdir()] == ["before"]

    @pytest.mark.parametrize("name", ["..", ".", "a/b", "", "x" * 65, ".hidden", "ümlaut"])
    def test_ids_that_are_no_names(self, server: MadeServer, tmp_path: Path, name: str) -> None:
        with pytest.raises(UsageError, match="cannot be a backup id"):
            bundled(server, tmp_path / "out", name)

    def test_an_id_that_is_taken(self, server: MadeServer, tmp_path: Path) -> None:
        bundled(server, tmp_path / "out")
        with pytest.raises(UsageError, match="already"):
            bundled(server, tmp_path / "out")

    def test_an_id_that_another_run_is_writing(self, server: MadeServer, tmp_path: Path) -> None:
        with new_bundle(tmp_path, "one", clock=utc_now, tokens=random_token) as sink:
            with pytest.raises(Locked):
                bundled(server, tmp_path)
            taken(server, sink)
        assert BundleView(tmp_path / "one").name == "one"


def test_what_a_killed_run_left_is_removed_by_the_next(server: MadeServer, tmp_path: Path) -> None:
    left = tmp_path / "out" / ".one.partial" / "txnlogs"
    left.mkdir(parents=True)
    (left / "log.1.0123456789abcdef").write_bytes(b"half")
    view, _ = bundled(server, tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["one"]
    assert sorted(content(view)) == ["log.1", "log.4", "snapshot.2"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"stored_name": "log.1"', '"stored_name": "../log.1"'),
        ('"stored_name": "log.1"', '"stored_name": "log.4"'),
        ('"name": "log.1"', '"name": "log.2"'),
        ('"name": "log.1"', '"name": "/etc/passwd"'),
        ('"start_zxid": "0x1"', '"start_zxid": "1"'),
        ('"transaction_count": 3', '"transaction_count": "many"'),
        ('"checksum": "sha256:', '"checksum": "md5:'),
    ],
)
def test_a_document_that_was_tampered_with_is_damaged(server: MadeServer, tmp_path: Path, old: str, new: str) -> None:
    view, _ = bundled(server, tmp_path / "out")
    path = view.path / "metadata" / "backup_info.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(Damaged):
        _ = BundleView(view.path).logs


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_a_stored_file_that_was_damaged_never_reads_as_something_else(
    server: MadeServer, tmp_path: Path, codec: Codec
) -> None:
    view, _ = bundled(server, tmp_path / "out", codec=codec)
    path = stored_path(view, view.logs[1])
    whole, plain = path.read_bytes(), content(view)["log.4"]
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            read = content(view)["log.4"]
        except Damaged:
            continue
        assert len(read) == len(plain)  # zstd frames have no checksum: the bundle's own one tells
        assert codec is Codec.ZSTD or read == plain
    path.write_bytes(whole[:-1])
    with pytest.raises(Damaged):
        content(view)


def test_a_link_in_place_of_a_file_is_not_followed(server: MadeServer, tmp_path: Path) -> None:
    view, _ = bundled(server, tmp_path / "out")
    path = stored_path(view, view.logs[0])
    path.unlink()
    path.symlink_to("/etc/hostname")
    with pytest.raises(Exception, match="link"):
        view.open(view.logs[0])


@contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """No file may grow beyond it: the write that would do so fails like one on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(("cut", "code", "exit_code"), [(0, "snapshot-damaged", 2), (7, "snapshot-unfinished", 0)])
def test_the_newest_snapshot_is_damaged_or_never_finished(
    server: MadeServer, tmp_path: Path, cut: int, code: str, exit_code: int
) -> None:
    """A bit that turned in a whole one, and one whose end was never written."""
    path = server.snapshot(8, nodes=range(1, 9))
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content[: len(content) - cut])
    _, done = bundled(server, tmp_path / "out")
    assert (code, done.exit_code) == (next(f.code for f in done.findings if f.where == str(path)), exit_code)


@pytest.mark.parametrize("name", ["snapshot.9.tmp", "snapshot.5.gz.tmp", "snapshot.5.snappy.tmp"])
def test_what_a_server_writes_under_a_name_of_its_own_is_no_stray(
    server: MadeServer, tmp_path: Path, name: str
) -> None:
    """Whoever moved it away as it is advised for strays would take it from the server."""
    (server.snapshot_dir / name).write_bytes(b"ZKSN")
    _, done = bundled(server, tmp_path / "out")
    assert (done.exit_code, "stray-file" in {f.code for f in done.findings}) == (0, False)


def test_what_a_killed_server_left_half_written_is_no_alarm_for_ever(server: MadeServer, tmp_path: Path) -> None:
    (server.snapshot_dir / "snapshot.1").write_bytes(server.snapshot(8, nodes=range(1, 9)).read_bytes()[:200])
    _, done = bundled(server, tmp_path / "out")
    (told,) = [f for f in done.findings if f.where.endswith("snapshot.1")]
    assert (done.exit_code, told.code, told.severity) == (0, "snapshot-unfinished", "note")


def test_a_packed_one_that_is_damaged_and_that_nobody_writes_to_is_told(server: MadeServer, tmp_path: Path) -> None:
    plain = server.snapshot(8, nodes=range(1, 9))
    packed = bytearray(gzip.compress(plain.read_bytes()))
    packed[len(packed) // 2] ^= 1
    plain.unlink()
    (server.snapshot_dir / "snapshot.8.gz").write_bytes(packed)
    _, done = bundled(server, tmp_path / "out")
    assert (done.exit_code, "snapshot-damaged" in {f.code for f in done.findings}) == (2, True)
