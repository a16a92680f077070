"""Many backups are asked for what one has lost: all that may have it, and only some of them at a time."""

import weakref
from collections.abc import Iterator, Sequence

import pytest

from logkeep.zookeeper.asking import helpful
from logkeep.zookeeper.repair import repair
from logkeep.zookeeper.verify_objects import ObjectChecks, check_data, check_files
from tests.zookeeper.made import MemorySink, MemoryView, Past, backup_of

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

    def __init__(self, useful: dict[int, MemoryView]) -> None:
        self.useful, self.asked, self.most_alive = useful, 0, 0
        self._alive = list[weakref.ref[MemoryView]]()

    def __iter__(self) -> Iterator[MemoryView]:
        for number in range(MANY):
            view = self.useful.pop(number, None) or holding(PAST.zxids[9:])
            self._alive = [*(one for one in self._alive if one() is not None), weakref.ref(view)]
            self.asked, self.most_alive = number + 1, max(self.most_alive, len(self._alive))
            yield view


def test_all_are_asked_and_few_are_held_at_a_time() -> None:
    view = damaged(3, 7)
    others = Others({4: holding(PAST.zxids[:5]), 23: holding(PAST.zxids[5:])})
    found = helpful(view, others, checked(view), at_once=3)
    assert [[(log.first, log.last) for log in one.logs] for one in found] == [[(1, 5)], [(6, 12)]]
    assert others.most_alive < 10, others.most_alive
    sink = MemorySink(view)
    assert repair(view, sink, beside=found).lost == ()
    assert list(sink.made.values()) == list(holding(PAST.zxids).objects.values())


@pytest.mark.parametrize("place", [0, 3, 24])
def test_nobody_is_asked_when_nothing_is_missing_any_more(place: int) -> None:
    view = damaged(3, 7)
    others = Others({place: holding(PAST.zxids)})
    (found,) = helpful(view, others, checked(view), at_once=3)
    assert [(log.first, log.last) for log in found.logs] == [(1, 12)]
    assert others.asked <= place + 3


def test_a_snapshot_is_looked_for_too() -> None:
    view = damaged(snapshot=True)
    others = Others({23: backup_of(PAST, snapshot_at=(6,), logs=())})
    (found,) = helpful(view, others, checked(view), at_once=3)
    sink = MemorySink(view)
    assert repair(view, sink, beside=(found,)).dropped == ()
    assert list(sink.made.values()) == [PAST.snapshots[6]]


def test_what_nobody_has_is_asked_of_all() -> None:
    view, others = damaged(3), Others({})
    assert helpful(view, others, checked(view), at_once=3) == ()
    assert others.asked == MANY
