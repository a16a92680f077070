"""Records spread over partitions by their keys: against a slow partitioner, and whatever pieces they come in."""

import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.kafka import record_kernels as spans
from logkeep.formats.kafka.batches import BatchStretch, walk
from logkeep.formats.kafka.partitioner import TOGETHER, Share
from logkeep.formats.kafka.partitioner_kernels import NO_KEY, OUTSIDE, key_partitions
from logkeep.formats.kafka.producer_stamp import Outgoing, stamp
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.restore.regroup import BATCH_BYTES, regrouped
from logkeep.kafka.restore.plan.repartition import LARGEST_MADE_BYTES, equal_share
from tests.property.untimed import many, untimed
from tests.support.kafka.slow_batches import Seen, Source, read_sent
from tests.support.kafka.slow_partitioner import slow_murmur2, slow_partition
from tests.support.kafka.slow_records import Slow

APACHE = {
    b"": 275646681,
    b"a": -1563381124,
    b"ab": 316155434,
    b"abc": 479470107,
    b"abcd": -1323649548,
    b"abcde": 461995741,
    b"order-17": 1568318961,
    "a key of some length, with umlauts: äöü".encode(): 293697813,
    b"\xff\xfe\x80\x00\x81\xff\xff": -153816307,
    bytes(1000): 139236344,
}
"""What `org.apache.kafka.common.utils.Utils.murmur2` of kafka-clients 4.3 answered."""

_keys = st.one_of(st.none(), st.binary(max_size=20), st.sampled_from((b"", b"a", b"b", b"order-17")))


def _partitions(keys: list[bytes | None], partitions: int) -> list[int]:
    data = np.frombuffer(b"." + b"".join(key or b"" for key in keys), np.uint8)
    rows, at = np.zeros((len(keys), spans.SPAN_COLUMNS), np.int32), 1
    for row, key in zip(rows, keys, strict=True):
        row[spans.KEY_AT], row[spans.KEY_SIZE] = at, -1 if key is None else len(key)
        at += len(key or b"")
    found = np.full(len(keys), 99, np.int32)
    key_partitions(data, rows, partitions, found)
    return [int(n) for n in found]


@pytest.mark.parametrize(("key", "answer"), APACHE.items(), ids=lambda v: repr(v)[:20])
def test_apaches_own_values(key: bytes, answer: int) -> None:
    assert struct.unpack("<i", struct.pack("<I", slow_murmur2(key)))[0] == answer
    assert _partitions([key], 2**31 - 1) == [(answer & 0x7FFFFFFF) % (2**31 - 1)]


@many
@given(st.lists(_keys, max_size=8), st.integers(1, 2**31 - 1))
def test_the_kernel_is_the_slow_partitioner(keys: list[bytes | None], partitions: int) -> None:
    expected = [NO_KEY if key is None else slow_partition(key, partitions) for key in keys]
    assert _partitions(keys, partitions) == expected


@pytest.mark.parametrize(("at", "size"), [(-1, 1), (0, 5), (3, 2), (2**31 - 1, 2**31 - 1), (-(2**31), 4)])
def test_a_key_outside_of_the_bytes_is_not_read(at: int, size: int) -> None:
    rows, found = np.zeros((1, spans.SPAN_COLUMNS), np.int32), np.zeros(1, np.int32)
    rows[0, spans.KEY_AT], rows[0, spans.KEY_SIZE] = at, size
    key_partitions(np.frombuffer(b"abcd", np.uint8), rows, 7, found)
    assert found.tolist() == [OUTSIDE]


def test_the_largest_batch_is_known_to_the_plan() -> None:
    """What is made of small records, with what encoding and compressing may add to it."""
    assert BATCH_BYTES * 11 // 10 < LARGEST_MADE_BYTES


@untimed
@given(st.integers(0, 10**12), st.integers(1, 500))
def test_shares_are_the_whole(whole: int, partitions: int) -> None:
    parts = [equal_share(whole, partitions, each) for each in range(partitions)]
    assert sum(parts) == whole
    assert max(parts) - min(parts) <= 1


