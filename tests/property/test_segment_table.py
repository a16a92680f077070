"""Rows in columns behave as lists of segments do: the plain Python version of each operation is the reference."""

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import Damaged, UsageError
from logkeep.model.ranges import Range
from logkeep.model.segments import Codec, Collection, LogName, Segment
from logkeep.repository.parts import SegmentTable, decode, encode, log_totals
from logkeep.repository.parts.table import SCHEMA
from tests.property.segment_rows import key, log_names, rows, segments
from tests.property.untimed import untimed

_SOME = SegmentTable.from_segments(
    [
        Segment(
            log=LogName(Collection.TOPICS, "t", "h", 0), start=0, end=1, first=0, token="0" * 16, records=1,
            stored_bytes=1, plain_bytes=1, base_time_ms=-1, max_time_ms=-1, sha256="0" * 64, plain_sha256="0" * 64,
        )
    ]
)  # fmt: skip


def _name(source: str, segment: Segment) -> str:
    log = segment.log
    kind = "snapshot" if log.collection is Collection.SNAPSHOTS else "log"
    packed = {Codec.NONE: "", Codec.ZSTD: ".zst", Codec.GZIP: ".gz"}[segment.codec]
    folder = f"sources/{source}/{log.collection.value}/{log.name}/{log.history}/partition={log.partition}"
    return f"{folder}/{segment.first:020d}.{segment.token}.{kind}{packed}"


def _covers(segment: Segment, cuts: dict[LogName, Range]) -> bool:
    span = cuts.get(segment.log)
    if span is None:
        return False
    if segment.start == segment.end:
        return span.start <= segment.start <= span.end
    return max(segment.start, span.start) < min(segment.end, span.end)


@untimed
@given(rows())
def test_rows_come_back_sorted_and_unchanged(given_rows: list[Segment]) -> None:
    table = SegmentTable.from_segments(given_rows)
    assert list(table.to_segments()) == sorted(given_rows, key=key)
    assert table.logs() == sorted({s.log for s in given_rows})


@untimed
@given(rows())
def test_bytes_hold_exactly_the_rows_and_depend_on_nothing_else(given_rows: list[Segment]) -> None:
    table = SegmentTable.from_segments(given_rows)
    data = encode(table)
    read = decode(data, len(given_rows))
    assert read == table
    assert list(read.to_segments()) == list(table.to_segments())
    halves = [SegmentTable.from_segments(given_rows[n::2]) for n in (0, 1)]
    assert encode(SegmentTable.merge(halves)) == encode(read) == data


@untimed
@given(rows(), st.data())
def test_covering_keeps_what_the_plain_rule_keeps(given_rows: list[Segment], data: st.DataObject) -> None:
    table = SegmentTable.from_segments(given_rows)
    known = st.sampled_from(table.logs()) if given_rows else log_names
    edges = [0, 5, 2**63 - 1, *(s.start for s in given_rows), *(s.end for s in given_rows)]
    spans = st.tuples(st.sampled_from(edges), st.sampled_from(edges)).map(lambda pair: Range(*sorted(pair)))
    cuts = data.draw(st.dictionaries(known | log_names, spans, max_size=5))
    kept = table.covering(cuts)
    assert list(kept.to_segments()) == [s for s in sorted(given_rows, key=key) if _covers(s, cuts)]
    assert decode(encode(kept), len(kept)) == kept


@untimed
@given(rows())
def test_object_names_are_those_of_the_scalar_version(given_rows: list[Segment]) -> None:
    table = SegmentTable.from_segments(given_rows)
    assert list(table.object_names("prod.eu-1")) == [_name("prod.eu-1", s) for s in sorted(given_rows, key=key)]


def test_object_names_and_rows_reach_over_slices_and_row_groups() -> None:
    log = LogName(Collection.TXNLOGS, "member-1", "h", 0)
    other = LogName(Collection.SNAPSHOTS, "member-1", "h", 0)
    made = [
        Segment(
            log=log if n < 69_999 else other, start=n, end=n + 1, first=n, token=f"{n:016x}", records=1, stored_bytes=1,
            plain_bytes=1, base_time_ms=-1, max_time_ms=-1, sha256="0" * 64, plain_sha256="1" * 64,
        )
        for n in range(70_000)
    ]  # fmt: skip
    table = decode(encode(SegmentTable.from_segments(made)), 70_000)
    assert list(table.object_names("zk")) == [_name("zk", s) for s in sorted(made, key=key)]
    assert list(table.to_segments()) == sorted(made, key=key)


@untimed
@given(rows(8), rows(8))
def test_merge_is_the_union_and_refuses_an_object_twice(ours: list[Segment], theirs: list[Segment]) -> None:
    tables = [SegmentTable.from_segments(part) for part in (ours, theirs)]
    if {key(s) for s in ours} & {key(s) for s in theirs}:
        with pytest.raises(Damaged, match="twice"):
            SegmentTable.merge(tables)
    else:
        assert list(SegmentTable.merge(tables).to_segments()) == sorted(ours + theirs, key=key)


@untimed
@given(segments())
def test_the_same_object_twice_is_refused(segment: Segment) -> None:
    with pytest.raises(Damaged, match="twice"):
        SegmentTable.from_segments([segment, segment])


def test_an_unlawful_source_makes_no_names() -> None:
    with pytest.raises(UsageError):
        list(SegmentTable.from_segments([]).object_names("../x"))


def _legal_for_the_model(name: str, history: str) -> bool:
    try:
        LogName(Collection.TOPICS, name, history, 0)
    except Damaged:
        return False
    return True


_odd_text = st.text("a.-/_\n\0é ", max_size=4) | st.text(max_size=3)


@untimed
@given(_odd_text, _odd_text)
def test_the_kernels_know_the_same_names_as_the_model(name: str, history: str) -> None:
    row = _SOME.arrow.to_pylist()[0] | {"name": name, "history": history}
    table = pa.Table.from_pylist([row], schema=SCHEMA)
    if _legal_for_the_model(name, history):
        assert [log.name for log in SegmentTable.validated(table).logs()] == [name]
    else:
        with pytest.raises(Damaged, match="is not a legal"):
            SegmentTable.validated(table)


_small = st.integers(0, 1000)
_times = st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1)


@given(rows(), st.lists(st.tuples(_small, _small, _small, _times, _times), min_size=30, max_size=30))
@untimed
def test_totals_are_those_of_each_log(some: list[Segment], numbers: list[tuple[int, int, int, int, int]]) -> None:
    names = ("records", "stored_bytes", "plain_bytes", "base_time_ms", "max_time_ms")
    found = [
        msgspec.structs.replace(s, **dict(zip(names, values, strict=True)))
        for s, values in zip(some, numbers, strict=False)
    ]
    totals = log_totals(SegmentTable.from_segments(found))
    assert set(totals) == {s.log for s in found}
    for log, total in totals.items():
        own = [s for s in found if s.log == log]
        assert (total.segments, total.records) == (len(own), sum(s.records for s in own))
        assert total.stored_bytes == sum(s.stored_bytes for s in own)
        assert total.plain_bytes == sum(s.plain_bytes for s in own)
        assert total.base_time_ms == min((s.base_time_ms for s in own if s.base_time_ms >= 0), default=-1)
        assert total.max_time_ms == max([-1, *(s.max_time_ms for s in own)])
