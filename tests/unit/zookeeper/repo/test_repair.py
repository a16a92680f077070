"""Damage in a repository: pieces that the server still has are copied again, others are mended from who has them."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from logkeep.errors import HistoryUnproven, UnknownBackup
from logkeep.formats.zookeeper.txnlog import scan
from logkeep.model.ids import BackupId
from logkeep.model.segments import Codec
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.verdicts import DAMAGED, GOOD
from logkeep.repository.backups.verification import known_damaged
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import collect
from logkeep.repository.upkeep.prune import delete
from logkeep.zookeeper.model.archived import BackupView, Member
from logkeep.zookeeper.repair.plan import Repair
from logkeep.zookeeper.verify.directory_view import directory_view
from logkeep.zookeeper.verify.run import Level
from tests.crash.points import AT_ONCE
from tests.support.zookeeper.encoding import LOG_HEADER
from tests.support.zookeeper.handmade_directories import MadeServer, txn
from tests.support.zookeeper.merged_backups import Growing, everything, optimize
from tests.support.zookeeper.repaired_backups import beside, byte_in, damage, ids, previewed, repaired, verified, viewed
from tests.support.zookeeper.repositories import archived, archived_all, bytes_of, new_local_place, newest, zxids


@pytest.fixture
def server(tmp_path: Path) -> MadeServer:
    """A snapshot at 2 and two logs up to 8."""
    made = MadeServer(tmp_path / "server", zxid=8, log_apart=True)
    made.snapshot(2)
    made.log([1, 2, 3])
    made.log([4, 5, 6, 7, 8])
    return made


@pytest.fixture
def place(tmp_path: Path) -> SourceRef:
    return new_local_place(tmp_path / "repository")


class TestCopiedAgain:
    @pytest.mark.parametrize(("which", "codec"), [(0, Codec.NONE), (2, Codec.ZSTD), (-1, Codec.GZIP), (-1, Codec.NONE)])
    def test_what_the_server_still_has_is_copied_again_and_serves_all_backups(
        self, server: MadeServer, place: SourceRef, which: int, codec: Codec
    ) -> None:
        """A whole file, a piece of one, or a snapshot."""
        archived(place, server, codec=codec)
        server.add(server.log_dir / "log.4", [9, 10])
        server.zxid = 10
        archived(place, server, codec=codec)
        expected = [bytes_of(viewed(place, backup_id)) for backup_id in ids(place)]
        view = newest(place)
        name = damage(place, view, view.logs[which] if which >= 0 else view.snapshots[0])
        assert verified(place, ids(place)[-1]).document.verdict == DAMAGED
        done = archived(place, server)
        assert [(f.code, f.where) for f in done.findings] == [("copied-again", name)]
        assert "nothing is lost" in done.findings[0].what
        assert done.exit_code == 2
        assert [bytes_of(viewed(place, backup_id)) for backup_id in ids(place)] == [*expected, expected[-1]]
        assert [verified(place, backup_id).document.verdict for backup_id in ids(place)] == [GOOD] * 3
        assert not known_damaged(place, ids(place))
        assert archived(place, server).exit_code == 0

    def test_an_object_that_is_gone_is_copied_again(self, server: MadeServer, place: SourceRef) -> None:
        archived(place, server)
        view = newest(place)
        place.store.delete(view.object_name(view.logs[1]))
        assert verified(place, ids(place)[-1], Level.FILES).document.verdict == DAMAGED
        done = archived(place, server)
        assert [f.code for f in done.findings] == ["copied-again"]
        assert [verified(place, backup_id).document.verdict for backup_id in ids(place)] == [GOOD] * 2

    def test_other_transactions_under_the_same_numbers_are_not_taken(
        self, server: MadeServer, place: SourceRef
    ) -> None:
        archived(place, server)
        view = newest(place)
        name = damage(place, view, view.logs[0])
        verified(place, ids(place)[-1])
        server.log([1, 2, 3], data=b"else")
        done = archived(place, server)
        assert ([(f.code, f.where) for f in done.findings], done.exit_code) == ([("rests-on-damage", name)], 21)
        assert "zookeeper repair" in done.findings[0].remedy

    def test_what_the_server_has_no_more_stays_a_loss_beside_what_it_has(
        self, server: MadeServer, place: SourceRef
    ) -> None:
        archived(place, server)
        view = newest(place)
        names = [damage(place, view, log) for log in view.logs]
        verified(place, ids(place)[-1])
        server.snapshot(3)
        (server.log_dir / "log.1").unlink()
        done = archived(place, server)
        assert {f.code: f.where for f in done.findings} == {"copied-again": names[1], "rests-on-damage": names[0]}
        assert done.exit_code == 21


class TestRepair:
    def test_nothing_damaged_is_nothing_done(self, server: MadeServer, place: SourceRef) -> None:
        archived(place, server)
        generation = read_chain(place).generation
        done = repaired(place, ids(place)[0])
        assert (done.foreseen.damaged, done.repaired) == ((), {})
        assert read_chain(place).generation == generation
        with pytest.raises(UnknownBackup):
            repaired(place, 7)

    def test_another_member_gives_back_what_is_lost_to_all_backups(
        self, server: MadeServer, place: SourceRef, tmp_path: Path
    ) -> None:
        other = MadeServer(tmp_path / "other", zxid=8)
        other.snapshot(2)
        other.log(range(3, 9))
        archived_all(place, [server, other])
        server.log([9])
        server.zxid = 9
        archived_all(place, [server, other])
        expected = [bytes_of(viewed(place, backup_id)) for backup_id in ids(place)]
        view = newest(place)
        name = damage(place, view, view.logs[1])
        assert verified(place, ids(place)[0]).also_damaged == (ids(place)[1],)
        done = repaired(place, ids(place)[0])
        assert [plan.kind for plan in done.foreseen.repairs] == [Repair.SPLICED]
        assert list(done.names.values()) == [name]
        assert [bytes_of(viewed(place, backup_id)) for backup_id in ids(place)] == expected
        assert [verified(place, backup_id).document.verdict for backup_id in ids(place)] == [GOOD, GOOD]
        assert newest(place).repaired == 1
        assert place.store.head(name).size, "the original stays"

    @pytest.mark.parametrize("which", ["log", "snapshot"])
    def test_another_history_of_the_same_server_is_a_donor(
        self, server: MadeServer, place: SourceRef, which: str
    ) -> None:
        archived(place, server)
        archived(place, server, new_history=True)
        first = ids(place)[0]
        expected, view = bytes_of(viewed(place, first)), viewed(place, first)
        damage(place, view, view.logs[1] if which == "log" else view.snapshots[0])
        done = repaired(place, first)
        assert len(done.repaired) == 1
        assert verified(place, first).document.verdict == GOOD
        assert bytes_of(viewed(place, first)) == expected

    def test_a_directory_beside_it_is_a_donor(self, server: MadeServer, place: SourceRef) -> None:
        archived(place, server)
        expected, view = bytes_of(newest(place)), newest(place)
        damage(place, view, view.logs[1])
        beside = directory_view(Member(name="zk2", data_dir=str(server.snapshot_dir), log_dir=str(server.log_dir)))
        done = repaired(place, ids(place)[0], beside)
        (mend,) = done.repaired.values()
        assert "0x8 taken from the directories of zk2, member zk2" in mend.provenance
        assert bytes_of(newest(place)) == expected

    def test_what_nobody_has_is_named_and_the_rest_of_it_serves(self, server: MadeServer, place: SourceRef) -> None:
        archived(place, server)
        first, view = ids(place)[0], newest(place)
        name = damage(place, view, view.logs[1], len(LOG_HEADER) + 2 * len(txn(4)) + 40)
        assert repaired(place, first).repaired == {}, "nobody accepted the loss"
        done = repaired(place, first, accept_loss=True)
        (plan,) = done.foreseen.repairs
        assert (plan.kind, plan.lost) == (Repair.SPLIT, ((6, 6),))
        assert zxids(viewed(place, first)) == [(1, 3), (4, 5), (7, 8)]
        found = verified(place, first)
        assert found.document.verdict == DAMAGED
        assert {"lost-transactions", "end-unreachable"} <= {f.code for f in found.findings}
        pieces = bytes_of(viewed(place, first))
        assert pieces["zk1", "1", "log.4", 4] == LOG_HEADER + txn(4) + txn(5)
        assert pieces["zk1", "1", "log.4", 7] == LOG_HEADER + txn(7) + txn(8)
        for piece in pieces.values():
            assert not piece.startswith(LOG_HEADER) or not scan(io.BytesIO(piece)).damage
        assert place.store.head(name).size

    def test_the_next_backup_goes_on_behind_a_loss_and_verify_tells_of_it(
        self, server: MadeServer, place: SourceRef
    ) -> None:
        archived(place, server)
        view = newest(place)
        damage(place, view, view.logs[1], len(LOG_HEADER) + 2 * len(txn(4)) + 40)
        repaired(place, ids(place)[0], accept_loss=True)
        server.snapshot(8)
        server.log([9])
        server.zxid = 9
        for _ in range(2):
            archived(place, server)
            assert zxids(newest(place)) == [(1, 3), (4, 5), (7, 8), (9, 9)]
            found = verified(place, ids(place)[-1])
            assert (found.document.verdict, [f.code for f in found.findings]) == (GOOD, ["lost-transactions"])

    def test_an_end_that_is_lost_comes_from_the_server_with_the_next_backup(
        self, server: MadeServer, place: SourceRef
    ) -> None:
        archived(place, server)
        view = newest(place)
        damage(place, view, view.logs[1], len(LOG_HEADER) + 4 * len(txn(4)) + 40)
        repaired(place, ids(place)[0], accept_loss=True)
        assert zxids(newest(place)) == [(1, 3), (4, 7)]
        done = archived(place, server)
        assert (zxids(newest(place)), done.exit_code) == ([(1, 3), (4, 7), (8, 8)], 0)

    def test_a_backup_whose_end_is_lost_is_damaged_though_all_that_is_left_is_whole(
        self, server: MadeServer, place: SourceRef
    ) -> None:
        archived(place, server)
        server.snapshot(8)
        server.log([9])
        server.zxid = 9
        archived(place, server)
        view = newest(place)
        damage(place, view, view.logs[1], len(LOG_HEADER) + 4 * len(txn(4)) + 40)
        repaired(place, ids(place)[1], accept_loss=True)
        first, second = (verified(place, backup_id) for backup_id in ids(place))
        assert (second.document.verdict, [f.code for f in second.findings]) == (GOOD, ["lost-transactions"])
        assert (first.document.verdict, [f.code for f in first.findings]) == (DAMAGED, ["end-unreachable"])
        assert "it was taken up to 0x8" in first.findings[0].what

    def test_a_snapshot_that_nobody_has_is_not_used_any_more(self, server: MadeServer, place: SourceRef) -> None:
        server.snapshot(5)
        archived(place, server)
        view = newest(place)
        damage(place, view, view.snapshots[1])
        assert verified(place, ids(place)[0]).document.verdict == DAMAGED
        assert repaired(place, ids(place)[0]).repaired == {}
        repaired(place, ids(place)[0], accept_loss=True)
        assert [s.zxid for s in newest(place).snapshots] == [2]
        assert verified(place, ids(place)[0]).document.verdict == GOOD
        assert archived(place, server).exit_code == 0
        assert [s.zxid for s in newest(place).snapshots] == [2, 5]

    def test_of_the_only_snapshot_nothing_can_be_made(self, server: MadeServer, place: SourceRef) -> None:
        archived(place, server)
        view = newest(place)
        damage(place, view, view.snapshots[0])
        assert repaired(place, ids(place)[0], accept_loss=True).repaired == {}
        assert [s.zxid for s in newest(place).snapshots] == [2]
        assert verified(place, ids(place)[0]).document.verdict == DAMAGED

    def test_whole_records_that_are_not_those_that_were_archived_are_no_repair(
        self, server: MadeServer, place: SourceRef
    ) -> None:
        archived(place, server)
        view = newest(place)
        path = Path(place.store.url.removeprefix("file://")) / view.object_name(view.logs[0])
        path.chmod(0o600)
        path.write_bytes(LOG_HEADER + txn(1) + txn(2, b"evil") + txn(3))
        assert repaired(place, ids(place)[0], accept_loss=True).repaired == {}
        assert verified(place, ids(place)[0]).document.verdict == DAMAGED


class TestForeseen:
    """What a preview says is what a run does, and what is left has a reason."""

    @pytest.mark.parametrize("accept_loss", [True, False])
    @pytest.mark.parametrize("case", ["lost", "spliced", "evil", "snapshot", "only-snapshot", "gone"])
    def test_a_preview_leaves_what_a_run_leaves(
        self, server: MadeServer, place: SourceRef, case: str, accept_loss: bool
    ) -> None:
        if case != "only-snapshot":
            server.snapshot(5)
        archived(place, server)
        view = newest(place)
        name = damage(place, view, view.logs[0] if "snapshot" not in case else view.snapshots[-1], byte_in(1))
        if case in ("evil", "gone"):
            place.store.delete(name)
        if case == "evil":
            place.store.put_new(name, LOG_HEADER + txn(1) + txn(2, b"evil") + txn(3))
        helping = [beside(server)] if case == "spliced" else []
        foreseen = previewed(place, ids(place)[0], *helping, accept_loss=accept_loss)
        done = repaired(place, ids(place)[0], *helping, accept_loss=accept_loss)
        assert foreseen.left == done.left
        assert done.repaired.keys() == set(foreseen.foreseen.damaged) - foreseen.left.keys()
        mended = case == "spliced" or (accept_loss and case in ("lost", "snapshot"))
        assert bool(done.repaired) == mended
        assert all(done.left.values())


class TestMergedObjects:
    """Pieces of several backups in one object, which is damaged later; or damaged pieces that are merged later."""

    @pytest.fixture
    def growing(self, tmp_path: Path, place: SourceRef) -> Growing:
        growing = Growing(tmp_path / "growing", place)
        for _ in range(3):
            growing.backup()
        return growing

    def beside(self, growing: Growing) -> BackupView:
        return directory_view(Member(name="zk2", data_dir=str(growing.server.snapshot_dir)))

    def good(self, place: SourceRef) -> None:
        assert {verified(place, backup_id).document.verdict for backup_id in ids(place)} == {GOOD}

    @pytest.mark.parametrize("named", [True, False])
    def test_what_was_merged_is_mended_for_all_and_stays(self, growing: Growing, place: SourceRef, named: bool) -> None:
        """Whether a backup was committed with the merged object or not."""
        optimize(place)
        if named:
            growing.backup()
        before, view = everything(place), newest(place)
        name = damage(place, view, view.logs[0], 60)
        verified(place, ids(place)[-1])
        growing.backup()
        assert everything(place).items() >= before.items()
        self.good(place)
        with writing(place, "gc", utc_now, random_token) as session:
            collect(session, AT_ONCE)
        assert place.store.head(name).size
        assert everything(place).items() >= before.items()

    def test_a_backup_that_ends_within_it_has_all_of_it_mended(self, growing: Growing, place: SourceRef) -> None:
        optimize(place)
        before, view = everything(place), newest(place)
        damage(place, view, view.logs[0], 60)
        assert len(repaired(place, ids(place)[1], self.beside(growing)).repaired) == 1
        assert everything(place) == before
        self.good(place)

    @pytest.fixture
    def orphan(self, growing: Growing, place: SourceRef) -> str:
        """A damaged object that no backup has all of: the one that had is deleted. Its name."""
        growing.backup()
        optimize(place)
        with writing(place, "delete", utc_now, random_token) as session:
            delete(session, [BackupId(ids(place)[-1])], "test")
        growing.backup()
        view = newest(place)
        assert zxids(view) == [(1, 1), (2, 2), (3, 3), (4, 4), (5, 6)]
        return damage(place, view, view.logs[0], 60)

    @pytest.mark.parametrize("which", [0, -1])
    def test_what_no_backup_has_all_of_is_mended_as_one(
        self, growing: Growing, place: SourceRef, orphan: str, which: int
    ) -> None:
        done = repaired(place, ids(place)[which], self.beside(growing))
        assert [done.names[kept] for kept in done.repaired] == [orphan]
        self.good(place)
        assert repaired(place, ids(place)[-1]).foreseen.damaged == ()

    def test_what_no_backup_has_all_of_is_copied_again_as_one(
        self, growing: Growing, place: SourceRef, orphan: str
    ) -> None:
        assert verified(place, ids(place)[-1]).document.verdict == DAMAGED
        done = archived(place, growing.server)
        assert [(f.code, f.where) for f in done.findings] == [("copied-again", orphan)]
        self.good(place)

    def test_what_was_mended_is_merged_with_its_neighbours(self, growing: Growing, place: SourceRef) -> None:
        before, view = everything(place), newest(place)
        damage(place, view, view.logs[1], 60)
        assert len(repaired(place, ids(place)[-1], self.beside(growing)).repaired) == 1
        optimize(place)
        growing.backup()
        optimize(place)
        assert everything(place).items() >= before.items()
        self.good(place)


def test_what_is_left_of_a_piece_is_not_merged_while_a_backup_names_all_of_it(
    server: MadeServer, place: SourceRef
) -> None:
    archived(place, server)
    view = newest(place)
    damage(place, view, view.logs[1], len(LOG_HEADER) + 2 * len(txn(4)) + 40)
    repaired(place, ids(place)[0], accept_loss=True)
    for zxid in (9, 11):
        server.add(server.log_dir / "log.4", [zxid, zxid + 1])
        server.zxid = zxid + 1
        archived(place, server)
    before = everything(place)
    assert optimize(place).objects_before == 2
    assert zxids(newest(place)) == [(1, 3), (4, 5), (7, 8), (9, 12)]
    assert everything(place) == before


def _by_repair(place: SourceRef, server: MadeServer) -> None:
    beside = directory_view(Member(name="zk2", data_dir=str(server.snapshot_dir), log_dir=str(server.log_dir)))
    repaired(place, ids(place)[0], beside)


def _by_backup(place: SourceRef, server: MadeServer) -> None:
    verified(place, ids(place)[0])
    archived(place, server)


@pytest.mark.parametrize("mend", [_by_repair, _by_backup])
def test_originals_stay_until_the_backups_that_had_them_go(
    server: MadeServer, place: SourceRef, mend: Callable[[SourceRef, MadeServer], None]
) -> None:
    archived(place, server)
    view = newest(place)
    name = damage(place, view, view.logs[1])
    mend(place, server)
    with writing(place, "gc", utc_now, random_token) as session:
        collect(session, AT_ONCE)
    assert place.store.head(name).size
    archived(place, server)
    with writing(place, "gc", utc_now, random_token) as session:
        delete(session, [BackupId(each) for each in ids(place)[:-1]], "test")
        collect(session, AT_ONCE)
    assert name not in {info.name for info in place.store.list("sources/zk/txnlogs/")}
    assert verified(place, ids(place)[-1]).document.verdict == GOOD


@pytest.mark.parametrize("digest", [True, False])
@pytest.mark.parametrize("missing", [True, False])
def test_damage_where_the_proof_of_a_history_would_be_is_named(
    server: MadeServer, place: SourceRef, digest: bool, missing: bool
) -> None:
    """The logs that continue the archive were purged: a snapshot must prove it, by its digest or by its nodes."""
    archived(place, server)
    view = newest(place)
    name = damage(place, view, view.logs[1], byte_in(1))
    if missing:
        place.store.delete(name)
    server.snapshot(8, digest=digest)
    for path in (*server.log_dir.glob("log.*"), server.snapshot_dir / "snapshot.2"):
        path.unlink()
    server.log([9, 10])
    server.zxid = 10
    with pytest.raises(HistoryUnproven) as raised:
        archived(place, server)
    assert name in raised.value.what
    assert "logkeep zookeeper repair" in raised.value.remedy
