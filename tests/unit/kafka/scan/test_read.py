"""What a scan returns and reads, on archives that the product wrote: judged by what a restore would bring back."""

import pickle
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from logkeep.errors import Damaged
from logkeep.formats.datasets.arrow import SCHEMA, arrow_records
from logkeep.formats.kafka.batch_index import decode as decode_index
from logkeep.formats.kafka.batch_index import encode as encode_index
from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL, walk
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.transactions import Settling
from logkeep.kafka.logs.archived import stretches
from logkeep.kafka.scan.plan import split
from logkeep.kafka.scan.read import read_range
from logkeep.kafka.scan.times import first_offset_at
from logkeep.kafka.scan.values import ScanCounters, ScanIsolation, ScanRange
from logkeep.model.segments import Codec, Segment
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from logkeep.store.local.store import LocalStore
from tests.support.kafka.slow_records import Slow, batch_of
from tests.support.kafka.stored_segments import LOG, place, written

ABORT, COMMIT, OTHER = 0, 1, 7


def marker(base: int, producer: int, kind: int, time_ms: int = 0) -> bytes:
    fields = {"attributes": TRANSACTIONAL | CONTROL, "producer": producer}
    record = Slow(0, 0, b"\0\0\0" + bytes([kind]), bytes(6))
    return batch_of(base, [record], None, base_time_ms=time_ms, max_time_ms=time_ms, **fields)


def data(base: int, count: int, producer: int = -1, size: int = 20, time_ms: int = 0) -> bytes:
    attributes = TRANSACTIONAL if producer >= 0 else 0
    records = [Slow(d, d, b"k%d" % d, b"%d." % (base + d) + bytes(size)) for d in range(count)]
    times = {"base_time_ms": time_ms, "max_time_ms": time_ms + count - 1}
    return batch_of(base, records, None, attributes=attributes, producer=producer, **times)


def random_log(seed: int, batches: int = 200) -> bytes:
    """Data, transactions of four producers that overlap and some of which stay open, markers of unknown kinds."""
    rng, base, made = random.Random(seed), 0, list[bytes]()
    for _ in range(batches):
        producer = rng.choice((-1, 1, 2, 3, 4))
        if producer >= 0 and rng.random() < 0.4:
            made.append(marker(base, producer, rng.choice((ABORT, COMMIT, COMMIT, OTHER)), base))
            base += 1
        else:
            count = rng.randint(1, 6)
            made.append(data(base, count, producer, rng.choice((20, 3000)), base))
            base += count
        base += rng.choice((0, 0, 0, 3))
    return b"".join(made)


def whole(where: SourceRef, segments: list[Segment], **fields: object) -> ScanRange:
    end = segments[-1].end
    return ScanRange(place=where, log=LOG, start=0, end=end, segments=tuple(segments), settled_to=end, **fields)  # type: ignore[arg-type]


def rows(batches: "list[pa.RecordBatch]") -> list[dict[str, object]]:
    found: list[dict[str, object]] = pa.Table.from_batches(batches, SCHEMA).to_pylist()
    return found


def restored(wanted: ScanRange) -> list[dict[str, object]]:
    """The same records by the way of a restore: the whole log is read, its transactions are settled first."""
    settling = Settling()
    for stretch in stretches(wanted.place, wanted.segments, 0, wanted.settled_to):
        settling.take(stretch.buffer, stretch.batches)
    settled = settling.settled() if wanted.isolation is ScanIsolation.COMMITTED else None
    view = View(wanted.start, wanted.end, settled, before_ms=wanted.until_ms)
    found = [
        arrow_records(part if wanted.since_ms is None else part.chosen(part.times_ms >= wanted.since_ms))
        for part in visible_records(stretches(wanted.place, wanted.segments, wanted.start, wanted.end), view)
    ]
    return rows(found)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("segment_bytes", [3_000, 400_000, 1 << 40])
