"""Whether a log still continues what is archived of it."""

from collections.abc import Mapping

import pytest

from logkeep.kafka.admin.offsets import EpochEnd
from logkeep.kafka.backup.continuity.history_check import (
    ArchiveProgress,
    BrokenLog,
    archive_progress,
    broken_logs,
    changed_meanwhile,
    truncated_since,
)
from logkeep.kafka.backup.plan import next_history
from logkeep.kafka.backup.units import CopyOutcome, CopyResult, RangeResult
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.leader_epochs import EpochRun
from logkeep.kafka.logs.lost_offset import Cause
from logkeep.kafka.record.documents import ArchivedReach
from logkeep.model.segments import Collection, LogName
from tests.support.kafka.cluster_values import ID, OTHER_ID, bounds, topic

LOG = TopicPartition("orders", 0)
HISTORY = ID.hex


def broken(known: ArchivedReach, start: int, end: int, answer: EpochEnd | None) -> list[BrokenLog]:
    def ask(wanted: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, EpochEnd]:
        assert wanted == ({LOG: known.last_epoch} if answer else {})
        return {LOG: answer} if answer else {}

    return broken_logs([topic("orders")], {LOG: bounds(start, end)}, {LOG: known}, ask)


@pytest.mark.parametrize(
    ("known", "end", "answer", "cause"),
    [
        (ArchivedReach(HISTORY, 12, 5), 12, EpochEnd(5, 12), None),
        (ArchivedReach(HISTORY, 12, 5), 40, EpochEnd(5, 20), None),
        (ArchivedReach(HISTORY, 12, 5), 12, EpochEnd(4, 9), Cause.TRUNCATED),
        (ArchivedReach(HISTORY, 12, 5), 9, EpochEnd(5, 9), Cause.TRUNCATED),
        (ArchivedReach(HISTORY, 12, 5), 40, EpochEnd(-1, -1), Cause.UNKNOWN_EPOCH),
        (ArchivedReach(HISTORY, 12, -1), 11, None, Cause.TRUNCATED),
        (ArchivedReach(HISTORY, 12, -1), 12, None, None),
        (ArchivedReach(f"{HISTORY}-1", 12, 5), 12, EpochEnd(4, 9), Cause.TRUNCATED),
    ],
)
def test_the_epoch_of_the_last_batch_tells(
    known: ArchivedReach, end: int, answer: EpochEnd | None, cause: Cause | None
) -> None:
    assert broken(known, 0, end, answer) == ([BrokenLog(LOG, cause, known.history)] if cause else [])


def test_retention_breaks_nothing() -> None:
    assert broken(ArchivedReach(HISTORY, 12, 5), 30, 50, EpochEnd(5, 40)) == []


def test_a_topic_made_again_is_told_by_its_id_and_not_asked_for() -> None:
    assert broken(ArchivedReach(OTHER_ID.hex, 12, 5), 0, 3, None) == []


def test_histories_count() -> None:
    names = [next_history("orders", history, {}) for history in (HISTORY, f"{HISTORY}-9")]
    assert names == [f"{HISTORY}-1", f"{HISTORY}-10"]


def result(lo: int, hi: int, *epochs: EpochRun, history: str = HISTORY) -> CopyResult:
    log = LogName(Collection.TOPICS, "orders", history, 0)
    one = RangeResult(log=log, lo=lo, hi=hi, outcome=CopyOutcome.COPIED, reached=hi, epochs=epochs)
    return CopyResult(unit="u", ranges=(one,), segments=())


def stand(reached: dict[TopicPartition, ArchivedReach], *earlier: CopyResult) -> ArchiveProgress:
    return archive_progress([topic("orders")], {LOG: bounds(3, 600)}, reached, earlier)


def test_compaction_behind_the_last_batch_breaks_nothing() -> None:
    """Batches of a later epoch stood between our last one and the cut, and are gone."""
    assert broken(ArchivedReach(HISTORY, 100, 3, 90), 0, 120, EpochEnd(3, 90)) == []
    assert broken(ArchivedReach(HISTORY, 100, 3, 90), 0, 120, EpochEnd(3, 89)) != []


