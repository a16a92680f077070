"""Snapshots and what they keep: reservations, superseded ones, up to where the log may go."""

from pathlib import Path

import pytest

from logkeep.checkpoint.snapshots import SnapshotStore, compaction_bound, due
from logkeep.checkpoint.state.backend import Write
from logkeep.checkpoint.state.memory_state import MemoryState
from logkeep.checkpoint.steps import run


def _take(store: SnapshotStore, state: MemoryState, position: int) -> None:
    state.apply(position, [Write("a", str(position).encode())], [])
    run(store.take(state), lambda _: False)


def _positions(store: SnapshotStore) -> list[int]:
    return [one.position for one in store.list()]


def test_two_snapshots_are_kept_and_reserved_ones_besides(tmp_path: Path) -> None:
    store, state = SnapshotStore(tmp_path), MemoryState()
    for position in (3, 7, 9):
        _take(store, state, position)
    assert _positions(store) == [7, 9]
    reservation = store.reserve(store.list()[0], 4)
    for position in (12, 15):
        _take(store, state, position)
    assert (_positions(store), store.reserved_from) == ([7, 12, 15], 4)
    assert reservation is not None
    store.release(reservation)
    store.release(reservation)
    assert (_positions(store), store.reserved_from) == ([12, 15], None)


def test_r46_a_snapshot_that_is_gone_cannot_be_reserved(tmp_path: Path) -> None:
    store, state = SnapshotStore(tmp_path), MemoryState()
    _take(store, state, 3)
    (snapshot,) = store.list()
    store.path(3).unlink()
    assert store.reserve(snapshot, 0) is None
    assert store.reserved_from is None


def test_r55_reservations_end_with_the_process(tmp_path: Path) -> None:
    store, state = SnapshotStore(tmp_path), MemoryState()
    _take(store, state, 3)
    store.reserve(store.list()[0], 0)
    again = SnapshotStore(tmp_path)
    assert again.reserved_from is None
    for position in (7, 9):
        _take(again, state, position)
    assert _positions(again) == [7, 9]


@pytest.mark.parametrize("steps", [1, 2])
def test_a_snapshot_appears_whole_or_not_at_all(tmp_path: Path, steps: int) -> None:
    store, state = SnapshotStore(tmp_path), MemoryState()
    state.apply(5, [Write("a", b"1")], [])
    taking = store.take(state)
    for _ in range(steps):
        next(taking)
    assert _positions(store) == []
    again = SnapshotStore(tmp_path)
    assert list(tmp_path.iterdir()) == []
    _take(again, state, 6)
    assert _positions(again) == [6]


def test_an_unchanged_state_gives_no_second_snapshot(tmp_path: Path) -> None:
    store, state = SnapshotStore(tmp_path), MemoryState()
    run(store.take(state), lambda _: False)
    assert _positions(store) == []
    _take(store, state, 4)
    run(store.take(state), lambda _: False)
    assert (_positions(store), len(list(tmp_path.iterdir()))) == ([4], 1)


@pytest.mark.parametrize(
    ("snapshots", "reserved", "archived", "over", "bound"),
    [
        ([], None, 50, False, 0),
        ([10, 20], None, None, False, 10),
        ([10, 20], None, 5, False, 5),
        ([10, 20], None, 15, False, 10),
        ([10, 20], 3, 15, False, 3),
        ([10, 20], None, 5, True, 20),
        ([10, 20], 12, 5, True, 12),
        ([10, 20], 0, None, True, 0),
    ],
)
def test_r54_the_log_is_kept_for_snapshots_the_archive_and_pins(
    snapshots: list[int], reserved: int | None, archived: int | None, *, over: bool, bound: int
) -> None:
    assert compaction_bound(snapshots, reserved, archived, over_bound=over) == bound


def test_a_snapshot_is_due_by_the_growth_of_the_log() -> None:
    assert [due(size, 100, 50) for size in (100, 149, 150, 500)] == [False, False, True, True]