def test_any_range_has_the_records_that_a_restore_brings_back(codec: Codec, segment_bytes: int) -> None:
    """Small objects are read whole, large ones by their index; transactions end in the same object or a later one."""
    for seed in range(2):
        where, rng = place(), random.Random(seed)
        segments = written(
            where, random_log(seed, 600 if segment_bytes > 3_000 else 60), codec, segment_bytes=segment_bytes
        )
        log = whole(where, segments)
        for isolation in ScanIsolation:
            for _ in range(4):
                low, high = sorted((rng.randrange(log.end), rng.randrange(log.end)))
                since, until = sorted((rng.randrange(log.end), rng.randrange(log.end)))
                wanted = msgspec.structs.replace(
                    log, start=low, end=high + 1, isolation=isolation,
                    since_ms=rng.choice((None, since)), until_ms=rng.choice((None, until)),
                )  # fmt: skip
                expected = restored(wanted)
                assert rows(list(read_range(wanted))) == expected
                backwards = list(read_range(wanted, newest_first=True))
                assert rows(backwards[::-1]) == expected
                pieces = split([wanted], rng.randint(1, 9))
                assert rows([b for piece in pieces for b in read_range(piece)]) == expected


def test_nothing_is_read_before_the_first_batch_is_asked_for() -> None:
    where, counters = place(), ScanCounters()
    wanted = whole(where, written(where, random_log(1), Codec.NONE))
    scan = read_range(wanted, counters)
    assert counters == ScanCounters()
    next(scan)
    assert counters.requests


_PAGES = """
import pickle, resource, sys
from logkeep.kafka.scan.read import read_range

wanted = pickle.load(sys.stdin.buffer)
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    read = sum(batch.nbytes for batch in read_range(wanted))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, read // resource.getpagesize())
"""


def test_memory_of_earlier_batches_is_used_again(tmp_path: Path) -> None:
    """In a process of its own: others may have told the allocator already. A fault takes longer than to copy a page."""
    where = SourceRef(LocalStore(tmp_path), "repository-1", "prod")
    log = b"".join(data(9 * n, 9, size=100_000) for n in range(50))
    given = pickle.dumps(whole(where, written(where, log, Codec.NONE)))
    run = subprocess.run([sys.executable, "-c", _PAGES], input=given, stdout=subprocess.PIPE, check=True)
    faults, pages = map(int, run.stdout.splitlines()[-1].split())
    assert faults < pages / 10


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_one_offset_costs_an_index_a_batch_and_a_marker(codec: Codec) -> None:
    """The log is read nowhere else, although the batch belongs to a transaction that ends much later."""
    where = place()
    log = [data(10 * n, 10, 5 if n == 400 else -1, 2_000, 10 * n) for n in range(1_000)]
    segments = written(where, b"".join(log) + marker(10_000, 5, COMMIT), codec, segment_bytes=8 << 20)
    assert len(segments) > 2
    counters = ScanCounters()
    wanted = msgspec.structs.replace(whole(where, segments), start=4_003, end=4_004)
    (batch,) = read_range(wanted, counters)
    assert batch["offset"].to_pylist() == [4_003]
    stored = sum(s.stored_bytes for s in segments)
    assert (counters.batches, counters.records) == (1, 1)
    assert counters.stored_bytes < (60_000 if codec is Codec.NONE else stored / 2)
    aborted = written(w := place(), b"".join(log) + marker(10_000, 5, ABORT), codec, segment_bytes=8 << 20)
    assert not list(read_range(msgspec.structs.replace(whole(w, aborted), start=4_003, end=4_004)))


def test_a_time_window_reads_its_batches_and_few_others() -> None:
    """With the append time of a broker, both borders are known from headers."""
    where = place()
    log = b"".join(
        batch_of(10 * n, [Slow(d, 0, b"k", bytes(3_000)) for d in range(10)], attributes=0x08, max_time_ms=n)
        for n in range(1_000)
    )
    segments = written(where, log, Codec.NONE, segment_bytes=8 << 20)
    counters = ScanCounters()
    found = list(read_range(whole(where, segments, since_ms=400, until_ms=500), counters))
    assert sum(b.num_rows for b in found) == 1_000 == 10 * counters.batches
    own = len(log) / 10
    assert own <= counters.stored_bytes <= 1.2 * own


def test_a_time_window_of_producers_is_read_to_the_end_of_the_log() -> None:
    """A header has no smallest time, and a late record may belong to the window. Nothing before it is read."""
    where = place()
    times = [*range(1_000), 450]
    log = b"".join(
        batch_of(10 * n, [Slow(d, 0, b"k", bytes(3_000)) for d in range(10)], base_time_ms=time, max_time_ms=time)
        for n, time in enumerate(times)
    )
    segments = written(where, log, Codec.NONE, segment_bytes=8 << 20)
    counters = ScanCounters()
    found = list(read_range(whole(where, segments, since_ms=400, until_ms=500), counters))
    assert sum(b.num_rows for b in found) == 10 * 101
    assert counters.batches == len(times) - 400
    own = len(log) * counters.batches / len(times)
    assert own <= counters.stored_bytes <= 1.2 * own


