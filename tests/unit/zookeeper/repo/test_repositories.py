"""Backups of ZooKeeper in a repository: what an incremental run adds, what it must prove, and what it refuses."""

import pickle
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import HistoryUnproven, UsageError
from logkeep.model.ids import BackupId
from logkeep.model.segments import Codec, Collection, Proof
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.backups.verdicts import DAMAGED, GOOD
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.bundle.writer import new_bundle
from logkeep.zookeeper.convert import export_backup, import_bundle
from logkeep.zookeeper.repo.sink import archiving
from tests.support.zookeeper.changed_documents import stored_path
from tests.support.zookeeper.encoding import LOG_HEADER
from tests.support.zookeeper.handmade_directories import INLINE, MadeServer, bundled, content, txn
from tests.support.zookeeper.repositories import (
    archived,
    archived_all,
    bytes_of,
    new_local_place,
    new_place,
    newest,
    zxids,
)

EPOCH = 1 << 32


@pytest.fixture
def server(tmp_path: Path) -> MadeServer:
    made = MadeServer(tmp_path / "server", zxid=8, log_apart=True)
    made.snapshot(2)
    made.log([1, 2, 3])
    made.log([4, 5, 6, 7, 8])
    return made


@pytest.mark.parametrize("codec", list(Codec))
def test_a_backup_reads_back_as_it_was_written(server: MadeServer, codec: Codec) -> None:
    place = new_place()
    done = archived(place, server, codec=codec)
    view = newest(place)
    assert (done.exit_code, view.name, zxids(view)) == (0, done.name, [(1, 3), (4, 8)])
    assert bytes_of(view) == {
        ("zk1", "1", "snapshot.2", 2): (server.snapshot_dir / "snapshot.2").read_bytes(),
        ("zk1", "1", "log.1", 1): LOG_HEADER + b"".join(map(txn, (1, 2, 3))),
        ("zk1", "1", "log.4", 4): LOG_HEADER + b"".join(map(txn, (4, 5, 6, 7, 8))),
    }
    assert view.members[0].zxid == 8
    verifier = Verifier(place, InlineEngine(), this_process("verify"), utc_now, random_token)
    assert verifier.verify(BackupId(int(done.name)), "data").document.verdict == GOOD


def test_the_next_backup_stores_only_what_is_new(server: MadeServer) -> None:
    place = new_place()
    archived(place, server)
    before = {info.name for info in place.store.list("sources/zk/txnlogs/")}
    server.add(server.log_dir / "log.4", [9, 10])
    server.log([11, 12])
    server.snapshot(10)
    server.zxid = 12
    archived(place, server)
    view = newest(place)
    assert zxids(view) == [(1, 3), (4, 8), (9, 10), (11, 12)]
    assert [s.zxid for s in view.snapshots] == [2, 10]
    assert len({info.name for info in place.store.list("sources/zk/txnlogs/")} - before) == 2
    first = bytes_of(view)[("zk1", "1", "log.4", 9)]
    assert first == LOG_HEADER + txn(9) + txn(10)


def test_a_backup_with_nothing_new_holds_the_same(server: MadeServer) -> None:
    place = new_place()
    archived(place, server)
    archived(place, server)
    assert zxids(newest(place)) == [(1, 3), (4, 8)]


@pytest.mark.parametrize("kind", ["txnlogs", "snapshots"])
def test_a_backup_on_what_is_known_to_be_damaged_is_none_to_rely_on(
    server: MadeServer, tmp_path: Path, kind: str
) -> None:
    place = new_local_place(tmp_path / "repository")
    archived(place, server)
    view = newest(place)
    name = view.object_name(view.logs[0] if kind == "txnlogs" else view.snapshots[0])
    stored = tmp_path / "repository" / name
    stored.chmod(0o600)
    stored.write_bytes(stored.read_bytes()[:-1] + b"?")
    verifier = Verifier(place, InlineEngine(), this_process("verify"), utc_now, random_token)
    assert verifier.verify(BackupId(int(view.name)), "data").document.verdict == DAMAGED
    server.snapshot(8)
    server.log([9])
    server.zxid = 9
    (server.log_dir / "log.1").unlink()
    (server.snapshot_dir / "snapshot.2").unlink()
    done = archived(place, server)
    assert [(f.code, f.where) for f in done.findings] == [("rests-on-damage", name)]
    assert done.exit_code == 21
    anew = archived(place, server, new_history=True)
    assert (anew.findings, anew.exit_code) == ([], 0)
    assert zxids(newest(place)) == [(4, 8), (9, 9)]


