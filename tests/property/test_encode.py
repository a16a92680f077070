"""Records written anew, in any groups and under any codec, are the records that were read."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.kafka.batches import walk
from logkeep.formats.kafka.encode import encode
from logkeep.formats.kafka.producer_stamp import Outgoing, stamp
from logkeep.formats.kafka.records import RecordColumns, decode
from tests.property.untimed import many
from tests.support.kafka.slow_batches import Seen, Source, read_sent
from tests.support.kafka.slow_records import Slow

_bytes = st.one_of(st.none(), st.binary(max_size=200))
_headers = st.lists(st.tuples(st.binary(max_size=5), _bytes), max_size=3).map(tuple)
_long = st.integers(-(2**63), 2**63 - 1)
_times = st.one_of(st.integers(-200, 2**21), _long)


@st.composite
def _sources(draw: st.DrawFn) -> Source:
    deltas = sorted(draw(st.sets(st.integers(0, 300), min_size=1, max_size=12)))
    records = [Slow(d, draw(_times), draw(_bytes), draw(_bytes), draw(_headers)) for d in deltas]
    return Source(draw(st.integers(0, 2**40)), tuple(records), deltas[-1], draw(st.integers(0, 4)), -1, draw(_long))


def _decoded(data: bytes) -> RecordColumns:
    (part,) = decode(data, walk(data).batches)
    assert isinstance(part, RecordColumns), part
    return part


def _seen(part: RecordColumns) -> list[Seen]:
    rows = range(len(part))
    return [(int(part.times_ms[i]), part.key(i), part.value(i), tuple(part.headers(i))) for i in rows]


@many
@given(_sources(), st.sets(st.integers(1, 11), max_size=3))
def test_what_is_written_is_what_was_read(source: Source, borders: set[int]) -> None:
    part = _decoded(source.encode())
    cuts = [0, *sorted(b for b in borders if b < len(part)), len(part)]
    groups = np.array([(a, b) for a, b in itertools.pairwise(cuts)], np.int64)
    made = encode(part, groups)
    assert made.groups.tolist() == groups.tolist(), "nothing here is too large"
    starts = np.cumsum(made.sizes) - made.sizes
    batches = Outgoing(
        made.buffer,
        starts,
        made.sizes,
        groups[:, 1] - groups[:, 0],
        part.offsets[groups[:, 0]],
        np.empty((0, 2), np.int64),
    )
    stamp(batches, -1, -1, -1)
    expected = [seen for _, seen in source.seen()]
    for index, (first, after) in enumerate(groups.tolist()):
        data = bytes(batches.batch(index))
        sent = read_sent(data)
        assert list(sent.records) == expected[first:after]
        assert sent.attributes == source.attributes
        assert (sent.producer, sent.sequence) == ((-1, -1), -1)
        assert sent.base_time_ms == expected[first][0]
        assert sent.max_time_ms == max(time for time, *_ in expected[first:after])
        again = _decoded(data)
        assert _seen(again) == expected[first:after]
        assert again.offsets.tolist() == list(range(after - first))
