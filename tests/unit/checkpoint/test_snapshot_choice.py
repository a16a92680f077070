"""Which snapshot a backup uses, by the numbers of the requirements."""

import pytest

from logkeep.checkpoint.snapshot_choice import KeptSnapshot, NoSnapshotFits, UseSnapshot, choose, must_abort, reuse

OLD, NEW = KeptSnapshot(10, 100, 11), KeptSnapshot(20, 100, 21)


def reserved(_: KeptSnapshot) -> bool:
    return True


def test_r44_the_newest_snapshot_below_the_create_is_reserved() -> None:
    asked: list[KeptSnapshot] = []

    def reserve(snapshot: KeptSnapshot) -> bool:
        asked.append(snapshot)
        return True

    found = choose([OLD, NEW], 21, 5, reserve)
    assert (found, asked) == (UseSnapshot(NEW, 21), [NEW])


@pytest.mark.parametrize(("create", "expected"), [(20, OLD), (19, OLD), (21, NEW)])
def test_r44_a_snapshot_at_the_create_is_not_below_it(create: int, expected: KeptSnapshot) -> None:
    found = choose([OLD, NEW], create, 5, reserved)
    assert isinstance(found, UseSnapshot)
    assert found.snapshot == expected


def test_r45_only_snapshots_behind_the_create_fail_it_and_all_reasons_are_named() -> None:
    found = choose([OLD, NEW], 10, 5, reserved)
    assert isinstance(found, NoSnapshotFits)
    assert found.reason == (
        "snapshot 20: it is not below the checkpoint at 10; "
        "snapshot 10: it is not below the checkpoint at 10; the log begins at 5"
    )


def test_r45_without_a_snapshot_the_whole_log_is_enough() -> None:
    assert choose([], 7, 0, reserved) == UseSnapshot(None, 0)
    assert isinstance(choose([], 7, 1, reserved), NoSnapshotFits)


def test_r46_the_next_snapshot_is_used_if_one_cannot_be_reserved() -> None:
    found = choose([OLD, NEW], 30, 5, lambda each: each is OLD)
    assert found == UseSnapshot(OLD, 11)


def test_r46_no_reservation_fails_the_copy() -> None:
    found = choose([OLD, NEW], 30, 5, lambda _: False)
    assert isinstance(found, NoSnapshotFits)
    assert "it cannot be reserved" in found.reason


def test_a_snapshot_whose_log_is_gone_is_not_used() -> None:
    assert isinstance(choose([OLD, NEW], 15, 12, reserved), NoSnapshotFits)


@pytest.mark.parametrize(
    ("processed", "written", "aborted"),
    [(10, 11, True), (9, 11, True), (10, 10, False), (11, 12, False), (5, 9, False)],
)
def test_r57_a_snapshot_across_a_checkpoint_is_aborted(processed: int, written: int, aborted: bool) -> None:
    assert must_abort(processed, written, checkpoint_position=10) is aborted


@pytest.mark.parametrize(
    ("since", "archived_end", "expected"),
    [
        (99, 21, UseSnapshot(OLD, 11, archived=True)),
        (100, 21, UseSnapshot(NEW, 21)),
        (99, 20, UseSnapshot(NEW, 21)),
    ],
)
def test_an_archived_snapshot_is_used_again_while_the_log_since_it_is_smaller(
    since: int, archived_end: int, expected: UseSnapshot
) -> None:
    assert reuse(UseSnapshot(NEW, 21), OLD, archived_end, since) == expected


def test_without_archived_or_local_snapshot_nothing_is_reused() -> None:
    assert reuse(UseSnapshot(NEW, 21), None, 0, 0) == UseSnapshot(NEW, 21)
    assert reuse(UseSnapshot(None, 0), OLD, 50, 0) == UseSnapshot(None, 0)
    assert reuse(UseSnapshot(OLD, 11), NEW, 50, 0) == UseSnapshot(OLD, 11)


def test_the_archived_snapshot_is_used_where_the_archived_log_begins_behind_what_the_own_one_needs() -> None:
    assert reuse(UseSnapshot(None, 0), NEW, 50, 1 << 62, 21) == UseSnapshot(NEW, 21, archived=True)
    assert reuse(UseSnapshot(OLD, 11), NEW, 50, 1 << 62, 21) == UseSnapshot(NEW, 21, archived=True)
    assert reuse(UseSnapshot(NEW, 21), NEW, 50, 1 << 62, 21) == UseSnapshot(NEW, 21)