def test_an_epoch_that_begins_between_two_backups_leaves_no_gap(server: MadeServer) -> None:
    place = new_place()
    archived(place, server)
    server.log([EPOCH + 1, EPOCH + 2])
    server.zxid = EPOCH + 2
    archived(place, server)
    manifest = read_manifest(place, read_chain(place).completed[-1])
    assert manifest.gaps == ()
    assert zxids(newest(place))[-1] == (EPOCH + 1, EPOCH + 2)


def test_lost_transactions_are_known_gaps(server: MadeServer) -> None:
    place = new_place()
    archived(place, server)
    server.log([11, 12])
    server.zxid = 12
    done = archived(place, server)
    manifest = read_manifest(place, read_chain(place).completed[-1])
    assert [(g.start, g.end) for g in manifest.gaps] == [(9, 11)]
    assert done.exit_code == 21
    server.log([13])
    server.zxid = 13
    archived(place, server)  # the gap is inherited, and is no loss of the third
    assert [(g.start, g.end) for g in read_manifest(place, read_chain(place).completed[-1]).gaps] == [(9, 11)]


def test_what_the_server_purged_stays_unless_a_window_is_wished(server: MadeServer) -> None:
    place = new_place()
    archived(place, server)
    server.snapshot(8)
    server.log([9])
    server.zxid = 9
    (server.log_dir / "log.1").unlink()
    (server.snapshot_dir / "snapshot.2").unlink()
    archived(place, server)
    assert [s.zxid for s in newest(place).snapshots] == [2, 8]
    assert zxids(newest(place)) == [(1, 3), (4, 8), (9, 9)]
    archived(place, server, window=timedelta(days=1))  # the transactions of the tests are years old
    view = newest(place)
    assert ([s.zxid for s in view.snapshots], zxids(view)) == ([8], [(9, 9)])
    table = rows_of(PartReader(place), view.manifest, served_parts(view.manifest, read_chain(place)))
    assert {s.first for s in table.to_segments() if s.log.collection is Collection.TXNLOGS} == {9}


def test_a_tail_that_nobody_proved_is_not_what_the_next_backup_continues(server: MadeServer) -> None:
    """The server may rewrite it: that is no other history."""
    place = new_place()
    server.zxid = None
    archived(place, server)
    assert zxids(newest(place)) == [(1, 2), (3, 3), (4, 8)]
    server.log([3, 4, 5], data=b"rewritten")
    server.log([1, 2])
    (server.log_dir / "log.4").unlink()
    server.zxid = 5
    archived(place, server)
    view = newest(place)
    assert zxids(view) == [(1, 2), (3, 5)]
    assert bytes_of(view)[("zk1", "1", "log.3", 3)] == LOG_HEADER + b"".join(txn(z, b"rewritten") for z in (3, 4, 5))


def test_a_snapshot_that_was_written_anew_under_its_name_is_stored_anew(server: MadeServer) -> None:
    place = new_place()
    archived(place, server)
    server.snapshot(2, until=3)
    archived(place, server)
    (snapshot,) = newest(place).snapshots
    assert snapshot.fuzzy_end == 3
    archived(place, server)
    assert len(list(place.store.list("sources/zk/snapshots/"))) == 2


def test_a_damaged_file_is_kept_as_it_is(server: MadeServer) -> None:
    broken = bytearray((server.log_dir / "log.4").read_bytes())
    broken[len(LOG_HEADER) + len(txn(4)) + 40] ^= 1
    (server.log_dir / "log.4").write_bytes(broken)
    place = new_place()
    done = archived(place, server)
    assert done.exit_code == 21
    (record,) = newest(place).record.damaged
    stored = next(i.name for i in place.store.list("sources/zk/snapshots/zk1/damaged/"))
    assert (record.name, place.store.get(stored, 1 << 30)) == ("log.4", bytes(broken))


