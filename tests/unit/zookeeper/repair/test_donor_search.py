"""Many backups are asked for what one has lost: all that may have it, and only some of them at a time."""

import weakref
from collections.abc import Iterator, Sequence

import pytest

from logkeep.zookeeper.repair.donor_search import helpful_backups
from logkeep.zookeeper.repair.plan import RepairPlan
from logkeep.zookeeper.repair.run import repair
from logkeep.zookeeper.timeline.object_check import ObjectChecks, check_data, check_files
from tests.support.zookeeper.handmade_history import MemorySink, MemoryView, Past, backup_of

PAST = Past(range(1, 13))
MANY = 25


def damaged(*zxids: int, snapshot: bool = False) -> MemoryView:
    """One log of everything, with these records damaged."""
    view = backup_of(PAST, snapshot_at=(0, 6), logs=(PAST.zxids,))
    (log,) = view.logs
    content = bytearray(view.objects[log])
    for zxid in zxids:
        content[bytes(content).index(PAST.records[zxid]) + 40] ^= 1
    view.objects[log] = bytes(content)
    if snapshot:
        view.objects[view.snapshots[1]] = b"?" + view.objects[view.snapshots[1]][1:]
    return view


def checked(view: MemoryView) -> ObjectChecks:
    return check_data(view, check_files(view), lambda _: None)


def holding(zxids: Sequence[int]) -> MemoryView:
    return backup_of(PAST, snapshot_at=(), logs=(zxids,))


class Others:
    """Many backups that have nothing that is of use, except some; they are made when they are asked for."""

    def __init__(self, useful: dict[int, MemoryView], useless: Sequence[int] = PAST.zxids[9:]) -> None:
        self.useful, self.useless, self.asked, self.most_alive = useful, useless, 0, 0
        self._alive = list[weakref.ref[MemoryView]]()

    def __iter__(self) -> Iterator[MemoryView]:
        for number in range(MANY):
            view = self.useful.pop(number, None) or holding(self.useless)
            self._alive = [*(one for one in self._alive if one() is not None), weakref.ref(view)]
            self.asked, self.most_alive = number + 1, max(self.most_alive, len(self._alive))
            yield view


def test_all_are_asked_and_few_are_held_at_a_time() -> None:
    view = damaged(3, 7)
    others = Others({4: holding(PAST.zxids[:5]), 23: holding(PAST.zxids[5:])})
    found = helpful_backups(view, others, checked(view), at_once=3)
    assert [[(log.first, log.last) for log in one.logs] for one in found] == [[(1, 5)], [(6, 12)]]
    assert others.most_alive < 10, others.most_alive
    sink = MemorySink(view)
    assert repair(view, sink, beside=found).lost == ()
    assert list(sink.made.values()) == list(holding(PAST.zxids).objects.values())


@pytest.mark.parametrize("place", [0, 3, 24])
def test_nobody_is_asked_when_nothing_is_missing_any_more(place: int) -> None:
    view = damaged(3, 7)
    others = Others({place: holding(PAST.zxids)})
    (found,) = helpful_backups(view, others, checked(view), at_once=3)
    assert [(log.first, log.last) for log in found.logs] == [(1, 12)]
    assert others.asked <= place + 3


def test_a_snapshot_is_looked_for_too() -> None:
    view = damaged(snapshot=True)
    others = Others({23: backup_of(PAST, snapshot_at=(6,), logs=())})
    (found,) = helpful_backups(view, others, checked(view), at_once=3)
    sink = MemorySink(view)
    assert repair(view, sink, beside=(found,)).dropped == ()
    assert list(sink.made.values()) == [PAST.snapshots[6]]


def test_what_nobody_has_is_asked_of_all() -> None:
    view, others = damaged(3), Others({})
    assert helpful_backups(view, others, checked(view), at_once=3) == ()
    assert others.asked == MANY


class TestWhoContradicts:
    """3 is lost, some have it and do not agree; 10 is lost, and nobody has it, so that no hash tells who is right."""

    OTHER = Past(range(2, 13))

    def holder(self, zxids: range, *other: int) -> MemoryView:
        view = MemoryView()
        view.add_log([(self.OTHER if zxid in other else PAST).records[zxid] for zxid in zxids], "b")
        return view

    def plan(self, useful: dict[int, MemoryView], *lost: int) -> tuple[RepairPlan, int]:
        """What is made of it in the end, and how many were kept for that."""
        view = damaged(*lost)
        others = Others(useful, range(11, 13))
        found = helpful_backups(view, others, checked(view), at_once=3)
        assert (others.asked, others.most_alive < 10) == (MANY, True)
        (plan,) = repair(view, MemorySink(view), beside=found).repairs
        return plan, len(found)

    @pytest.mark.parametrize("places", [(0, 1), (1, 0), (0, 23), (23, 0), (4, 9)])
    def test_what_others_do_not_agree_on_is_taken_from_nobody(self, places: tuple[int, int]) -> None:
        right, wrong = places
        plan, kept = self.plan({right: self.holder(range(1, 7)), wrong: self.holder(range(2, 6), 3)}, 3, 10)
        assert (plan.lost, plan.disputed, kept) == (((3, 3), (10, 10)), ((3, 3),), 2)

    @pytest.mark.parametrize("wrong", [0, 9, 23])
    def test_who_could_give_nothing_when_it_was_asked_has_a_say_later(self, wrong: int) -> None:
        """It has the record alone, and nothing behind it: nobody takes it from there."""
        useful = {wrong: self.holder(range(1, 4), 3), 4: self.holder(range(3, 5)), 13: self.holder(range(1, 7))}
        plan, _ = self.plan(useful, 3, 10)
        assert (plan.lost, plan.disputed) == (((3, 3), (10, 10)), ((3, 3),))

    def test_those_who_say_the_same_are_not_kept(self) -> None:
        useful = {place: self.holder(range(1, 7), *((3,) if place % 2 else ())) for place in range(20)}
        plan, kept = self.plan(useful, 3, 10)
        assert (plan.disputed, kept) == (((3, 3),), 2)

    def test_each_may_contradict_another_record(self) -> None:
        useful = {2: self.holder(range(1, 10)), 11: self.holder(range(1, 5), 3), 19: self.holder(range(5, 9), 6)}
        plan, kept = self.plan(useful, 3, 6, 10)
        assert (plan.lost, plan.disputed, kept) == (((3, 3), (6, 6), (10, 10)), ((3, 3), (6, 6)), 3)
