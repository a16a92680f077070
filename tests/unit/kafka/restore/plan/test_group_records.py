"""Whether archived offsets are valid in a topic with another id."""

import pytest

from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.facts.neighbour_records import ReadRecord, RecordsAround
from logkeep.kafka.restore.plan.group_offsets import Reason
from logkeep.kafka.restore.plan.group_records import find_doubt, recreated_logs


def _record(offset: int, value: bytes = b"v") -> ReadRecord:
    return ReadRecord(offset, 1_000 + offset, None, value, ())


@pytest.mark.parametrize(
    ("archived", "live", "start", "wanted"),
    (
        ((_record(2), _record(3)), (_record(2), _record(3)), 0, None),
        ((_record(2), _record(3)), (_record(2), None), 0, None),
        ((_record(2), None), (_record(2), _record(3)), 0, None),
        ((_record(2), _record(3)), (_record(2, b"x"), _record(3)), 0, Reason.DIFFERENT),
        ((_record(2), _record(3)), (_record(2), _record(3, b"x")), 0, Reason.DIFFERENT),
        ((_record(2), _record(3)), (_record(2), _record(4)), 0, Reason.DIFFERENT),
        ((_record(2), _record(3)), (None, _record(3)), 0, Reason.DIFFERENT),
        ((_record(2), _record(3)), (None, _record(3)), 3, None),
        ((_record(2), None), (None, _record(3)), 3, Reason.UNPROVEN),
        ((None, _record(3)), (None, _record(3)), 0, None),
        ((None, None), (None, _record(3)), 0, Reason.UNPROVEN),
        ((None, None), (None, None), 0, Reason.UNPROVEN),
    ),
)
def test_the_records_around_decide(
    archived: tuple[ReadRecord | None, ReadRecord | None],
    live: tuple[ReadRecord | None, ReadRecord | None],
    start: int,
    wanted: Reason | None,
) -> None:
    assert find_doubt(RecordsAround(*archived), RecordsAround(*live), start, 10) is wanted


def test_topics_with_the_archived_id_are_not_compared() -> None:
    same, other, gone = (TopicPartition(name, 0) for name in ("same", "other", "gone"))
    assert recreated_logs({same: "a", other: "a", gone: "a"}, {"same": "a", "other": "b"}) == {other}
