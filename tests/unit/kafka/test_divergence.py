"""Every row of the table."""

from uuid import UUID

import pytest

from logkeep.kafka.divergence import Cause, LogFacts, Position, Verdict, explain
from logkeep.kafka.fetch import EpochEnd
from logkeep.model.ranges import Range

OURS, OTHER = UUID(int=1), UUID(int=2)
AT_100 = Position(OURS, 100, last_epoch=5)
KNOWS_NOTHING = Position(OURS, 100)


@pytest.mark.parametrize(
    ("position", "facts", "verdict"),
    [
        (AT_100, LogFacts(None), Verdict(Cause.DELETED)),
        (AT_100, LogFacts(OTHER, 0, 500, EpochEnd(5, 500)), Verdict(Cause.RECREATED)),
        (AT_100, LogFacts(OURS, 0, 500, EpochEnd(-1, -1)), Verdict(Cause.UNKNOWN_EPOCH)),
        (AT_100, LogFacts(OURS, 200, 500, EpochEnd(-1, -1)), Verdict(Cause.UNKNOWN_EPOCH)),
        (AT_100, LogFacts(OURS, 0, 500, EpochEnd(5, 90)), Verdict(Cause.TRUNCATED, common_end=90)),
        (AT_100, LogFacts(OURS, 0, 90, EpochEnd(5, 90)), Verdict(Cause.TRUNCATED, common_end=90)),
        (AT_100, LogFacts(OURS, 0, 500, EpochEnd(4, 80)), Verdict(Cause.TRUNCATED, common_end=80)),
        (AT_100, LogFacts(OURS, 0, 500, EpochEnd(4, 120)), Verdict(Cause.TRUNCATED, common_end=100)),
        (AT_100, LogFacts(OURS, 95, 500, EpochEnd(5, 99)), Verdict(Cause.TRUNCATED, common_end=99)),
        (AT_100, LogFacts(OURS, 150, 500, EpochEnd(5, 99)), Verdict(Cause.TRUNCATED, common_end=99)),
        (AT_100, LogFacts(OURS, 150, 500, EpochEnd(5, 150)), Verdict(Cause.RETENTION, gap=Range(100, 150))),
        (AT_100, LogFacts(OURS, 150, 500, None), Verdict(Cause.RETENTION, gap=Range(100, 150))),
        (KNOWS_NOTHING, LogFacts(OURS, 500, 500), Verdict(Cause.RETENTION, gap=Range(100, 500))),
        (KNOWS_NOTHING, LogFacts(OURS, 0, 99), Verdict(Cause.TRUNCATED, common_end=99)),
        (KNOWS_NOTHING, LogFacts(OURS, 0, 99, EpochEnd(-1, -1)), Verdict(Cause.TRUNCATED, common_end=99)),
        (KNOWS_NOTHING, LogFacts(OURS, 0, 100), Verdict(Cause.NONE)),
        (KNOWS_NOTHING, LogFacts(OURS, 100, 100), Verdict(Cause.NONE)),
        (AT_100, LogFacts(OURS, 100, 500, EpochEnd(5, 100)), Verdict(Cause.NONE)),
        (AT_100, LogFacts(OURS, 0, 500, EpochEnd(5, 500)), Verdict(Cause.NONE)),
    ],
)
def test_every_row(position: Position, facts: LogFacts, verdict: Verdict) -> None:
    assert explain(position, facts) == verdict


def test_only_other_logs_are_new_histories() -> None:
    assert {c for c in Cause if not c.new_history} == {Cause.NONE, Cause.RETENTION}
