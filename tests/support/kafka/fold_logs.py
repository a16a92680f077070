"""Random compacted logs with kept cuts, and what a consumer would have kept of them: the judge of a fold.

`latest_per_key` is written without the product: a loop over batches as a consumer with `read_committed` gets them.
"""

import random
import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from logkeep.formats.compaction.barriers import Barrier
from logkeep.formats.kafka.batches import APPEND_TIME, CONTROL, DELETE_HORIZON, TRANSACTIONAL
from logkeep.formats.kafka.compression import pack
from tests.support.kafka.slow_batches import unpacked
from tests.support.kafka.slow_records import Slow, batch_of, read_records

PLAIN = -1
_HEADER = struct.Struct(">qiibIhiqqqhii")


@dataclass(frozen=True)
class OneBatch:
    """A batch as it is in the log."""

    base: int
    last: int
    producer: int
    marker: int | None
    """0: aborts, 1: commits; None: it has data."""
    records: tuple[tuple[int, int, Slow], ...]
    """Offset, time, record."""
    transactional: bool
    data: bytes = field(repr=False)


def latest_per_key(log: Iterable[OneBatch], cut: Barrier, buried: Collection[int]) -> dict[object, tuple[object, ...]]:
    """What a backup with this cut restores: by key its latest record; records without a key are all there."""
    seen, waiting = list[tuple[int, int, Slow]](), dict[int, list[tuple[int, int, Slow]]]()
    for batch in log:
        if batch.base >= cut.end:
            break
        if batch.marker is not None:
            ended = waiting.pop(batch.producer, [])
            seen += ended if batch.marker else []
        elif batch.transactional:
            waiting.setdefault(batch.producer, []).extend(batch.records)
        else:
            seen += batch.records
    found: dict[object, tuple[object, ...]] = {}
    for offset, time, record in sorted(seen, key=lambda each: each[0]):
        if cut.start <= offset < cut.end and offset not in buried:
            key = offset if record.key is None else record.key
            found[key] = (offset, time, record.key, record.value, record.headers)
    return found


def without_tombstones(found: dict[object, tuple[object, ...]]) -> dict[object, tuple[object, ...]]:
    return {key: record for key, record in found.items() if record[2] is None or record[3] is not None}


def parsed(data: bytes) -> list[OneBatch]:
    """The batches of an object, read byte by byte."""
    found, at = list[OneBatch](), 0
    while at < len(data):
        base, length, _, _, _, attributes, delta, base_ms, max_ms, producer, _, _, count = _HEADER.unpack_from(data, at)
        whole = data[at : at + 12 + length]
        plain = unpacked(attributes & 7, whole[_HEADER.size :])
        slow = read_records(plain, count, delta)
        appended = bool(attributes & APPEND_TIME)
        times = [(base + r.delta, max_ms if appended else base_ms + r.time_delta, r) for r in slow]
        marker = slow[0].key[3] if attributes & CONTROL and slow and slow[0].key else None
        found.append(
            OneBatch(base, base + delta, producer, marker, tuple(times), bool(attributes & TRANSACTIONAL), whole)
        )
        at += len(whole)
    return found


@dataclass(frozen=True)
class FoldedCase:
    """A log, its rows, its kept cuts and what is buried from which backup on."""

    rows: tuple[tuple[int, int, bytes], ...]
    """Start, end and batches of each."""
    cuts: tuple[Barrier, ...]
    burials: dict[int, frozenset[int]]

    @property
    def batches(self) -> list[OneBatch]:
        return [batch for _, _, data in self.rows for batch in parsed(data)]

    def buried(self, backup: int) -> set[int]:
        return {offset for first, some in self.burials.items() if first <= backup for offset in some}


