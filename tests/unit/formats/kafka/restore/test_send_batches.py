"""Stamps, borders and refusals of what is sent, each shown by one small log."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from logkeep.errors import Damaged
from logkeep.formats.compare.digest import digest_of
from logkeep.formats.compare.digest_kernels import fold
from logkeep.formats.compare.log_compare_kernels import match, same_batches
from logkeep.formats.datasets.arrow import arrow_records
from logkeep.formats.kafka.batches import BatchStretch, first_broken, walk
from logkeep.formats.kafka.encode_kernels import encode_groups, gather
from logkeep.formats.kafka.record_kernels import decode_batches, header_spans
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.restore.send_batches import OffsetHole, Outgoing, outgoing, stamp
from logkeep.formats.kafka.transactions import SettledTransactions
from logkeep.formats.warm import warm
from tests.support.kafka.slow_batches import APPEND_TIME, CONTROL, DELETE_HORIZON, TRANSACTIONAL, Source, read_sent
from tests.support.kafka.slow_records import Slow, batch_of


def _three(base: int, attributes: int = 0, producer: int = -1) -> Source:
    records = tuple(Slow(i, i, b"k%03d" % (base + i), b"v") for i in range(3))
    return Source(base, records, 2, attributes, producer, 1000, 1002)


def _stretch(*sources: Source) -> BatchStretch:
    data = b"".join(source.encode() for source in sources)
    return BatchStretch(data, walk(data).batches)


def _shape(view: View, *sources: Source) -> list[tuple[str, int, int]]:
    """Holes, and the runs of what lies between them."""
    found = []
    for part in outgoing([_stretch(*sources)], view):
        if isinstance(part, OffsetHole):
            found.append(("hole", part.start, part.length))
        else:
            found += [("run", start, count) for start, count in part.runs.tolist()]
    return found


def _only(view: View, *sources: Source) -> Outgoing:
    (part,) = outgoing([_stretch(*sources)], view)
    assert isinstance(part, Outgoing)
    return part


def test_batches_at_the_borders_of_the_view_are_cut() -> None:
    view = View(11, 17, keep_offsets=True)
    sources = (_three(7), _three(10), _three(13), _three(16), _three(19))
    assert _shape(view, *sources) == [("run", 11, 6)]
    part = _only(view, *sources)
    assert part.records.tolist() == [2, 3, 1]
    assert part.first_offsets.tolist() == [11, 13, 16]


def test_nothing_is_left_unsaid_when_offsets_are_kept() -> None:
    assert _shape(View(5, 30, keep_offsets=True), _three(10), _three(16)) == [
        ("hole", 5, 5),
        ("run", 10, 3),
        ("hole", 13, 3),
        ("run", 16, 3),
        ("hole", 19, 11),
    ]
    assert _shape(View(5, 30, keep_offsets=True)) == [("hole", 5, 25)]
    assert _shape(View(5, 5, keep_offsets=True), _three(5)) == []
    assert _shape(View(5, 30), _three(10), _three(16)) == [("run", 10, 3), ("run", 16, 3)]
    assert list(outgoing([], View(0, 9))) == []


def test_holes_span_what_does_not_count_and_many_stretches() -> None:
    control = Source(13, (Slow(0, 0, b"\0\0\0\1", b""),), 0, TRANSACTIONAL | CONTROL, 7)
    empty = Source(14, (), 5)
    stretches = [_stretch(each) for each in (_three(10, TRANSACTIONAL, 7), control, empty, _three(20))]
    shape = [p if isinstance(p, OffsetHole) else p.runs.tolist() for p in outgoing(stretches, View(10, 23, None, True))]
    assert shape == [[[10, 3]], OffsetHole(13, 7), [[20, 3]]]


def test_a_batch_with_holes_is_cut_at_them_where_offsets_are_kept() -> None:
    compacted = Source(10, tuple(Slow(d, d, b"k", b"v") for d in (1, 2, 5, 6, 7, 9)), 9, attributes=4)
    parts = list(outgoing([_stretch(compacted)], View(10, 20, keep_offsets=True)))
    shape = [p if isinstance(p, OffsetHole) else (p.runs.tolist(), p.records.tolist()) for p in parts]
    assert shape == [
        OffsetHole(10, 1),
        ([[11, 2]], [2]),
        OffsetHole(13, 2),
        ([[15, 3]], [3]),
        OffsetHole(18, 1),
        ([[19, 1]], [1]),
    ]
    assert _only(View(10, 20), compacted).records.tolist() == [6]


def test_append_times_become_the_times_of_the_records() -> None:
    part = _only(View(0, 9), _three(0, APPEND_TIME))
    stamp(part, 1, 0, 0)
    sent = read_sent(bytes(part.batch(0)))
    assert [time for time, *_ in sent.records] == [1002, 1002, 1002]
    assert (sent.base_time_ms, sent.max_time_ms, sent.attributes) == (1002, 1002, 0)


@pytest.mark.parametrize("kind", [TRANSACTIONAL, DELETE_HORIZON, TRANSACTIONAL | DELETE_HORIZON])
def test_what_only_a_broker_says_is_cleared(kind: int) -> None:
    part = _only(View(0, 9), _three(0, kind, 7))
    stamp(part, 1, 0, 0)
    sent = read_sent(bytes(part.batch(0)))
    assert sent.attributes == 0
    assert [time for time, *_ in sent.records] == [1000, 1001, 1002]


def test_sequences_go_round_and_a_stamp_replaces_the_last_one() -> None:
    part = _only(View(0, 9), _three(0), _three(3), _three(6))
    stamp(part, 8, 2, 99, transactional=True)
    sent = [read_sent(bytes(part.batch(i))) for i in range(3)]
    assert [(s.producer, s.sequence, s.attributes) for s in sent] == [
        ((8, 2), 99, TRANSACTIONAL),
        ((8, 2), 102, TRANSACTIONAL),
        ((8, 2), 105, TRANSACTIONAL),
    ]
    stamp(part, 2**62, 0, 2**31 - 4)
    sent = [read_sent(bytes(part.batch(i))) for i in range(3)]
    assert [(s.producer, s.sequence, s.attributes) for s in sent] == [
        ((2**62, 0), 2**31 - 4, 0),
        ((2**62, 0), 2**31 - 1, 0),
        ((2**62, 0), 2, 0),
    ]


def test_the_archive_is_not_written_to() -> None:
    source = _stretch(_three(0))
    before = bytes(source.buffer)
    (part,) = outgoing([source], View(0, 3))
    assert isinstance(part, Outgoing)
    stamp(part, 1, 1, 1)
    assert source.buffer == before


def test_what_is_sent_as_it_is_is_not_copied() -> None:
    source = _stretch(_three(0), _three(3))
    (part,) = outgoing([source], View(0, 6))
    assert isinstance(part, Outgoing)
    assert np.shares_memory(part.buffer, np.frombuffer(source.buffer, np.uint8))
    assert [np.shares_memory(np.frombuffer(each.rest, np.uint8), part.buffer) for each in part.ready()] == [True, True]


def test_what_must_be_encoded_anew_and_cannot_be_read_is_damage() -> None:
    data = batch_of(4, [Slow(0), Slow(1)], b"rubbish" * 3, attributes=APPEND_TIME)
    stretch = BatchStretch(data, walk(data).batches)
    with pytest.raises(Damaged, match="the batch at offset 4"):
        list(outgoing([stretch], View(0, 9)))
    with pytest.raises(Damaged, match="the batch at offset 4"):
        list(visible_records([stretch], View(0, 9)))
    assert list(outgoing([stretch], View(6, 9))) == [], "nobody asked for it"


def test_large_stretches_are_worked_on_in_chunks() -> None:
    sources = [_three(3 * i) for i in range(50)]
    size = len(sources[0].encode())
    parts = list(outgoing([_stretch(*sources)], View(0, 150), chunk_bytes=10 * size))
    assert [len(part) for part in parts if isinstance(part, Outgoing)] == [10] * 5
    parts = list(outgoing([_stretch(*sources)], View(0, 150), chunk_bytes=1))
    assert len(parts) == 50


def test_batches_lie_back_to_back_whatever_lay_between_them() -> None:
    control = Source(3, (Slow(0, 0, b"\0\0\0\1", b""),), 0, TRANSACTIONAL | CONTROL, 7)
    part = _only(View(0, 99), _three(0), control, _three(4), _three(7, APPEND_TIME), _three(10))
    ends = (part.positions + part.sizes).tolist()
    assert [end for end, _ in pairwise([*ends, 0])][-1] == len(part.buffer)
    assert part.positions.tolist() == [0, *ends[:-1]]
    assert part.runs.tolist() == [[0, 3], [4, 9]]
    assert part.runs.dtype == np.int64


KERNELS: tuple[Any, ...] = (decode_batches, encode_groups, gather, header_spans, fold, match, same_batches)


def test_after_warming_nothing_is_left_to_compile() -> None:
    """Every way that records take, from whatever holds their bytes, finds its types compiled."""
    warm()
    before = [kernel.signatures for kernel in KERNELS]
    assert all(before)
    for codec in range(5):
        for kind in (0, APPEND_TIME):
            data = _three(0, codec | kind).encode()
            for buffer in (data, bytearray(data), memoryview(data)):
                stretch = BatchStretch(buffer, walk(data).batches)
                for view in (View(0, 3), View(1, 9, SettledTransactions((), ()), keep_offsets=True)):
                    sent = [each for each in outgoing([stretch], view) if isinstance(each, Outgoing)]
                    assert sent
                    for each in sent:
                        stamp(each, 1, 0, 0)
                    for part in visible_records([stretch], view):
                        assert digest_of(part).records == arrow_records(part).num_rows
                        assert digest_of(part.chosen(part.offsets > 1)).records == 1
                        assert arrow_records(part.chosen(part.offsets > 1)).num_rows == 1
    assert [kernel.signatures for kernel in KERNELS] == before


def test_bytes_that_rot_after_their_check_are_not_sealed_again() -> None:
    """The CRC that is sent follows from the archived one: the target finds what happened in memory since."""
    archive = bytearray(_three(0, 0).encode())
    (part,) = outgoing([BatchStretch(archive, walk(archive).batches)], View(0, 9))
    assert isinstance(part, Outgoing)
    archive[-1] ^= 1
    stamp(part, 7, 0, 0)
    sent = part.batch(0)
    assert first_broken(sent, walk(sent).batches) == 0
