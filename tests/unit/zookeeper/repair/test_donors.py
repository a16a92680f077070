"""Who gives records to a damaged log of a repository, and who must not: every byte that is taken must be certain."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import msgspec
import pytest

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.txnlog import tables
from logkeep.model.segments import Proof
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain.commits import SourceRef
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, BackupView
from logkeep.zookeeper.repair.plan import Repair, RepairPlan
from logkeep.zookeeper.repair.run import plan_backup_repair, repair
from logkeep.zookeeper.repo import repair_donors
from logkeep.zookeeper.verify.directory_view import DirectoryView
from tests.support.zookeeper.handmade_directories import MadeServer
from tests.support.zookeeper.handmade_history import MemorySink, MemoryView, Past, backup_of
from tests.support.zookeeper.repaired_backups import beside, byte_in, damage, ids, previewed, repaired, verified, viewed
from tests.support.zookeeper.repositories import archived, bytes_of, new_place, zxids


@pytest.fixture
def place() -> SourceRef:
    return new_place()


@pytest.fixture
def server(tmp_path: Path) -> MadeServer:
    made = MadeServer(tmp_path / "server")
    made.snapshot(0)
    return made


def damaged_first(place: SourceRef, *records: int, log: int = 0) -> int:
    """These records of a log of the first backup are damaged; its id."""
    first = ids(place)[0]
    view = viewed(place, first)
    damage(place, view, view.logs[log], *map(byte_in, records))
    return first


class TestTheSameObject:
    def test_an_object_that_another_backup_shares_is_not_its_own_donor(
        self, server: MadeServer, place: SourceRef
    ) -> None:
        log, server.zxid = server.log(range(1, 7)), 6
        archived(place, server)
        server.add(log, [7, 8])
        server.zxid = 8
        archived(place, server)
        first = damaged_first(place, 5)
        for done in (previewed(place, first), repaired(place, first)):
            (plan,) = done.foreseen.repairs
            assert (plan.kind, plan.lost, plan.spliced, done.repaired) == (Repair.SPLIT, ((6, 6),), (), {})
            assert done.donors == (f"backup {first} itself",)
        assert len(repaired(place, first, accept_loss=True).repaired) == 1

    def test_what_nobody_has_keeps_nothing_else_from_being_mended(
        self, server: MadeServer, place: SourceRef, tmp_path: Path
    ) -> None:
        server.log(range(1, 7))
        log, server.zxid = server.log(range(7, 10)), 9
        archived(place, server)
        server.add(log, [10])
        server.zxid = 10
        archived(place, server)
        other = MadeServer(tmp_path / "other")
        other.log(range(7, 10))
        damaged_first(place, 5)
        first = damaged_first(place, 2, log=1)
        done = repaired(place, first, beside(other))
        assert [kept.name for kept in done.repaired] == ["log.7"]
        assert [kept.name for kept in done.left] == ["log.1"]

    def test_a_damaged_donor_gives_what_lies_on_both_sides_of_its_damage(
        self, server: MadeServer, place: SourceRef
    ) -> None:
        server.log(range(1, 9))
        server.zxid = 8
        archived(place, server)
        archived(place, server, new_history=True)
        second = viewed(place, ids(place)[1])
        expected = bytes_of(viewed(place, ids(place)[0]))
        damage(place, second, second.logs[0], byte_in(5))
        first = damaged_first(place, 3)
        assert len(repaired(place, first).repaired) == 1
        assert bytes_of(viewed(place, first)) == expected
        damaged_first(place, 6)
        done = repaired(place, first)
        assert [donor.runs for case in done.foreseen.cases for donor in case.donors] == [((1, 5), (7, 8))]
        assert [plan.lost for plan in done.foreseen.repairs] == [()]
        assert bytes_of(viewed(place, first)) == expected
        damaged_first(place, 5)
        assert [plan.lost for plan in repaired(place, first).foreseen.repairs] == [((6, 6),)]


class _Fading:
    """A view whose logs can be read a few times, and never again."""

    def __init__(self, of: BackupView, times: int) -> None:
        self.of, self.left = of, times
        self.name, self.members, self.snapshots, self.logs = of.name, of.members, of.snapshots, of.logs

    def open(self, kept: ArchivedSnapshot | ArchivedLog) -> BinaryIO:
        self.left -= 1
        if self.left < 0:
            raise Damaged("gone", subject=kept.name)
        return self.of.open(kept)

    def salvage(self, kept: ArchivedLog) -> BinaryIO:
        return self.open(kept)

    def unsealed(self, _kept: ArchivedSnapshot | ArchivedLog) -> bool:
        return False


class TestDonorsThatFail:
    PAST = Past(range(1, 11))

    def whole(self) -> MemoryView:
        return backup_of(self.PAST, snapshot_at=[0], logs=[range(1, 11)])

    def damaged(self) -> MemoryView:
        """Without its fourth transaction."""
        view = self.whole()
        (log,) = view.logs
        content = bytearray(view.objects[log])
        content[16 + 3 * len(self.PAST.records[1]) + 40] ^= 4
        view.objects[log] = bytes(content)
        return view

    @pytest.mark.parametrize("times", range(12))
    def test_nothing_is_promised_that_was_not_read(self, times: int) -> None:
        (plan,) = plan_backup_repair(self.damaged(), earlier=[_Fading(self.whole(), times)]).repairs
        assert plan.whole != bool(plan.lost)

    @pytest.mark.parametrize("times", range(12))
    @pytest.mark.parametrize("another", [True, False])
    def test_the_next_one_gives_it_or_it_is_lost(self, times: int, another: bool) -> None:
        """Whenever it fails: while it is chosen, while all is put together to see, while it is written."""
        view = self.damaged()
        whole, (log,) = self.whole().objects, view.logs
        fading, others = _Fading(self.whole(), times), [self.whole()] if another else []
        sink = MemorySink(view)
        done = repair(view, sink, earlier=[fading, *others], accept_loss=False)
        (plan,) = done.plan.repairs
        if another or not plan.lost:
            assert (plan.kind, list(sink.made.values())) == (Repair.SPLICED, [whole[log]])
        else:
            assert (plan.lost, done.repairs, sink.made) == (((4, 4),), (), {})


class TestCertainty:
    """Where something stays lost, no hash tells whether the rest is right."""

    def parted(self, server: MadeServer, place: SourceRef, later: bytes) -> int:
        """Two histories that part behind 5; of the first, 6 and 10 are damaged."""
        server.log(range(1, 13))
        server.zxid = 12
        archived(place, server)
        (server.log_dir / "log.1").unlink()
        log = server.log(range(1, 6))
        server.add(log, [6], data=b"OTHER")
        if later == b"data":
            server.add(log, [7, 8])
        else:
            server.log([7, 8], data=later)
        server.zxid = 8
        archived(place, server, new_history=True)
        return damaged_first(place, 5, 9)

    @pytest.mark.parametrize("later", [b"OTHER", b"data"])
    def test_nothing_of_another_history_comes_into_a_log(
        self, server: MadeServer, place: SourceRef, later: bytes
    ) -> None:
        first = self.parted(server, place, later)
        done = repaired(place, first, accept_loss=True)
        assert [plan.lost for plan in done.foreseen.repairs] == [((6, 6), (10, 10))]
        assert zxids(viewed(place, first)) == [(1, 5), (7, 9), (11, 12)]
        assert not any(b"OTHER" in content for content in bytes_of(viewed(place, first)).values())

    def test_nothing_comes_from_directories_that_are_not_the_same_on_both_sides(
        self, server: MadeServer, place: SourceRef, tmp_path: Path
    ) -> None:
        first = self.parted(server, place, b"OTHER")
        done = repaired(place, first, beside(server), accept_loss=True)
        assert [plan.lost for plan in done.foreseen.repairs] == [((6, 6), (10, 10))]

    def test_what_is_the_same_on_both_sides_is_taken_from_directories(
        self, server: MadeServer, place: SourceRef, tmp_path: Path
    ) -> None:
        first = self.parted(server, place, b"OTHER")
        other = MadeServer(tmp_path / "other")
        other.log(range(1, 9))
        done = repaired(place, first, beside(other), accept_loss=True)
        assert [plan.lost for plan in done.foreseen.repairs] == [((10, 10),)]
        assert zxids(viewed(place, first)) == [(1, 9), (11, 12)]
        assert not any(b"OTHER" in content for content in bytes_of(viewed(place, first)).values())

    def test_a_wrong_donor_does_not_stand_before_the_right_one(
        self, server: MadeServer, place: SourceRef, tmp_path: Path
    ) -> None:
        """The hash tells which of two that agree wherever they can be compared is right."""
        server.log(range(1, 7))
        server.zxid = 6
        archived(place, server)
        archived(place, server, new_history=True)
        expected = bytes_of(viewed(place, ids(place)[0]))
        first = damaged_first(place, 2)
        wrong = MadeServer(tmp_path / "wrong")
        wrong.add(wrong.log([1, 2]), [3], data=b"OTHER")
        done = repaired(place, first, beside(wrong))
        assert [part.donor.log.member for plan in done.foreseen.repairs for part in plan.spliced] == ["zk1"]
        assert bytes_of(viewed(place, first)) == expected


class TestEveryHolderAgrees:
    """A hole that no hash closes is filled only with records on which all agree who hold them."""

    PAST, OTHER = Past(range(1, 13)), Past(range(2, 13))

    def damaged(self, **facts: object) -> MemoryView:
        """One log of everything without 6, which somebody may have, and 10, which nobody has."""
        view = backup_of(self.PAST, snapshot_at=[0], logs=[])
        log = view.add_log([self.PAST.records[zxid] for zxid in self.PAST.zxids], "a", **facts)
        content = bytearray(view.objects[log])
        for zxid in (6, 10):
            content[bytes(content).index(self.PAST.records[zxid]) + 40] ^= 4
        view.objects[log] = bytes(content)
        return view

    def holder(self, zxids: range, *other: int, **facts: object) -> MemoryView:
        """A backup of the same past, with another record in the place of some."""
        view = MemoryView()
        view.add_log([(self.OTHER if zxid in other else self.PAST).records[zxid] for zxid in zxids], "b", **facts)
        return view

    def plan(self, view: MemoryView, *earlier: MemoryView, beside: Sequence[MemoryView] = ()) -> RepairPlan:
        (plan,) = plan_backup_repair(view, earlier=earlier, beside=beside).repairs
        return plan

    @pytest.mark.parametrize("zxids", [range(1, 7), range(6, 10), range(4, 9)])
    def test_what_is_committed_is_taken_whichever_side_it_is_known_from(self, zxids: range) -> None:
        """Of one history, in logs that are committed, there is one record for a transaction."""
        plan = self.plan(self.damaged(), self.holder(zxids))
        assert (plan.lost, plan.disputed, len(plan.spliced)) == (((10, 10),), (), 1)

    @pytest.mark.parametrize("unproven", ["log", "donor"])
    @pytest.mark.parametrize(("zxids", "certain"), [(range(1, 7), False), (range(6, 10), False), (range(4, 9), True)])
    def test_what_may_never_have_been_committed_must_be_the_same_on_both_sides(
        self, unproven: str, zxids: range, certain: bool
    ) -> None:
        facts = {"proof": Proof.UNPROVEN}
        view = self.damaged(**(facts if unproven == "log" else {}))
        plan = self.plan(view, self.holder(zxids, **(facts if unproven == "donor" else {})))
        assert plan.lost == (((10, 10),) if certain else ((6, 6), (10, 10)))

    @pytest.mark.parametrize("first", [True, False])
    @pytest.mark.parametrize("fits", [True, False])
    def test_what_two_have_differently_is_taken_from_neither(self, first: bool, fits: bool) -> None:
        """Whether the one with another record is the same elsewhere or not: it holds the transaction too."""
        right, wrong = self.holder(range(4, 9)), self.holder(range(5, 9), 6, *(() if fits else (8,)))
        plan = self.plan(self.damaged(), *((wrong, right) if first else (right, wrong)))
        assert (plan.lost, plan.disputed, plan.spliced) == (((6, 6), (10, 10)), ((6, 6),), ())
        assert "others do not agree on 0x6 to 0x6" in str(plan)

    def test_a_directory_that_fits_has_a_say_and_one_that_does_not_has_none(self) -> None:
        right = self.holder(range(1, 9))
        assert self.plan(self.damaged(), right, beside=[self.holder(range(4, 9), 6)]).disputed == ((6, 6),)
        assert self.plan(self.damaged(), right, beside=[self.holder(range(4, 9), 6, 8)]).disputed == ()

    @pytest.mark.parametrize("first", [True, False])
    def test_who_is_damaged_before_the_record_has_a_say_too(self, first: bool) -> None:
        right, wrong = self.holder(range(2, 9)), self.holder(range(2, 9), 6)
        for view, lost in ((right, 3), (wrong, 4)):
            (log,) = view.logs
            view.objects[log] = view.objects[log].replace(self.PAST.records[lost], bytes(len(self.PAST.records[lost])))
        assert self.plan(self.damaged(), right).lost == ((10, 10),)
        plan = self.plan(self.damaged(), *((wrong, right) if first else (right, wrong)))
        assert (plan.lost, plan.disputed) == (((6, 6), (10, 10)), ((6, 6),))

    def test_another_history_has_none(self) -> None:
        right, other = self.holder(range(1, 9)), self.holder(range(4, 9), 6, history="2")
        assert self.plan(self.damaged(), right, other).disputed == ()

    def test_a_hash_tells_who_is_right(self) -> None:
        view = self.damaged()
        right, wrong = self.holder(range(1, 13)), self.holder(range(4, 12), 6)
        plan = self.plan(view, wrong, right)
        assert (plan.whole, plan.lost, plan.disputed) == (True, (), ())

    def test_the_rest_of_a_hole_is_filled(self) -> None:
        view = self.damaged()
        (log,) = view.logs
        content = view.objects[log]
        start, end = (content.index(self.PAST.records[zxid]) for zxid in (5, 8))
        view.objects[log] = content[:start] + bytes(end - start) + content[end:]
        plan = self.plan(view, self.holder(range(3, 9)), self.holder(range(6, 9), 6))
        assert (plan.lost, plan.disputed) == (((6, 6), (10, 10)), ((6, 6),))
        assert [(part.first, part.last) for part in plan.spliced] == [(5, 5), (7, 7)]


class TestManyBackups:
    def many(self, server: MadeServer, place: SourceRef, later: int) -> int:
        """Two copies of the first log and snapshot, and then backups that have neither."""
        server.log([1, 2, 3, 4])
        server.zxid = 4
        archived(place, server)
        archived(place, server, new_history=True)
        server.snapshot(4)
        (server.log_dir / "log.1").unlink()
        (server.snapshot_dir / "snapshot.0").unlink()
        server.log([5, 6, 7, 8])
        server.zxid = 8
        for _ in range(later):
            archived(place, server, new_history=True)
        first = ids(place)[0]
        view = viewed(place, first)
        damage(place, view, view.snapshots[0])
        return damaged_first(place, 1)

    def test_backups_that_cannot_have_it_are_not_counted(
        self, server: MadeServer, place: SourceRef, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(repair_donors, "MAX_DONORS", 1)
        first = self.many(server, place, 2)
        done = repaired(place, first)
        assert (len(done.repaired), len(done.foreseen.copied), done.unread) == (2, 1, 0)
        assert verified(place, first).document.verdict == GOOD

    def test_those_that_were_not_looked_at_are_told(
        self, server: MadeServer, place: SourceRef, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(repair_donors, "MAX_DONORS", 0)
        done = previewed(place, self.many(server, place, 1))
        assert (len(done.left), done.unread) == (2, 1)


def test_a_history_that_says_nothing_is_no_reason_to_refuse(server: MadeServer, place: SourceRef) -> None:
    """A directory has no history of its own: the second history of an archive is mended from it too."""
    server.log(range(1, 7))
    server.zxid = 6
    archived(place, server)
    archived(place, server, new_history=True)
    view = viewed(place, ids(place)[1])
    damage(place, view, view.logs[0], byte_in(1), byte_in(4))
    partly: DirectoryView = beside(server)
    (log,) = partly.logs
    short = msgspec.structs.replace(log, last=4)
    known = replace(partly, logs=(short,), places={short: partly.places[log]})
    damaged_first(place, 1, 4)
    done = repaired(place, ids(place)[1], known, accept_loss=True)
    assert [plan.lost for plan in done.foreseen.repairs] == [((5, 5),)]
    with viewed(place, ids(place)[1]).open(viewed(place, ids(place)[1]).logs[0]) as source:
        assert [int(zxid) for records in tables(source) for zxid in records.zxid] == [1, 2, 3, 4]