def random_case(seed: int) -> FoldedCase:
    """Nulls, empties, aborts, open transactions, holes, gaps, all codecs, buried offsets, one to five kept cuts."""
    rng = random.Random(seed)
    made, base, waiting = list[tuple[int, int, bytes]](), rng.choice((0, 0, 7, 1000)), set[int]()
    transactions, keys = rng.random() < 0.6, rng.choice((1, 3, 8, 30))
    for _ in range(rng.randint(1, rng.choice((4, 12, 30)))):
        base += rng.choice((0, 0, 0, 1, 4))
        if waiting and rng.random() < 0.4:
            producer = rng.choice(sorted(waiting))
            waiting.discard(producer)
            made.append(_marker(base, producer, rng.random() < 0.6, rng))
        else:
            producer = rng.choice((PLAIN, 1, 2, 3)) if transactions else PLAIN
            if producer != PLAIN:
                waiting.add(producer)
            made.append(_data(base, producer, keys, rng))
        base = made[-1][1]
    return FoldedCase(_in_rows(made, rng), *_cuts(made, rng))


def _marker(base: int, producer: int, commits: bool, rng: random.Random) -> tuple[int, int, bytes]:
    record = Slow(0, 0, b"\0\0\0" + bytes([commits]), bytes(6))
    time = rng.randint(0, 99)
    fields = {"attributes": CONTROL | TRANSACTIONAL, "base_time_ms": time, "max_time_ms": time, "producer": producer}
    return base, base + 1, batch_of(base, [record], None, **fields)


def _data(base: int, producer: int, keys: int, rng: random.Random) -> tuple[int, int, bytes]:
    delta = rng.randint(0, 5)
    deltas = [d for d in range(delta + 1) if rng.random() < 0.8]
    records = [
        Slow(
            d,
            rng.randint(-10, 30),
            None if rng.random() < 0.05 else f"k{rng.randrange(keys)}".encode(),
            rng.choice((None, b"", b"v", bytes([rng.randrange(256)]) * rng.randint(1, 300))),
            rng.choice(((), ((b"h", None), (b"h", b"x")))),
        )
        for d in deltas
    ]
    codec = rng.choice((0, 0, 0, 1, 2, 3, 4))
    attributes = codec | (TRANSACTIONAL if producer != PLAIN else 0) | rng.choice((0, 0, APPEND_TIME, DELETE_HORIZON))
    payload = bytes(pack(codec, np.frombuffer(b"".join(r.encode() for r in records), np.uint8)))
    base_ms, appended_ms = rng.randint(10, 90), rng.randint(0, 99)
    largest = max((base_ms + r.time_delta for r in records), default=-1)
    fields = {
        "attributes": attributes, "delta": delta, "base_time_ms": base_ms, "producer": producer,
        "max_time_ms": appended_ms if attributes & APPEND_TIME else largest, "epoch": rng.randint(0, 3),
    }  # fmt: skip
    return base, base + delta + 1, batch_of(base, records, payload, **fields)


def _in_rows(made: Sequence[tuple[int, int, bytes]], rng: random.Random) -> tuple[tuple[int, int, bytes], ...]:
    """Rows adjoin, hold holes between batches, and leave gaps now and then."""
    rows, at = list[tuple[int, int, bytes]](), 0
    start = made[0][0]
    while at < len(made):
        count = rng.randint(1, 8)
        some = made[at : at + count]
        at += count
        if rng.random() < 0.05 and 0 < at < len(made):
            start = some[-1][1]  # a gap: these were never archived
            continue
        end = made[at][0] if at < len(made) and rng.random() < 0.5 else some[-1][1]
        rows.append((start, end, b"".join(data for _, _, data in some)))
        start = end
    return tuple(rows)


def _cuts(
    made: Sequence[tuple[int, int, bytes]], rng: random.Random
) -> tuple[tuple[Barrier, ...], dict[int, frozenset[int]]]:
    borders = [made[0][0], *(end for _, end, _ in made)]
    ends = sorted(rng.choice(borders[1:]) for _ in range(rng.randint(1, 5)))
    ends[-1] = ends[-1] if rng.random() < 0.3 else borders[-1]
    start, cuts = borders[0], list[Barrier]()
    for number, end in enumerate(ends):
        if rng.random() < 0.2:
            start = max(start, rng.choice([border for border in borders if border <= end]))
        cuts.append(Barrier(number * 10 + 10, start, end))
    burials = dict[int, frozenset[int]]()
    if rng.random() < 0.5:
        for first in rng.sample(range(5, 65, 5), rng.randint(1, 2)):
            burials[first] = frozenset(rng.sample(range(borders[-1]), min(borders[-1], rng.randint(1, 10))))
    return tuple(cuts), burials
