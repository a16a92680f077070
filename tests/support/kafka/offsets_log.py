"""Logs of `__consumer_offsets` made by hand, and a slow judge of where groups are at a time."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL, walk
from logkeep.model.segments import Codec, Collection, LogName, Segment
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from logkeep.store.memory import MemoryStore
from tests.support.kafka.slow_records import Slow, batch_of

LOG = LogName(Collection.TOPICS, "__consumer_offsets", "ab" * 16, 0)
TOPIC_ID = "cd" * 16


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def position_key(group: str, topic: str = "orders", partition: int = 0, kind: int = 1) -> bytes:
    return struct.pack(">h", kind) + text(group) + text(topic) + struct.pack(">i", partition)


def position_value(
    offset: int, version: int = 4, metadata: str = "", time_ms: int = 5, topic_id: str = TOPIC_ID
) -> bytes:
    if version < 3:
        return struct.pack(">hq", version, offset) + text(metadata) + struct.pack(">q", time_ms)
    head = struct.pack(">hqi", version, offset, 7)
    if version == 3:
        return head + text(metadata) + struct.pack(">q", time_ms)
    data = metadata.encode()
    assert len(data) < 127
    tags = b"\x01\x00\x10" + bytes.fromhex(topic_id) if topic_id else b"\x00"
    return head + bytes([len(data) + 1]) + data + struct.pack(">q", time_ms) + tags


@dataclass(frozen=True)
class Event:
    """One batch of one record: a commit, a tombstone (no offset), or a marker (no group)."""

    time_ms: int
    group: str = ""
    offset: int | None = None
    producer: int = -1
    """Of a transaction; -1: outside of one."""
    committed: bool = True
    """Of a marker."""
    kind: int = 1

    def encode(self, at: int) -> bytes:
        def batch(record: Slow, attributes: int) -> bytes:
            time_ms, producer = self.time_ms, self.producer
            return batch_of(
                at, [record], attributes=attributes, base_time_ms=time_ms, max_time_ms=time_ms, producer=producer
            )

        if not self.group:
            marker = Slow(0, 0, struct.pack(">hh", 0, int(self.committed)), struct.pack(">hi", 0, 0))
            return batch(marker, CONTROL | TRANSACTIONAL)
        value = None if self.offset is None else position_value(self.offset, time_ms=self.time_ms)
        record = Slow(0, 0, position_key(self.group, kind=self.kind), value)
        return batch(record, TRANSACTIONAL if self.producer >= 0 else 0)


def state_at(events: Sequence[Event], at_ms: int | None = None) -> dict[str, tuple[int, int]]:
    """By group its offset and that of its record, as its coordinator had them."""
    early = [i for i, e in enumerate(events) if at_ms is None or e.time_ms <= at_ms]
    state: dict[str, tuple[int, int]] = {}
    newest: dict[str, int] = {}
    pending: dict[int, list[tuple[int, Event]]] = {}
    for at, event in enumerate(events[: max(early, default=-1) + 1]):
        if not event.group:
            for then, each in pending.pop(event.producer, []):
                if event.committed and then > newest.get(each.group, -1):
                    assert each.offset is not None
                    state[each.group], newest[each.group] = (each.offset, then), then
        elif event.producer >= 0:
            pending.setdefault(event.producer, []).append((at, event))
        else:
            newest[event.group] = at
            state.pop(event.group, None)
            if event.offset is not None:
                state[event.group] = event.offset, at
    return state


def place() -> SourceRef:
    return SourceRef(MemoryStore(), "repository-1", "prod")


def stored(
    where: SourceRef, batches: Sequence[tuple[int, bytes]], end: int, segment_bytes: int = 200, log: LogName = LOG
) -> list[Segment]:
    """Batches with their offsets, as the product archives them."""
    tokens = iter(f"{number:016x}" for number in range(1, 10_000))
    writer = SegmentWriter(where, log, 0, SegmentLimits(segment_bytes), 0, lambda: next(tokens), Codec.NONE)
    for _, data in batches:
        writer.write(memoryview(data), walk(data).batches)
    writer.finish(end)
    return writer.segments


def archived(where: SourceRef, events: Sequence[Event], segment_bytes: int = 200) -> list[Segment]:
    return stored(where, [(at, e.encode(at)) for at, e in enumerate(events)], len(events), segment_bytes)