def test_the_end_of_an_epoch_that_nothing_proves_is_a_known_gap(tmp_path: Path) -> None:
    """No digests, and too few members: what came last in the epoch before is not known."""
    made = MadeServer(tmp_path / "server", zxid=EPOCH + 1, mode="follower")
    made.snapshot(2)
    made.log([1, 2, 3, EPOCH + 1])
    place = new_place()
    archived(place, made)
    (gap,) = read_manifest(place, read_chain(place).completed[-1]).gaps
    assert (gap.start, gap.end, gap.reason) == (4, EPOCH + 1, "end of epoch 0 unproven")


class TestHistory:
    def test_a_tail_that_was_rewritten_is_refused(self, server: MadeServer) -> None:
        place = new_place()
        archived(place, server)
        server.log([4, 5, 6, 7, 8], data=b"other")
        with pytest.raises(HistoryUnproven, match="another transaction") as refused:
            archived(place, server)
        assert refused.value.exit_code == 31
        assert len(read_chain(place).completed) == 1

    def test_a_purge_that_outran_us_is_a_loss_and_no_other_history(self, tmp_path: Path) -> None:
        """Untouched nodes of the archived tree are in the later snapshot: that is evidence."""
        place = new_place()
        made = MadeServer(tmp_path / "server", zxid=3)
        made.snapshot(0)
        made.log([1, 2, 3], creating=True)
        archived(place, made)
        later = MadeServer(tmp_path / "later", zxid=31)
        later.snapshot(30, nodes=(1, 2, 3))
        later.log([31])
        done = archived(place, later)
        assert done.exit_code == 21
        gaps = read_manifest(place, read_chain(place).completed[-1]).gaps
        assert [(g.start, g.end) for g in gaps] == [(4, 31)]
        strange = MadeServer(tmp_path / "strange", zxid=51)
        strange.snapshot(50, nodes=(1, 2, 9))
        strange.log([51])
        with pytest.raises(HistoryUnproven):
            archived(place, strange)

    def test_another_ensemble_is_refused(self, server: MadeServer, tmp_path: Path) -> None:
        place = new_place()
        archived(place, server)
        other = MadeServer(tmp_path / "other", zxid=30)
        other.snapshot(20)
        other.log(range(21, 31))
        with pytest.raises(HistoryUnproven, match="begin after"):
            archived(place, other)
        with pytest.raises(HistoryUnproven, match="none of the archived"):
            archived(place, other, name="zk2")

    def test_logs_that_end_before_the_archive_does_are_refused(self, server: MadeServer) -> None:
        place = new_place()
        archived(place, server)
        server.log([4, 5, 6])
        server.zxid = 6
        with pytest.raises(HistoryUnproven, match="do not hold the last"):
            archived(place, server)

    def test_a_new_history_may_hold_the_same_zxids(self, server: MadeServer) -> None:
        place = new_place()
        archived(place, server)
        server.log([4, 5, 6, 7, 8], data=b"other")
        archived(place, server, new_history=True)
        view = newest(place)
        assert {(log.history, log.first, log.last) for log in view.logs} == {("2", 1, 3), ("2", 4, 8)}
        assert bytes_of(view)[("zk1", "2", "log.4", 4)] == LOG_HEADER + b"".join(txn(z, b"other") for z in range(4, 9))
        server.add(server.log_dir / "log.4", [9])
        server.zxid = 9
        archived(place, server)
        assert {log.history for log in newest(place).logs} == {"2"}

    def test_a_member_that_was_never_archived_joins_by_records_it_shares(
        self, server: MadeServer, tmp_path: Path
    ) -> None:
        place = new_place()
        archived(place, server)
        follower = MadeServer(tmp_path / "follower", zxid=9)
        follower.snapshot(5)
        follower.log([6, 7, 8, 9])
        archived(place, follower, name="zk2")
        view = newest(place)
        assert (zxids(view, "zk1"), zxids(view, "zk2")) == ([(1, 3), (4, 8)], [(6, 9)])


