"""Batches for another cluster: only what must change changes, and it can be undone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import first_broken, walk
from logkeep.formats.kafka.restore.relabel import MOVED, ROOM, moved, moved_back, original, relabel
from tests.property.untimed import untimed
from tests.support.kafka.handmade_batches import dense
from tests.support.kafka.offline_restore import archived_as

_PRODUCERS = st.one_of(
    st.just(-1), st.integers(0, 10_000), st.integers(0, ROOM - 1), st.integers(MOVED, 2**63 - 1 - ROOM)
)


@untimed
@given(st.lists(_PRODUCERS, min_size=1))
def test_producers_stay_apart_and_come_back(producers: list[int]) -> None:
    there = moved(np.array(producers, np.int64))
    assert all(new >= MOVED or old == -1 for old, new in zip(producers, there.tolist(), strict=True))
    assert len(set(there.tolist())) == len(set(producers))
    assert moved_back(there).tolist() == producers


def test_the_last_room_is_full() -> None:
    with pytest.raises(Damaged):
        moved(np.array([2**63 - 1], np.int64))


@untimed
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 99), st.integers(-1, 5000)), min_size=1, max_size=8))
def test_batches_are_as_made_by_hand_and_can_be_undone(shapes: list[tuple[int, int, int]]) -> None:
    base, made = 0, []
    for records, epoch, producer in shapes:
        made.append(dense(base, records, epoch=epoch, producer=producer).encode())
        base += records
    source = b"".join(made)
    data = np.frombuffer(bytearray(source), np.uint8)
    relabel(data, walk(source).batches)
    assert data.tobytes() == b"".join(map(archived_as, made))
    walked = walk(data.tobytes()).batches
    assert first_broken(data.tobytes(), walked) is None
    assert original(data, walked).tolist() == walk(source).batches.headers["crc"].tolist()
