"""A range that continues an archive meets a batch that begins before the archived end."""

import pytest

from logkeep.kafka.backup.copy.range_state import RangeCopy
from logkeep.kafka.backup.plan import plan_backup
from logkeep.kafka.backup.units import CopyOutcome, CopyRange
from logkeep.kafka.client.fetch import Code, FetchedPartition
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.lost_offset import Cause
from logkeep.kafka.record.documents import ArchivedReach
from tests.support.kafka.cluster_values import ID, bounds, topic
from tests.support.kafka.handmade_batches import Batch, dense

LOG = TopicPartition("orders", 0)


def planned(known: ArchivedReach, start: int) -> CopyRange:
    (unit,) = plan_backup([topic("orders")], {LOG: bounds(start, 300)}, {LOG: 1}, {LOG: known}).units
    return unit.ranges[0]


def served(*batches: Batch, start: int = 0) -> FetchedPartition:
    data = memoryview(b"".join(b.encode() for b in batches))
    return FetchedPartition(ID, 0, Code.NONE, 300, 300, start, None, -1, -1, data)


@pytest.mark.parametrize("start", [0, 150])
def test_it_is_proof_of_another_past_and_no_gap(start: int) -> None:
    """Also where the log start lies inside that batch, behind the archived end."""
    copy = RangeCopy(planned(ArchivedReach(ID.hex, 100, 3, 100), start), 1)
    taken = copy.take(served(dense(95, 100), dense(195, 105), start=start))
    assert (len(taken.batches), taken.skip) == (0, None)
    result = copy.result()
    assert (result.outcome, result.cause, result.gaps) == (CopyOutcome.NEW_HISTORY, Cause.OTHER_PAST, ())
    assert copy.claimed_to() == max(start, 100)


def test_a_batch_at_the_archived_end_is_copied_and_noted() -> None:
    copy = RangeCopy(planned(ArchivedReach(ID.hex, 100, 3, 100), 0), 1)
    copy.take(served(dense(100, 100), dense(200, 100)))
    result = copy.result()
    assert (result.outcome, result.reached) == (CopyOutcome.COPIED, 300)
    assert result.last_batch is not None
    assert (result.last_batch.base_offset, result.last_batch.last_offset) == (200, 299)


def test_a_log_start_inside_a_batch_is_none_where_nothing_is_archived() -> None:
    """The first backup of a new history begins there."""
    copy = RangeCopy(planned(ArchivedReach(f"{ID.hex}-1", 150, -1), 150), 1)
    copy.take(served(dense(95, 205), start=150))
    assert (copy.result().outcome, copy.result().reached) == (CopyOutcome.COPIED, 300)
