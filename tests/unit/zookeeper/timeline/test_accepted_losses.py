"""Losses in merged objects are accepted: every backup keeps all that is left of what it had, and nothing else."""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import collect
from logkeep.repository.upkeep.prune import delete
from logkeep.zookeeper.model.archived import ArchivedFile, ArchivedLog
from logkeep.zookeeper.repair.cuts import cuts_for
from logkeep.zookeeper.repo.whole_objects import whole_view
from tests.crash.points import AT_ONCE
from tests.support.zookeeper.handmade_directories import txn
from tests.support.zookeeper.merged_backups import Growing, everything, optimize
from tests.support.zookeeper.repaired_backups import byte_in, damage, ids, previewed, repaired, verified, viewed
from tests.support.zookeeper.repositories import new_place, newest, zxids


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    """Four backups of one more transaction each."""
    made = Growing(tmp_path / "growing", new_place())
    for _ in range(3):
        made.backup()
    return made


def lose(place: SourceRef, *lost: int) -> None:
    """These transactions of the newest backup, in whatever objects they are."""
    view = whole_view(newest(place))
    for log in view.logs:
        records = [zxid - log.first for zxid in lost if log.first <= zxid <= log.last]
        if records:
            damage(place, view, log, *map(byte_in, records))


def delete_newest(place: SourceRef) -> None:
    with writing(place, "delete", utc_now, random_token) as session:
        delete(session, [BackupId(ids(place)[-1])], "test")


def without(before: dict[int, dict[tuple[str, str], bytes]], *lost: int) -> dict[int, dict[tuple[str, str], bytes]]:
    """What backups had, less these records. A log that had nothing else is gone."""
    left = {}
    for backup, logs in before.items():
        left[backup] = dict(logs)
        for name, records in logs.items():
            for zxid in lost:
                records = records.replace(txn(zxid), b"")  # noqa: PLW2901 - one after the other
            left[backup][name] = records
        left[backup] = {name: records for name, records in left[backup].items() if records}
    return left


@pytest.mark.parametrize("named", [True, False])
def test_every_backup_finds_what_is_left_of_its_pieces(growing: Growing, named: bool) -> None:
    """Whether a backup was committed with the merged object or not."""
    place = growing.place
    optimize(place)
    if named:
        growing.backup()
    before = everything(place)
    lose(place, 2)
    assert repaired(place, ids(place)[-1]).repaired == {}, "nobody has accepted it"
    assert not previewed(place, ids(place)[-1], accept_loss=True).left
    assert len(repaired(place, ids(place)[-1], accept_loss=True).repaired) == 1
    assert everything(place) == without(before, 2)
    assert [zxids(viewed(place, one)) for one in ids(place)[:4]] == [
        [(1, 1)], [(1, 1)], [(1, 1), (3, 3)], [(1, 1), (3, 4)],
    ]  # fmt: skip
    assert {f.code for f in verified(place, ids(place)[2]).findings} == {"lost-transactions", "end-unreachable"}
    assert verified(place, ids(place)[0]).document.verdict == GOOD


def test_the_next_backups_go_on_and_are_merged_and_swept(growing: Growing) -> None:
    place = growing.place
    optimize(place)
    lose(place, 2)
    repaired(place, ids(place)[-1], accept_loss=True)
    before = everything(place)
    for _ in range(3):
        growing.backup()
    optimize(place)
    with writing(place, "gc", utc_now, random_token) as session:
        collect(session, AT_ONCE)
    assert everything(place).items() >= before.items()
    assert zxids(newest(place))[-1][1] == 7


def test_an_end_that_is_lost_is_copied_again_by_the_next_backup(growing: Growing) -> None:
    place = growing.place
    optimize(place)
    before = everything(place)
    lose(place, 4)
    repaired(place, ids(place)[-1], accept_loss=True)
    assert everything(place) == without(before, 4)
    growing.backup()
    assert [zxids(viewed(place, one))[-1][1] for one in ids(place)] == [1, 2, 3, 3, 5]
    assert verified(place, ids(place)[-1]).document.verdict == GOOD


@pytest.mark.parametrize("which", [0, -1])
def test_what_no_backup_has_all_of_serves_no_more_than_before(growing: Growing, which: int) -> None:
    """The backup that had all of the object was deleted, and the next one has another object for its end."""
    place = growing.place
    growing.backup()
    optimize(place)
    delete_newest(place)
    growing.backup()
    before = everything(place)
    lose(place, 2)
    assert len(repaired(place, ids(place)[which], accept_loss=True).repaired) == 1
    assert everything(place) == without(before, 2)
    assert [one for first, last in zxids(newest(place)) for one in range(first, last + 1)] == [1, 3, 4, 5, 6]


STEPS = st.lists(st.sampled_from([1, 1, 1, 2, 4, "merge", "merge", "delete"]), min_size=2, max_size=9)


@settings(max_examples=12)
@given(STEPS, st.sets(st.integers(0, 40), min_size=1, max_size=3), st.integers(0, 20))
@example([1, "merge", "delete", 1], {2}, 0)  # a merged object whose row was shortened is no repaired object
def test_whatever_was_merged_and_deleted_before(steps: list[int | str], wanted: set[int], which: int) -> None:
    with TemporaryDirectory() as directory:
        growing = Growing(Path(directory) / "growing", new_place())
        place = growing.place
        for step in steps:
            if step == "merge":
                optimize(place)
            elif step == "delete" and len(ids(place)) > 1:
                delete_newest(place)
            elif isinstance(step, int):
                growing.backup(step)
        before, last = everything(place), zxids(newest(place))[-1][1]
        lost = {1 + number % last for number in wanted}
        lose(place, *lost)
        first = repaired(place, ids(place)[which % len(ids(place))], accept_loss=True)
        then = repaired(place, ids(place)[-1], accept_loss=True)
        gone, stay = within(lost, first.repaired) | within(lost, then.repaired), within(lost, then.left)
        expected, after = without(before, *gone), everything(place)
        readable = [backup for backup in before if not _holds(before[backup], stay)]
        assert {backup: after[backup] for backup in readable} == {backup: expected[backup] for backup in readable}


def within(lost: set[int], damaged: Iterable[ArchivedFile]) -> set[int]:
    return {zxid for one in damaged if isinstance(one, ArchivedLog) for zxid in lost if one.first <= zxid <= one.last}


def _holds(logs: dict[tuple[str, str], bytes], lost: set[int]) -> bool:
    return any(txn(zxid) in records for records in logs.values() for zxid in lost)


def test_cuts_are_made_around_what_has_lost_something() -> None:
    pieces = [(1, 4), (5, 10), (11, 11), (12, 20), (1, 20)]
    assert cuts_for([(6, 7)], pieces, ()) == {1, 5, 11, 21}
    assert cuts_for([(1, 1), (20, 20)], pieces[:-1], ()) == {1, 5, 12, 21}
    assert cuts_for([(6, 6)], [(1, 4), (5, 10)], [(10, 1 << 32)]) == {5, 1 << 32}
    assert cuts_for([(6, 6)], [(1, 7), (5, 10)], ()) == {1, 5, 8, 11}, "a cut goes through no other piece"
    assert cuts_for([(2, 2)], [(1, 4), (3, 6), (7, 9)], ()) == {1, 3, 5, 7}
    assert cuts_for([], pieces, ()) == frozenset()