def test_several_members_are_one_backup(server: MadeServer, tmp_path: Path) -> None:
    place = new_place()
    other = MadeServer(tmp_path / "other", zxid=7)
    other.snapshot(5)
    other.log([6, 7])
    archived_all(place, [server, other])
    view = newest(place)
    assert (zxids(view, "zk1"), zxids(view, "zk2")) == ([(1, 3), (4, 8)], [(6, 7)])
    other.add(other.log_dir / "log.6", [8, 9])
    other.zxid = 9
    archived_all(place, [server, other])
    assert zxids(newest(place), "zk2") == [(6, 7), (8, 9)]


def test_an_unproven_tail_says_so_in_the_rows(server: MadeServer) -> None:
    server.zxid = None
    place = new_place()
    done = archived(place, server)
    assert {log.first: log.proof for log in newest(place).logs} == {
        1: Proof.PROVEN,
        3: Proof.UNPROVEN,
        4: Proof.UNPROVEN,
    }
    assert done.exit_code == 2


def test_a_view_travels_to_a_task(server: MadeServer, tmp_path: Path) -> None:
    place = new_local_place(tmp_path / "repository")
    archived(place, server)
    view = newest(place)
    assert pickle.loads(pickle.dumps(view)).logs == view.logs  # noqa: S301 - our own bytes


class TestConversion:
    @pytest.mark.parametrize("codec", list(Codec))
    def test_there_and_back_is_the_same(self, server: MadeServer, tmp_path: Path, codec: Codec) -> None:
        bundle, _ = bundled(server, tmp_path / "out", codec=codec)
        place = new_place()
        with archiving(place, clock=utc_now, tokens=random_token, tags=("one",)) as sink:
            done = import_bundle(bundle, sink, INLINE)
        assert done.exit_code == 0
        view = newest(place)
        assert zxids(view, "standalone") == [(1, 3), (4, 8)]
        with new_bundle(tmp_path / "back", "two", clock=utc_now, tokens=random_token, codec=codec) as back:
            export_backup(view, back, INLINE)
        assert content(BundleView(tmp_path / "back" / "two")) == content(bundle)

    def test_the_next_night_continues_the_first(self, server: MadeServer, tmp_path: Path) -> None:
        place = new_place()
        first, _ = bundled(server, tmp_path / "out", "first", codec=Codec.GZIP)
        server.add(server.log_dir / "log.4", [9, 10])
        server.zxid = 10
        second, _ = bundled(server, tmp_path / "out", "second", codec=Codec.GZIP)
        for bundle in (first, second):
            with archiving(place, clock=utc_now, tokens=random_token) as sink:
                import_bundle(bundle, sink, INLINE)
        assert zxids(newest(place), "standalone") == [(1, 3), (4, 8), (9, 10)]
        with new_bundle(tmp_path / "back", "x", clock=utc_now, tokens=random_token) as back:
            export_backup(newest(place), back, INLINE)
        assert content(BundleView(back.path)) == content(second)  # pieces of one file are one file again
        with archiving(place, clock=utc_now, tokens=random_token) as sink, pytest.raises(HistoryUnproven):
            import_bundle(first, sink, INLINE)

    def test_one_member_of_several_must_be_named(self, server: MadeServer, tmp_path: Path) -> None:
        place = new_place()
        other = MadeServer(tmp_path / "other", zxid=7)
        other.snapshot(5)
        other.log([6, 7])
        archived_all(place, [server, other])
        with new_bundle(tmp_path / "out", "x", clock=utc_now, tokens=random_token) as sink:
            with pytest.raises(UsageError, match="--member"):
                export_backup(newest(place), sink, INLINE)
            export_backup(newest(place), sink, INLINE, "zk2")
        assert sorted(content(BundleView(tmp_path / "out" / "x"))) == ["log.6", "snapshot.5"]

    def test_damage_stops_an_export(self, server: MadeServer, tmp_path: Path) -> None:
        from logkeep.errors import Damaged  # noqa: PLC0415

        bundle, _ = bundled(server, tmp_path / "out")
        path = stored_path(bundle, bundle.logs[1])
        whole = bytearray(path.read_bytes())
        whole[50] ^= 1
        path.write_bytes(whole)
        with new_bundle(tmp_path / "back", "x", clock=utc_now, tokens=random_token) as sink, pytest.raises(Damaged):
            export_backup(bundle, sink, INLINE)
        assert not (tmp_path / "back" / "x").exists()
        shutil.rmtree(tmp_path / "out")
