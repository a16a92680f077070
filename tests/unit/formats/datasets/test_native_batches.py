"""Arrow records as native batches: what Kafka's own decoder reads back, and where batches end."""

import datetime
import random

import pyarrow as pa
import pytest

from logkeep.formats.datasets.arrow import SCHEMA, arrow_records
from logkeep.formats.datasets.native_batches import native_batches
from logkeep.formats.kafka.batches import Batches, WalkEnd, first_broken, walk
from logkeep.formats.kafka.records import Malformed, decode
from tests.support.both_forms import both_forms

Row = dict[str, object]


def row(offset: int, time: int = 5, kind: int = 0, **more: object) -> Row:
    made: Row = {"offset": offset, "timestamp": time, "timestamp_type": kind, "key": None, "value": None, "headers": []}
    return {**made, **more}


def table(rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def decoded(data: memoryview, batches: Batches) -> pa.Table:
    parts = []
    for part in decode(data, batches):
        assert not isinstance(part, Malformed), part
        parts.append(arrow_records(part))
    return pa.Table.from_batches(parts, SCHEMA)


def round_trip(records: pa.RecordBatch, most_bytes: int = 1 << 20) -> list[tuple[int, int]]:
    """Checks everything that the archive relies on; base offset and number of records of each batch."""
    data, batches = native_batches(records, most_bytes)
    found = walk(data)
    assert found.stop is WalkEnd.END
    assert found.batches.base_offsets.tolist() == batches.base_offsets.tolist()
    assert first_broken(data, found.batches) is None
    assert decoded(data, found.batches).equals(pa.Table.from_batches([records], SCHEMA))
    headers = batches.headers
    assert set(headers["leader_epoch"].tolist()) <= {0}
    assert {*headers["producer_id"].tolist(), *headers["base_sequence"].tolist()} <= {-1}
    assert set((headers["attributes"] & 7).tolist()) <= {4}
    return list(zip(batches.base_offsets.tolist(), headers["records"].tolist(), strict=True))


def test_null_and_empty_headers_and_holes_come_back_exactly() -> None:
    headers = [{"key": b"a", "value": b"x"}, {"key": b"", "value": None}, {"key": b"\xff", "value": b""}]
    rows = [
        row(3, -1, key=b"", value=b"v"),
        row(10, 0, key=b"k", value=b"", headers=headers),
        row(11, 2**62, value=b"y" * 300, headers=headers[:1] * 20),
    ]
    with both_forms():
        assert round_trip(table(rows)) == [(3, 3)]
        assert round_trip(table(rows).slice(1)) == [(10, 2)]
        assert round_trip(table(rows).slice(1, 1)) == [(10, 1)]


def test_append_times_have_a_batch_for_each_run_of_equal_ones() -> None:
    rows = [row(0, 7, 1), row(1, 7, 1), row(2, 8, 1), row(3, 8, 0), row(4, 9, 0), row(5, 9, 1)]
    assert round_trip(table(rows)) == [(0, 2), (2, 1), (3, 2), (5, 1)]


def test_a_hole_of_more_than_31_bits_begins_a_batch() -> None:
    assert round_trip(table([row(0), row(2**31 - 1), row(2**31), row(2**63 - 2)])) == [
        (0, 2),
        (2**31, 1),
        (2**63 - 2, 1),
    ]


def test_batches_end_before_they_are_larger_than_wanted_and_a_large_record_has_its_own() -> None:
    rows = [row(i, value=b"x" * 400) for i in range(10)] + [row(10, value=b"x" * 5000), row(11)]
    assert round_trip(table(rows), 2000) == [(0, 4), (4, 4), (8, 2), (10, 1), (11, 1)]


def test_nothing_gives_no_batch() -> None:
    data, batches = native_batches(table([]))
    assert (len(data), len(batches)) == (0, 0)


@pytest.mark.parametrize("seed", range(5))
def test_any_records_come_back(seed: int) -> None:
    random_ = random.Random(seed)

    def some() -> bytes | None:
        return random_.choice([None, b"", random_.randbytes(random_.randrange(200))])

    offset, rows = 0, []
    for _ in range(300):
        offset += random_.choice([1, 1, 1, 2, 1000, 2**32])
        count = random_.choice([0, 0, 1, 5])
        headers = [{"key": some() or b"", "value": some()} for _ in range(count)]
        rows.append(
            row(offset, random_.randrange(-1, 2**41), random_.randrange(2), key=some(), value=some(), headers=headers)
        )
    round_trip(table(rows), random_.choice([1, 1000, 1 << 20]))
    assert isinstance(table(rows)[1][0].as_py(), datetime.datetime)