def test_an_interrupted_run_counts_as_far_as_it_came() -> None:
    reached = {LOG: ArchivedReach(HISTORY, 12, 5, 11, 3)}
    assert stand(reached).furthest == reached
    late = result(12, 20, EpochRun(5, 12, 15), EpochRun(6, 15, 19))
    assert stand(reached, late).furthest == {LOG: ArchivedReach(HISTORY, 20, 6, 19, 3)}
    assert stand(reached, result(12, 20)).furthest == {LOG: ArchivedReach(HISTORY, 20, 5, 11, 3)}
    assert stand(reached, result(3, 12, EpochRun(1, 3, 12))).furthest == reached
    assert stand({}, result(3, 9, EpochRun(2, 3, 9))).furthest == {LOG: ArchivedReach(HISTORY, 9, 2, 9)}


def test_of_two_pasts_that_an_interrupted_run_met_the_later_one_counts() -> None:
    old = result(0, 50, EpochRun(3, 0, 50))
    new = result(3, 30, EpochRun(5, 3, 30), history=f"{HISTORY}-1")
    for base in ({}, {LOG: ArchivedReach(HISTORY, 12, 3, 12)}):
        for order in ((old, new), (new, old)):
            found = stand(base, *order)
            assert found.reached == {LOG: ArchivedReach(f"{HISTORY}-1", 3, -1)}
            assert found.furthest == {LOG: ArchivedReach(f"{HISTORY}-1", 30, 5, 30)}
            assert truncated_since(base, found) == ([BrokenLog(LOG, Cause.TRUNCATED, HISTORY)] if base else [])


def test_what_an_interrupted_run_copied_of_a_topic_that_was_made_again_counts_for_nothing() -> None:
    assert stand({}, result(0, 50, EpochRun(3, 0, 50), history=OTHER_ID.hex)) == ArchiveProgress({}, {})


def changed(results: list[CopyResult], base: ArchivedReach | None, answers: dict[int, EpochEnd]) -> int:
    """How many ranges were found to belong to a log that changed."""

    def ask(wanted: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, EpochEnd]:
        return {log: answers[epoch] for log, epoch in wanted.items()}

    return len(changed_meanwhile(results, {LOG: base} if base else {}, [topic("orders")], ask))


def test_units_that_read_the_same_log_prove_each_other() -> None:
    units = [result(0, 50, EpochRun(3, 0, 50)), result(50, 90, EpochRun(3, 50, 70), EpochRun(4, 70, 90))]
    assert changed(units, None, {3: EpochEnd(3, 70), 4: EpochEnd(4, 95)}) == 0


def test_a_unit_that_read_another_past_is_found() -> None:
    """The log lost its end at 30 and was written anew, between the first unit and the second."""
    units = [result(0, 50, EpochRun(3, 0, 50)), result(50, 90, EpochRun(5, 50, 90))]
    assert changed(units, None, {3: EpochEnd(3, 30), 5: EpochEnd(5, 90)}) == 2
    assert changed(units, None, {3: EpochEnd(2, 30), 5: EpochEnd(5, 90)}) == 2


def test_what_was_archived_before_is_asked_for_as_well() -> None:
    unit = [result(50, 90, EpochRun(5, 50, 90))]
    assert changed(unit, ArchivedReach(HISTORY, 50, 3, 50), {3: EpochEnd(3, 50), 5: EpochEnd(5, 90)}) == 0
    assert changed(unit, ArchivedReach(HISTORY, 50, 3, 50), {3: EpochEnd(3, 30), 5: EpochEnd(5, 90)}) == 1


def test_a_topic_that_is_gone_or_was_made_again_since_is_not_asked_for() -> None:
    assert changed([result(0, 50, EpochRun(3, 0, 50), history=OTHER_ID.hex)], None, {}) == 0
