"""Fillers: golden bytes, every offset counted, a million of them within the limits of a broker."""

import hashlib

import pytest

from logkeep.formats.kafka.batches import first_broken, walk
from logkeep.formats.kafka.records import RecordColumns, decode
from logkeep.formats.kafka.restore.send_batches import stamp
from logkeep.formats.kafka.restore.synthetic_batches import MOST_RECORDS, filler_batches
from tests.support.kafka.slow_batches import TRANSACTIONAL, read_sent, unpacked
from tests.support.kafka.slow_records import Slow

GOLDEN_THREE = (
    "000000000000000000000055ffffffff02a0690601001400000002ffffffffffffffffffffffffffffffff00000000000012"
    "670000000000000000000328b52ffd202add0000981a0000000e6c6f676b65657001001a0000020402006013e29861"
)
GOLDEN_MILLION_PLAIN = "6344d60e8313ec9370ebff230e3508e3ef55f1dfb7c4f9b3fb39730d7fa8e429"


def test_three_fillers_are_these_bytes() -> None:
    (part,) = filler_batches(3)
    stamp(part, 4711, 0, 0, transactional=True)
    assert bytes(part.batch(0)).hex() == GOLDEN_THREE
    sent = read_sent(bytes(part.batch(0)))
    assert sent.records == ((-1, b"logkeep", None, ()),) * 3
    assert (sent.attributes, sent.base_time_ms, sent.max_time_ms) == (TRANSACTIONAL | 4, -1, -1)
    assert (sent.producer, sent.sequence) == ((4711, 0), 0)


def test_a_million_fillers_are_one_batch_that_a_broker_takes() -> None:
    (part,) = filler_batches(MOST_RECORDS)
    stamp(part, 1, 0, 0)
    data = bytes(part.batch(0))
    assert len(data) < 1 << 20, "what brokers accept unless told otherwise"
    plain = unpacked(4, data[61:])
    assert plain.startswith(b"".join(Slow(i, 0, b"logkeep").encode() for i in range(20_000)))
    assert hashlib.sha256(plain).hexdigest() == GOLDEN_MILLION_PLAIN
    batches = walk(data).batches
    assert first_broken(data, batches) is None
    found = [p for p in decode(data, batches) if isinstance(p, RecordColumns)]
    assert sum(len(p) for p in found) == MOST_RECORDS


@pytest.mark.parametrize(("count", "most", "expected"), [(0, 5, []), (5, 5, [5]), (12, 5, [5, 5, 2]), (1, 1, [1])])
def test_all_are_there(count: int, most: int, expected: list[int]) -> None:
    parts = list(filler_batches(count, most))
    assert [part.total_records for part in parts] == expected
    assert all(len(part) == 1 and len(part.runs) == 0 for part in parts)


def test_each_has_a_header_of_its_own() -> None:
    one, two = filler_batches(10, 5)
    stamp(one, 1, 0, 0)
    before = one.batch(0)
    stamp(two, 1, 0, 5)
    assert one.batch(0) == before != two.batch(0)


@pytest.mark.parametrize("most", [0, -1, MOST_RECORDS + 1])
def test_sizes_that_cannot_be(most: int) -> None:
    with pytest.raises(ValueError, match="fillers"):
        list(filler_batches(1, most))
