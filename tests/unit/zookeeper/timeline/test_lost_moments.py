"""Which moments are lost with a snapshot, although every transaction is there."""

from logkeep.zookeeper.timeline.lost_moments import by_snapshot, moments_lost
from logkeep.zookeeper.timeline.survey import survey
from tests.support.zookeeper.handmade_history import Past, backup_of

PAST = Past(range(1, 31))
LATER = [range(11, 21), range(21, 31)]


def lost(snapshots: list[int], gone: list[int], logs: list[range]) -> list[tuple[int, tuple[tuple[int, int], ...]]]:
    view = backup_of(PAST, snapshot_at=snapshots, logs=logs)
    dropped = [snapshot for snapshot in view.snapshots if snapshot.zxid in gone]
    found = moments_lost(survey(view, without=dropped), dropped)
    return [(snapshot.zxid, spans) for snapshot, spans in by_snapshot(found, dropped)]


def test_an_older_one_led_to_what_comes_before_the_next() -> None:
    assert lost([10, 20], [10], LATER) == [(10, ((10, 19),))]


def test_one_that_another_can_do_without() -> None:
    assert lost([0, 10, 20], [10], [range(1, 11), *LATER]) == [(10, ())]
    assert lost([10, 20], [20], LATER) == [(20, ())]


def test_each_moment_is_told_once() -> None:
    assert lost([10, 15, 20], [10, 15], LATER) == [(10, ((10, 14),)), (15, ((15, 19),))]


def test_all_of_them() -> None:
    assert lost([10, 20], [10, 20], LATER) == [(10, ((10, 19),)), (20, ((20, 30),))]


def test_none() -> None:
    assert lost([10, 20], [], LATER) == []