def test_a_lost_index_costs_one_pass_and_a_wrong_one_changes_nothing() -> None:
    for codec in (Codec.NONE, Codec.ZSTD):
        where = place()
        (segment,) = segments = written(where, random_log(4, 600), codec)
        wanted = msgspec.structs.replace(whole(where, segments), start=300, end=900)
        expected = restored(wanted)
        name = layout.index_of(where.source, segment.log, segment.first, segment.token)
        index = decode_index(where.store.get(name, 1 << 20))
        where.store.delete(name)
        assert rows(list(read_range(wanted))) == expected
        swapped = index.rows.copy()
        swapped["leader_epoch"][:] = 9
        where.store.put_new(name, encode_index(replace(index, rows=swapped)))
        assert rows(list(read_range(wanted))) == expected
        assert rows(list(read_range(wanted, newest_first=True))[::-1]) == expected
        assert first_offset_at(wanted, 600) is not None


def test_damage_of_a_batch_is_reported_and_others_are_still_read() -> None:
    where = place()
    (segment,) = segments = written(where, b"".join(data(10 * n, 10, -1, 2_000) for n in range(100)), Codec.NONE)
    name = layout.segment(where.source, segment)
    stored = bytearray(where.store.get(name, 1 << 30))
    stored[len(stored) // 2] ^= 1
    where.store.delete(name)
    where.store.put_new(name, bytes(stored))
    log = whole(where, segments)
    with pytest.raises(Damaged):
        list(read_range(log))
    (batch,) = read_range(msgspec.structs.replace(log, start=3, end=4))
    assert batch["offset"].to_pylist() == [3]


def test_columns_that_are_not_wanted_are_not_made() -> None:
    where = place()
    wanted = whole(where, written(where, data(0, 3), Codec.NONE))
    (batch,) = read_range(wanted, columns={"offset", "value"})
    assert batch.schema.names == ["offset", "value"]
    assert batch["offset"].to_pylist() == [0, 1, 2]


def test_the_offset_of_a_time_is_the_one_that_a_broker_would_name() -> None:
    where = place()
    log = b"".join(data(10 * n, 10, time_ms=100 * n) for n in range(5))
    wanted = whole(where, written(where, log, Codec.NONE))
    assert [first_offset_at(wanted, t) for t in (0, 5, 10, 205, 409, 410)] == [0, 5, 10, 25, 49, None]


def _one_object(where: SourceRef, log: bytes, start: int, token: str) -> Segment:
    writer = SegmentWriter(where, LOG, start, SegmentLimits(1 << 40), 0, lambda: token, Codec.NONE)
    writer.write(memoryview(log), walk(memoryview(log)).batches)
    writer.finish(start)
    (segment,) = writer.segments
    return segment


def test_what_follows_the_end_of_a_row_in_its_object_does_not_count() -> None:
    """It may be of a past that the source has left: here that past commits, and has later times."""
    where = place()
    left = data(0, 10, 7) + marker(10, 7, COMMIT, 5) + data(11, 10, time_ms=9_000)
    row = msgspec.structs.replace(_one_object(where, left, 0, "a" * 16), end=10)
    now = data(10, 5, time_ms=100) + marker(15, 7, ABORT, 100) + data(16, 10, time_ms=9_000)
    log = whole(where, [row, _one_object(where, now, 10, "b" * 16)])
    assert rows(list(read_range(log))) == restored(log)
    assert [r["offset"] for r in restored(log)] == [*range(10, 15), *range(16, 26)]
    assert first_offset_at(log, 9_000) == 16


def test_objects_that_are_older_than_the_wanted_time_are_not_opened() -> None:
    where, counters = place(), ScanCounters()
    log = b"".join(data(10 * n, 10, size=500, time_ms=1_000 * n) for n in range(50))
    segments = written(where, log, Codec.NONE, segment_bytes=5_000)
    assert len(segments) > 20
    wanted = whole(where, segments, since_ms=49_000)
    assert [r["offset"] for r in rows(list(read_range(wanted, counters)))] == [*range(490, 500)]
    assert counters.stored_bytes <= segments[-1].stored_bytes + segments[-2].stored_bytes + 10_000
    assert counters.requests < 6
