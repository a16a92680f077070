"""Records as Arrow columns, against what was written: null and empty, order and repetition, times of every kind."""

from dataclasses import replace

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.datasets.arrow import SCHEMA, arrow_records
from logkeep.formats.kafka.batches import walk
from logkeep.formats.kafka.records import RecordColumns, decode
from tests.property.untimed import untimed
from tests.support.kafka.slow_batches import APPEND_TIME, Source
from tests.support.kafka.slow_records import Slow

_bytes = st.one_of(st.none(), st.binary(max_size=40))
_headers = st.lists(st.tuples(st.sampled_from((b"", b"a", b"\xff\xfe")), _bytes), max_size=4).map(tuple)
_long = st.integers(-(2**63), 2**63 - 1)


@st.composite
def _sources(draw: st.DrawFn) -> Source:
    deltas = sorted(draw(st.sets(st.integers(0, 100), max_size=20)))
    longer = draw(st.sampled_from((0, 0, 3)))
    records = [Slow(d, draw(st.integers(-9, 9)), draw(_bytes), draw(_bytes), draw(_headers), longer) for d in deltas]
    attributes = draw(st.sampled_from((0, APPEND_TIME))) | draw(st.integers(0, 4))
    return Source(draw(st.integers(0, 2**62)), tuple(records), 100, attributes, -1, draw(_long), draw(_long))


def _table(data: bytes) -> pa.Table:
    found = [arrow_records(part) for part in decode(data, walk(data).batches) if isinstance(part, RecordColumns)]
    for batch in found:
        batch.validate(full=True)
    return pa.Table.from_batches(found, SCHEMA)


@untimed
@given(_sources(), _sources())
def test_every_field_of_every_record_is_there(one: Source, other: Source) -> None:
    log = [one, replace(other, base=one.base + 101)]
    table = _table(b"".join(source.encode() for source in log))
    expected = [(source, offset, seen) for source in log for offset, seen in source.seen()]
    assert table.column("offset").to_pylist() == [offset for _, offset, _ in expected]
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [seen[0] for *_, seen in expected]
    kinds = [int(bool(source.attributes & APPEND_TIME)) for source, *_ in expected]
    assert table.column("timestamp_type").to_pylist() == kinds
    assert table.column("key").to_pylist() == [seen[1] for *_, seen in expected]
    assert table.column("value").to_pylist() == [seen[2] for *_, seen in expected]
    headers = [[(h["key"], h["value"]) for h in row] for row in table.column("headers").to_pylist()]
    assert headers == [list(seen[3]) for *_, seen in expected]


def test_columns_stay_when_the_records_are_overwritten() -> None:
    source = Source(5, (Slow(0, 1, b"key", b"value", ((b"h", b"x"),)),), 0)
    data = bytearray(source.encode())
    (part,) = decode(data, walk(data).batches)
    assert isinstance(part, RecordColumns)
    table = arrow_records(part)
    before = table.to_pylist()
    data[:] = bytes(len(data))
    part.offsets[:], part.times_ms[:], part.spans[:] = 0, 0, 0
    assert table.to_pylist() == before
    assert table.column("key").to_pylist() == [b"key"]


def test_arrow_files_take_the_columns_as_they_are() -> None:
    source = Source(5, (Slow(0, 0, None, b""), Slow(1, 0, b"", None, ((b"a", None), (b"a", b"")))), 1)
    table = _table(source.encode())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, SCHEMA) as writer:
        writer.write_table(table)
    with pa.ipc.open_file(sink.getvalue()) as reader:
        assert reader.read_all() == table


def test_nothing_is_a_table_too() -> None:
    data = Source(5, (Slow(0, 0, b"k", b"v"),), 0).encode()
    (part,) = decode(data, walk(data).batches)
    assert isinstance(part, RecordColumns)
    none = arrow_records(part.within(0, 5))
    none.validate(full=True)
    assert none.num_rows == 0
    assert none.schema == SCHEMA
