"""Records by the kernels against the slow reader: what was written comes back, everything else is refused."""

import struct
from collections.abc import Iterable

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from logkeep.formats.compare.digest import NOTHING, Digest, digest_of
from logkeep.formats.kafka import record_kernels as kernels
from logkeep.formats.kafka.batches import APPEND_TIME, CONTROL, DELETE_HORIZON, TRANSACTIONAL, walk
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode
from tests.property.untimed import untimed
from tests.support.kafka.slow_records import Slow, Wrong, batch_of, gzipped, read_records, slow_digest

GZIP = 1
Seen = tuple[int, int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]

_bytes = st.one_of(st.none(), st.binary(max_size=80))
_headers = st.lists(st.tuples(st.binary(max_size=9), _bytes), max_size=3).map(tuple)
_long = st.integers(-(2**63), 2**63 - 1)


@st.composite
def _records(draw: st.DrawFn) -> list[Slow]:
    deltas = sorted(draw(st.sets(st.integers(0, 400), max_size=12)))
    times = st.one_of(st.integers(-200, 2**21), _long)
    longer = st.sampled_from((0, 0, 0, 1, 4))
    return [Slow(d, draw(times), draw(_bytes), draw(_bytes), draw(_headers), draw(longer)) for d in deltas]


@st.composite
def _logs(draw: st.DrawFn) -> list[tuple[int, list[Slow], dict[str, int]]]:
    """Batches with rising offsets, of any kind, some compressed."""
    found, base = [], draw(st.integers(0, 2**40))
    for records in draw(st.lists(_records(), min_size=1, max_size=5)):
        flags = draw(st.sampled_from((0, APPEND_TIME, TRANSACTIONAL, DELETE_HORIZON, TRANSACTIONAL | CONTROL)))
        times = {"base_time_ms": draw(_long), "max_time_ms": draw(_long)}
        fields = {"attributes": flags | draw(st.sampled_from((0, GZIP))), "producer": draw(st.integers(-1, 5)), **times}
        found.append((base, records, fields))
        base += max((r.delta for r in records), default=0) + 1 + draw(st.integers(0, 3))
    return found


def _encoded(log: Iterable[tuple[int, list[Slow], dict[str, int]]]) -> bytes:
    out = b""
    for base, records, fields in log:
        plain = b"".join(r.encode() for r in records)
        payload = gzipped(plain) if fields["attributes"] & GZIP else plain
        out += batch_of(base, records, payload, **fields)
    return out


def _time(record: Slow, fields: dict[str, int]) -> int:
    if fields["attributes"] & APPEND_TIME:
        return fields["max_time_ms"]
    return (fields["base_time_ms"] + record.time_delta + 2**63) % 2**64 - 2**63


def _seen(part: RecordColumns) -> list[Seen]:
    return [
        (int(part.offsets[i]), int(part.times_ms[i]), part.key(i), part.value(i), tuple(part.headers(i)))
        for i in range(len(part))
    ]


@untimed
@given(_logs())
def test_what_was_written_comes_back(log: list[tuple[int, list[Slow], dict[str, int]]]) -> None:
    data = _encoded(log)
    seen, control, transactional, producers = list[Seen](), list[bool](), list[bool](), list[int]()
    for part in decode(data, walk(data).batches):
        assert isinstance(part, RecordColumns), part
        seen += _seen(part)
        control += part.control.tolist()
        transactional += part.transactional.tolist()
        producers += part.producer_ids.tolist()
    flat = [(base, r, f) for base, records, f in log for r in records]
    assert seen == [(base + r.delta, _time(r, f), r.key, r.value, r.headers) for base, r, f in flat]
    assert control == [bool(f["attributes"] & CONTROL) for _, _, f in flat]
    assert transactional == [bool(f["attributes"] & TRANSACTIONAL) for _, _, f in flat]
    assert producers == [f["producer"] for _, _, f in flat]


def _digest(data: bytes, batches: slice = slice(None)) -> Digest:
    found = NOTHING
    for part in decode(data, walk(data).batches[batches]):
        assert isinstance(part, RecordColumns), part
        found = found.then(digest_of(part))
    return found


