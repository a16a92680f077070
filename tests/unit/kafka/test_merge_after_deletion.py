"""A merge after backups were deleted: segments that only they needed may be gone, which is no damage."""

from datetime import timedelta

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.kafka.merge import optimizing
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import GarbageRules, collect
from logkeep.repository.upkeep.merge_plan import MergeRule
from logkeep.repository.upkeep.optimize import Optimized
from logkeep.repository.upkeep.prune import delete
from logkeep.store.memory import MemoryStore
from tests.support.kafka.many_small_backups import batches_of, expected, log_objects, read_back, take_round

PAIRS = len(batches_of(0, 0, 4)[0]) * 2 + 1
"""Bytes that two batches fit into, and not three."""


@pytest.fixture
def place() -> SourceRef:
    facts = StoreFacts(put_new=True, replace=True, durable=True)
    return create_repository(MemoryStore(), facts, utc_now(), random_token).place("prod")


def _merge(place: SourceRef, target_bytes: int) -> Optimized:
    return optimizing(place, utc_now, random_token).run(MergeRule(target_bytes), lambda _: InlineEngine())


def _forget(place: SourceRef, *backups: int) -> None:
    """Deleted, and collected at once."""
    with writing(place, "delete", utc_now, random_token) as session:
        delete(session, list(backups), "test")
    with writing(place, "gc", utc_now, random_token) as session:
        collect(session, GarbageRules(age=timedelta(0), interval=timedelta(0)))


def test_rows_that_only_deleted_backups_needed_are_not_merged(place: SourceRef) -> None:
    first = take_round(place, {0: (0, 2)})
    later = [take_round(place, {0: (0, end + 2), 1: (0, end)}) for end in (2, 4, 6, 10)]
    assert _merge(place, PAIRS).objects_before > 2
    before = len(log_objects(place))
    _forget(place, *later)
    assert len(log_objects(place)) < before  # of the other partition nothing is needed, but its rows are still told
    kept = {first: {0: (0, 2)}} | {take_round(place, {0: (0, end)}): {0: (0, end)} for end in (18, 20, 22)}
    done = _merge(place, 1 << 20)
    assert done.findings == ()
    assert done.objects_after == 1
    assert {backup: read_back(place, backup) for backup in kept} == {b: expected(cuts) for b, cuts in kept.items()}
