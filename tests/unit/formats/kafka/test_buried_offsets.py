"""Runs of buried offsets: which offsets and batches they hide, and their bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import BatchStretch, walk
from logkeep.formats.kafka.buried_offsets import MAGIC, BuriedOffsets, decode_runs, encode_runs, joined
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.restore.synthetic_batches import thinned_batch
from tests.support.kafka.slow_records import Slow, batch_of

OFFSETS = st.sets(st.integers(0, 60))
RECORDS = [Slow(i, i, b"k%d" % i, b"v" * i) for i in range(5)]
LOG = b"".join(batch_of(base, RECORDS, base_time_ms=0) for base in range(0, 60, 5))


def _of(offsets: set[int]) -> BuriedOffsets:
    return BuriedOffsets.of(np.array(sorted(offsets), np.int64))


def _seen(data: bytes, buried: BuriedOffsets | None = None) -> list[int]:
    stretch = BatchStretch(memoryview(data), walk(data).batches)
    view = View(0, 60, buried=buried)
    return [int(offset) for part in visible_records([stretch], view) for offset in part.offsets]


@given(OFFSETS, OFFSETS)
def test_they_are_the_offsets_that_were_buried(one: set[int], other: set[int]) -> None:
    both = joined([_of(one), _of(other)])
    every = np.arange(62)
    assert set(every[both.hides(every)].tolist()) == one | other
    assert both.count == len(one | other)
    again = decode_runs(encode_runs(both), "somewhere")
    assert (again.starts.tolist(), again.ends.tolist()) == (both.starts.tolist(), both.ends.tolist())
    firsts, lasts = np.arange(0, 60, 5), np.arange(4, 60, 5)
    touched = [bool({*range(first, first + 5)} & (one | other)) for first in firsts.tolist()]
    assert both.touches(firsts, lasts).tolist() == touched
    assert both.within(10, 20).count == len({o for o in one | other if 10 <= o < 20})


@given(OFFSETS)
def test_a_view_and_a_thinned_log_lack_exactly_these_records(offsets: set[int]) -> None:
    buried, left = _of(offsets), [o for o in range(60) if o not in offsets]
    assert _seen(LOG, buried) == left
    batches = walk(LOG).batches
    thinned = b"".join(thinned_batch(memoryview(LOG), batches[at : at + 1], buried) for at in range(len(batches)))
    assert _seen(thinned) == left


@pytest.mark.parametrize(
    "data",
    [b"", b"LKBURY2\n", MAGIC + b"\0" * 8, MAGIC + b"\0" * 16, MAGIC + b"\xff" * 8 + b"\0" * 8,
     MAGIC + np.array([5, 9, 8, 12], "<i8").tobytes()],
)  # fmt: skip
def test_other_bytes_are_damage(data: bytes) -> None:
    with pytest.raises(Damaged):
        decode_runs(data, "somewhere")