@untimed
@given(_logs(), st.integers(0, 5))
@example([(3, [Slow()], {"attributes": APPEND_TIME, "producer": 0, "base_time_ms": 0, "max_time_ms": -(2**63)})], 0)
def test_the_digest_is_the_one_on_the_page_and_parts_make_the_whole(
    log: list[tuple[int, list[Slow], dict[str, int]]], border: int
) -> None:
    data = _encoded(log)
    whole = _digest(data)
    counted = [(b + r.delta, _time(r, f), r, f) for b, some, f in log for r in some if not f["attributes"] & CONTROL]
    assert (whole.content_a, whole.content_b, whole.offsets) == slow_digest([(o, t, r) for o, t, r, _ in counted])
    assert whole.records == len(counted)
    assert whole.append_times == sum(bool(f["attributes"] & APPEND_TIME) for *_, f in counted)
    assert _digest(data, slice(0, border)).then(_digest(data, slice(border, None))) == whole
    assert Digest.parse(str(whole)) == whole


@untimed
@given(_records(), st.data())
def test_any_change_of_a_record_changes_the_digest(records: list[Slow], data: st.DataObject) -> None:
    if not records:
        return
    index = data.draw(st.integers(0, len(records) - 1))
    old = records[index]
    other = data.draw(
        st.one_of(
            _bytes.map(lambda b: Slow(old.delta, old.time_delta, b, old.value, old.headers)),
            _bytes.map(lambda b: Slow(old.delta, old.time_delta, old.key, b, old.headers)),
            _headers.map(lambda h: Slow(old.delta, old.time_delta, old.key, old.value, h)),
            st.integers(-9, 9).map(lambda t: Slow(old.delta, t, old.key, old.value, old.headers)),
        )
    )
    changed = [*records[:index], other, *records[index + 1 :]]
    before, after = _digest(batch_of(7, records)), _digest(batch_of(7, changed))
    assert before.same_content(after) == (records == changed)
    moved = _digest(batch_of(8, records))
    assert before.same_content(moved)
    assert before.offsets != moved.offsets


def test_order_counts() -> None:
    one, two = Slow(0, 0, b"a", b"1"), Slow(1, 0, b"b", b"2")
    there = _digest(batch_of(0, [one, two]))
    back = _digest(batch_of(0, [Slow(0, 0, b"b", b"2"), Slow(1, 0, b"a", b"1")]))
    assert there.records == back.records == 2
    assert not there.same_content(back)


@untimed
@given(_records(), st.data())
def test_mutated_records_are_read_as_the_slow_reader_reads_them(records: list[Slow], data: st.DataObject) -> None:
    """Flipped, cut, doubled: the kernels accept exactly what the slow reader accepts, and name the batch otherwise."""
    plain = bytearray(b"".join(r.encode() for r in records))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(plain)))
        kind = data.draw(st.sampled_from(("set", "cut", "add", "end")))
        if kind == "set" and at < len(plain):
            plain[at] = data.draw(st.sampled_from((0, 1, 2, 127, 128, 255, plain[at] ^ 1, plain[at] ^ 128)))
        elif kind == "cut":
            del plain[at : at + data.draw(st.integers(0, 3))]
        elif kind == "add":
            plain[at:at] = data.draw(st.binary(max_size=4))
        elif kind == "end":
            del plain[at:]
    count = max(len(records) + data.draw(st.integers(-1, 1)), 0)
    batch = batch_of(50, records, bytes(plain), count=count, delta=400, base_time_ms=0)
    before, after = batch_of(3, [Slow(0)], epoch=1), batch_of(700, [Slow(2, 0, b"last")])
    walked = walk(before + batch + after)
    parts = [p if isinstance(p, Malformed) else _seen(p) for p in decode(before + batch + after, walked.batches)]
    try:
        expected = [
            (50 + r.delta, r.time_delta, r.key, r.value, r.headers) for r in read_records(bytes(plain), count, 400)
        ]
    except Wrong:
        expected = None
    if len(walked.batches) < 3:
        return  # the header check found it already: more records than the bytes can hold
    wrong = [p.base_offset for p in parts if isinstance(p, Malformed)]
    seen = [row for p in parts if not isinstance(p, Malformed) for row in p if 50 <= row[0] < 700]
    assert (seen, wrong) == ((expected, []) if expected is not None else ([], [50]))
    assert isinstance(parts[0], list)
    assert parts[0][0][0] == 3
    assert isinstance(parts[-1], list)
    assert parts[-1][-1][0] == 702


@untimed
@given(st.integers(-(2**63), 2**63 - 1))
def test_times_of_ten_bytes(time_ms: int) -> None:
    data = batch_of(0, [Slow(0, time_ms, b"k")], base_time_ms=0)
    (part,) = decode(data, walk(data).batches)
    assert isinstance(part, RecordColumns)
    assert part.times_ms.tolist() == [time_ms]
    assert struct.calcsize("q") == part.times_ms.itemsize
    assert part.spans.dtype == np.int32
    assert part.spans.shape == (1, kernels.SPAN_COLUMNS)
