"""The level `data` in units of work: the same findings wherever they are read, and units that stay small."""

import pickle
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.engine.inline import InlineEngine
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.timeline.object_check import CheckedObject, ObjectChecks, check_data, named, to_read
from logkeep.zookeeper.verify.tasks import CheckedUnit, ObjectsUnit, check_unit, checked_by, shares
from tests.support.zookeeper.handmade_history import Past, backup_of
from tests.support.zookeeper.merged_backups import Growing
from tests.support.zookeeper.repositories import new_local_place, newest

PAST = Past(range(1, 31))
LOGS = (range(1, 11), range(11, 21), range(21, 31))
GOOD = backup_of(PAST, snapshot_at=[0], logs=LOGS)


@given(sizes=st.lists(st.integers(0, 40), max_size=30), most_bytes=st.integers(1, 60))
def test_every_object_is_read_once_and_no_unit_is_larger_than_it_must_be(sizes: list[int], most_bytes: int) -> None:
    logs = [_log_of(size, number) for number, size in enumerate(sizes)]
    found = list(shares(logs, most_bytes))
    assert [log for share in found for log in share] == logs
    assert all(len(share) == 1 or sum(log.size_bytes for log in share) <= most_bytes for share in found)
    sums = [(sum(log.size_bytes for log in one), other[0].size_bytes) for one, other in pairwise(found)]
    assert all(held + following > most_bytes for held, following in sums)


def _log_of(size_bytes: int, number: int) -> ArchivedLog:
    return msgspec.structs.replace(GOOD.logs[0], size_bytes=size_bytes, first=number + 1)


@pytest.mark.parametrize("most_bytes", [1, 1 << 20])
def test_units_find_what_one_process_finds(most_bytes: int) -> None:
    view = backup_of(PAST, snapshot_at=[0, 10, 20], logs=LOGS)
    first, second, *_ = view.logs
    content = bytearray(view.objects[first])
    content[len(content) // 2] ^= 1
    view.objects[first] = bytes(content)
    view.objects[second] = view.objects[second][:-40]
    view.objects[view.snapshots[1]] = view.objects[view.snapshots[1]][:-1]
    here = check_data(view, ObjectChecks(), lambda _: None)
    units = [ObjectsUnit(view, share) for share in shares(to_read(view, ObjectChecks()), most_bytes)]
    assert checked_by(InlineEngine(), units, ObjectChecks()) == here
    assert {named(kept) for kept in here.unusable} >= {named(first), named(second), named(view.snapshots[1])}
    assert set(here.scans) == {first, second}


def test_a_unit_carries_what_it_reads_and_nothing_else(tmp_path: Path) -> None:
    """Backups have thousands of objects, and units travel."""
    growing = Growing(tmp_path / "server", new_local_place(tmp_path / "repository"))
    for _ in range(3):
        growing.backup()
    view = newest(growing.place)
    unit = ObjectsUnit(view.only(view.logs[1:2]), view.logs[1:2])
    assert (len(unit.view.logs), unit.view.snapshots, len(view.logs)) == (1, (), 4)
    travelled: ObjectsUnit = pickle.loads(pickle.dumps(unit))  # noqa: S301 - made by the same line
    assert check_unit(travelled, lambda _: None) == CheckedUnit((CheckedObject(),))
