"""Every row of the table in `lost_offset`."""

from uuid import UUID

import pytest

from logkeep.kafka.client.fetch import DivergingEpoch
from logkeep.kafka.logs.lost_offset import Cause, LogFacts, LogPosition, OffsetVerdict, explain
from logkeep.model.ranges import Range

OURS, OTHER = UUID(int=1), UUID(int=2)
AT_100 = LogPosition(OURS, 100, last_epoch=5)
KNOWS_NOTHING = LogPosition(OURS, 100)


@pytest.mark.parametrize(
    ("position", "facts", "verdict"),
    [
        (AT_100, LogFacts(None), OffsetVerdict(Cause.DELETED)),
        (AT_100, LogFacts(OTHER, 0, 500, DivergingEpoch(5, 500)), OffsetVerdict(Cause.RECREATED)),
        (AT_100, LogFacts(OURS, 0, 500, DivergingEpoch(-1, -1)), OffsetVerdict(Cause.UNKNOWN_EPOCH)),
        (AT_100, LogFacts(OURS, 200, 500, DivergingEpoch(-1, -1)), OffsetVerdict(Cause.UNKNOWN_EPOCH)),
        (AT_100, LogFacts(OURS, 0, 500, DivergingEpoch(5, 90)), OffsetVerdict(Cause.TRUNCATED, common_end=90)),
        (AT_100, LogFacts(OURS, 0, 90, DivergingEpoch(5, 90)), OffsetVerdict(Cause.TRUNCATED, common_end=90)),
        (AT_100, LogFacts(OURS, 0, 500, DivergingEpoch(4, 80)), OffsetVerdict(Cause.TRUNCATED, common_end=80)),
        (AT_100, LogFacts(OURS, 0, 500, DivergingEpoch(4, 120)), OffsetVerdict(Cause.TRUNCATED, common_end=100)),
        (AT_100, LogFacts(OURS, 95, 500, DivergingEpoch(5, 99)), OffsetVerdict(Cause.TRUNCATED, common_end=99)),
        (AT_100, LogFacts(OURS, 150, 500, DivergingEpoch(5, 99)), OffsetVerdict(Cause.TRUNCATED, common_end=99)),
        (AT_100, LogFacts(OURS, 150, 500, DivergingEpoch(5, 150)), OffsetVerdict(Cause.RETENTION, gap=Range(100, 150))),
        (AT_100, LogFacts(OURS, 150, 500, None), OffsetVerdict(Cause.RETENTION, gap=Range(100, 150))),
        (KNOWS_NOTHING, LogFacts(OURS, 500, 500), OffsetVerdict(Cause.RETENTION, gap=Range(100, 500))),
        (KNOWS_NOTHING, LogFacts(OURS, 0, 99), OffsetVerdict(Cause.TRUNCATED, common_end=99)),
        (KNOWS_NOTHING, LogFacts(OURS, 0, 99, DivergingEpoch(-1, -1)), OffsetVerdict(Cause.TRUNCATED, common_end=99)),
        (KNOWS_NOTHING, LogFacts(OURS, 0, 100), OffsetVerdict(Cause.NONE)),
        (KNOWS_NOTHING, LogFacts(OURS, 100, 100), OffsetVerdict(Cause.NONE)),
        (AT_100, LogFacts(OURS, 100, 500, DivergingEpoch(5, 100)), OffsetVerdict(Cause.NONE)),
        (AT_100, LogFacts(OURS, 0, 500, DivergingEpoch(5, 500)), OffsetVerdict(Cause.NONE)),
    ],
)
def test_every_row(position: LogPosition, facts: LogFacts, verdict: OffsetVerdict) -> None:
    assert explain(position, facts) == verdict


def test_only_other_logs_are_new_histories() -> None:
    assert {c for c in Cause if not c.new_history} == {Cause.NONE, Cause.RETENTION}