@st.composite
def _logs(draw: st.DrawFn) -> list[Source]:
    found, base = list[Source](), draw(st.integers(0, 20))
    values = st.one_of(st.none(), st.binary(max_size=8), st.integers(1, 300).map(bytes))
    for _ in range(draw(st.integers(0, 6))):
        deltas = sorted(draw(st.sets(st.integers(0, 30), min_size=1, max_size=9)))
        records = [Slow(d, draw(st.integers(-5, 2**20)), draw(_keys), draw(values), ((b"h", b"v"),)) for d in deltas]
        codec = draw(st.sampled_from((0, 0, 1, 4)))
        found.append(Source(base, tuple(records), deltas[-1], codec, -1, draw(st.integers(0, 2**41))))
        base += deltas[-1] + 1 + draw(st.sampled_from((0, 7)))
    return found


def _stretches(log: list[Source], together: int) -> list[BatchStretch]:
    datas = [b"".join(s.encode() for s in log[at : at + together]) for at in range(0, len(log), together)]
    return [BatchStretch(data, walk(data).batches) for data in datas]


def _made(log: list[Source], wanted: Share, together: int, chunk_bytes: int) -> list[Outgoing]:
    records = visible_records(_stretches(log, together), View(0, 10**6, share=wanted))
    return list(regrouped(records, 2, 400, chunk_bytes))


def _batches(made: list[Outgoing]) -> list[bytes]:
    for each in made:
        stamp(each, 7, 0, 0)
        assert each.source == 2
    return [bytes(each.batch(index)) for each in made for index in range(len(each))]


def _belongs(log: list[Source], wanted: Share) -> list[tuple[int, Seen]]:
    def target(offset: int, key: bytes | None) -> int:
        if key is None:
            return (offset // TOGETHER + wanted.source_partition) % wanted.partitions
        return slow_partition(key, wanted.partitions)

    records = [each for source in log for each in source.seen()]
    return [(offset, seen) for offset, seen in records if target(offset, seen[1]) == wanted.partition]


@untimed
@given(_logs(), st.integers(1, 4), st.integers(0, 3))
def test_every_record_is_in_one_partition(log: list[Source], partitions: int, source_partition: int) -> None:
    """In the order it had, in batches that are not too large and of one codec; and the runs say which those are."""
    for partition in range(partitions):
        wanted = Share(partition, partitions, source_partition)
        made = _made(log, wanted, 2, 1000)
        expected = _belongs(log, wanted)
        sent = [read_sent(data) for data in _batches(made)]
        assert [seen for batch in sent for seen in batch.records] == [seen for _, seen in expected]
        runs = [row for each in made for row in each.runs.tolist()]
        assert [start + i for start, n in runs for i in range(n)] == [offset for offset, _ in expected]
        assert [each.total_records for each in made] == [int(each.runs[:, 1].sum()) for each in made]
        codecs = {offset: source.attributes for source in log for offset, _ in source.seen()}
        theirs = [batch.attributes for batch in sent for _ in batch.records]
        assert theirs == [codecs[offset] for offset, _ in expected]
        for batch, data in zip(sent, _batches(made), strict=True):
            assert len(data) <= 400 + 61 or len(batch.records) == 1


@untimed
@given(_logs(), st.integers(1, 3), st.integers(1, 4), st.sampled_from((1, 100, 700, 10**6)))
def test_batches_do_not_depend_on_the_pieces(log: list[Source], partitions: int, together: int, chunk: int) -> None:
    """Whoever tries again reads the archive in other pieces, and must send the same bytes."""
    wanted = Share(0, partitions, 1)
    whole, pieces = (_batches(_made(log, wanted, *sizes)) for sizes in ((len(log) or 1, 10**6), (together, chunk)))
    assert [read_sent(data).records for data in pieces] == [read_sent(data).records for data in whole]
    assert [data[61:] for data in pieces] == [data[61:] for data in whole]


@untimed
@given(_logs())
def test_batches_are_filled(log: list[Source]) -> None:
    """Two neighbours of one codec would not have fitted into one."""
    sent = [read_sent(data) for data in _batches(_made(log, Share(0, 1, 0), 3, 10**6))]
    sizes = {seen: 21 + len(Slow(0, 0, *seen[1:]).body()) for batch in sent for seen in batch.records}
    for one, other in pairwise(sent):
        if one.attributes == other.attributes:
            assert sum(sizes[seen] for seen in one.records) + sizes[other.records[0]] > 400
