"""Whether a log still continues what is archived of it."""

from collections.abc import Mapping

import pytest

from logkeep.kafka.admin.offsets import EpochEnd
from logkeep.kafka.continuity import Broken, broken_logs, positions
from logkeep.kafka.divergence import Cause
from logkeep.kafka.plan import Reached, next_history
from logkeep.kafka.units import CopyResult, EpochStart, Outcome, RangeResult
from logkeep.kafka.values import TopicPartition
from logkeep.model.segments import Collection, LogName
from tests.kafka.clusters import ID, OTHER_ID, bounds, topic

LOG = TopicPartition("orders", 0)
HISTORY = ID.hex


def broken(known: Reached, start: int, end: int, answer: EpochEnd | None) -> list[Broken]:
    def ask(wanted: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, EpochEnd]:
        assert wanted == ({LOG: known.last_epoch} if answer else {})
        return {LOG: answer} if answer else {}

    return broken_logs([topic("orders")], {LOG: bounds(start, end)}, {LOG: known}, ask)


@pytest.mark.parametrize(
    ("known", "end", "answer", "cause"),
    [
        (Reached(HISTORY, 12, 5), 12, EpochEnd(5, 12), None),
        (Reached(HISTORY, 12, 5), 40, EpochEnd(5, 20), None),
        (Reached(HISTORY, 12, 5), 12, EpochEnd(4, 9), Cause.TRUNCATED),
        (Reached(HISTORY, 12, 5), 9, EpochEnd(5, 9), Cause.TRUNCATED),
        (Reached(HISTORY, 12, 5), 40, EpochEnd(-1, -1), Cause.UNKNOWN_EPOCH),
        (Reached(HISTORY, 12, -1), 11, None, Cause.TRUNCATED),
        (Reached(HISTORY, 12, -1), 12, None, None),
        (Reached(f"{HISTORY}-1", 12, 5), 12, EpochEnd(4, 9), Cause.TRUNCATED),
    ],
)
def test_the_epoch_of_the_last_batch_tells(
    known: Reached, end: int, answer: EpochEnd | None, cause: Cause | None
) -> None:
    assert broken(known, 0, end, answer) == ([Broken(LOG, cause, known.history)] if cause else [])


def test_retention_breaks_nothing() -> None:
    assert broken(Reached(HISTORY, 12, 5), 30, 50, EpochEnd(5, 40)) == []


def test_a_topic_made_again_is_told_by_its_id_and_not_asked_for() -> None:
    assert broken(Reached(OTHER_ID.hex, 12, 5), 0, 3, None) == []


def test_histories_count() -> None:
    assert [next_history(HISTORY), next_history(f"{HISTORY}-9")] == [f"{HISTORY}-1", f"{HISTORY}-10"]


def result(lo: int, hi: int, *epochs: EpochStart, history: str = HISTORY) -> CopyResult:
    log = LogName(Collection.TOPICS, "orders", history, 0)
    one = RangeResult(log=log, lo=lo, hi=hi, outcome=Outcome.COPIED, reached=hi, epochs=epochs)
    return CopyResult(unit="u", ranges=(one,), segments=())


def test_an_interrupted_run_counts_as_far_as_it_came() -> None:
    reached = {LOG: Reached(HISTORY, 12, 5)}
    assert positions(reached, []) == reached
    assert positions(reached, [result(12, 20, EpochStart(6, 15), EpochStart(5, 12))]) == {LOG: Reached(HISTORY, 20, 6)}
    assert positions(reached, [result(12, 20)]) == {LOG: Reached(HISTORY, 20, 5)}
    assert positions(reached, [result(3, 12, EpochStart(1, 3))]) == reached
    assert positions({}, [result(0, 4, EpochStart(2, 0))]) == {LOG: Reached(HISTORY, 4, 2)}
