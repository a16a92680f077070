"""Which offsets are read of each log, as Spark's Kafka source decides it."""

import pytest

from logkeep.errors import UsageError
from logkeep.kafka.tables.offsets import wanted_ranges
from logkeep.kafka.tables.options import parse_options
from logkeep.model.ranges import Range
from logkeep.model.segments import Collection, LogName

LOGS = {LogName(Collection.TOPICS, "t", "h", p): Range(10, 20 + p) for p in (0, 1)}
TIMES: dict[int, dict[int, int | None]] = {0: {5: 12, 100: None}, 1: {5: 13, 100: 20}}


def _wanted(**options: str) -> list[tuple[int, int]]:
    parsed = parse_options({"repo": "s3://b", **options})
    found = wanted_ranges(LOGS, parsed, lambda log, time_ms: TIMES[log.partition][time_ms])
    return [(found[log].start, found[log].end) for log in LOGS]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [(10, 20), (10, 21)]),
        ({"startingOffsets": '{"t": {"0": -2, "1": 15}}'}, [(10, 20), (15, 21)]),
        ({"endingOffsets": '{"t": {"0": 11, "1": -1}}'}, [(10, 11), (10, 21)]),
        ({"startingTimestamp": "5"}, [(12, 20), (13, 21)]),
        ({"endingTimestamp": "100"}, [(10, 20), (10, 20)]),
        ({"startingTimestamp": "100", "startingOffsetsByTimestampStrategy": "latest"}, [(20, 20), (20, 21)]),
        ({"startingOffsetsByTimestamp": '{"t": {"0": 5, "1": 100}}'}, [(12, 20), (20, 21)]),
        ({"startingOffsets": '{"t": {"0": 3, "1": 99}}', "failOnDataLoss": "false"}, [(10, 20), (21, 21)]),
        ({"startingTimestamp": "5", "endingOffsets": '{"t": {"0": 11, "1": 20}}'}, [(12, 12), (13, 20)]),
    ],
)
def test_ranges(options: dict[str, str], expected: list[tuple[int, int]]) -> None:
    assert _wanted(**options) == expected


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"startingOffsets": '{"t": {"0": 10}}'}, "no number for t/1"),
        ({"endingOffsets": '{"t": {"0": 10, "1": 10, "2": 10}}'}, "t/2, which is not read"),
        ({"startingOffsets": '{"t": {"0": 3, "1": 10}}'}, r"3 for t/0, of which the backup holds \[10, 20\)"),
        ({"endingOffsets": '{"t": {"0": 10, "1": 22}}'}, r"22 for t/1, of which the backup holds \[10, 21\)"),
        ({"startingTimestamp": "100"}, "no record of t/0 has the time 100"),
    ],
)
def test_what_the_backup_does_not_hold_is_refused(options: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        _wanted(**options)
