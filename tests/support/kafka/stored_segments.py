"""Segments written by the product itself into memory, for tests of what is read back."""

import hashlib
from dataclasses import dataclass

from logkeep.formats.kafka.batches import walk
from logkeep.model.segments import Codec, Collection, LogName, Segment
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.parts import Expected
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from logkeep.store.memory import MemoryStore
from tests.support.kafka.handmade_batches import Batch

LOG = LogName(Collection.TOPICS, "orders", "00" * 16, 0)


def place() -> SourceRef:
    return SourceRef(MemoryStore(), "repository-1", "prod")


def log_of(sizes: list[tuple[int, int]]) -> bytes:
    """Batches of about these sizes, each with its attributes; payloads that zstd makes a little smaller."""
    filler = b"".join(hashlib.sha256(b"%d" % i).digest() + bytes(16) for i in range(30_000))
    batches = [Batch(at, attributes=codec, payload=filler[at : at + size]) for at, (size, codec) in enumerate(sizes)]
    return b"".join(batch.encode() for batch in batches)


def written(
    where: SourceRef, log: bytes, codec: Codec, *, chunk: int = 8 << 20, segment_bytes: int = 1 << 40
) -> list[Segment]:
    """Write a log in replies of about `chunk` bytes, each cut at a batch."""
    tokens = iter(f"{number:016x}" for number in range(1, 1000))
    writer = SegmentWriter(where, LOG, 0, SegmentLimits(segment_bytes), 0, lambda: next(tokens), codec)
    rest = memoryview(log)
    while rest:
        batches = walk(rest[:chunk]).batches
        batches = batches if len(batches) else walk(rest).batches[:1]
        writer.write(rest, batches)
        rest = rest[batches.end :]
    writer.finish(0)
    return writer.segments


@dataclass(frozen=True)
class Packed:
    """One log in one object of zstd frames, and how to spoil it."""

    log: bytes
    frames: list[bytes]

    @classmethod
    def of(cls, log: bytes) -> "Packed":
        where = place()
        (segment,) = written(where, log, Codec.ZSTD)
        stored = where.store.get(layout.segment("prod", segment), 1 << 30)
        return cls(log, split(stored))


def split(stored: bytes) -> list[bytes]:
    """Frames, found by a second reader of zstd's block heads."""
    frames: list[bytes] = []
    while stored:
        descriptor = stored[4]
        single = bool(descriptor & 0x20)
        at = 5 + (0 if single else 1) + {0: 1 if single else 0, 1: 2, 2: 4, 3: 8}[descriptor >> 6]
        last = False
        while not last:
            block = int.from_bytes(stored[at : at + 3], "little")
            last = bool(block & 1)
            at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
        frames.append(stored[:at])
        stored = stored[at:]
    return frames


def expected(name: str, stored: bytes, plain: bytes) -> Expected:
    """A row that tells the truth about these bytes."""
    digests = hashlib.sha256(stored).hexdigest(), hashlib.sha256(plain).hexdigest()
    return Expected(name, len(stored), digests[0], Codec.ZSTD, len(plain), digests[1])
