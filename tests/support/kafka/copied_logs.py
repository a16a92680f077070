"""Copies on a real broker, and the comparison of what was archived with the broker's own files."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.formats.kafka.batch_index import decode, index_of
from logkeep.formats.kafka.batches import WalkEnd, first_broken, walk
from logkeep.kafka.backup.units import DEFAULT_SEGMENT_BYTES, CopyRange, CopyUnit
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.logs.brokers import Brokers
from logkeep.model.segments import Codec, Segment
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.reader import StoredLog
from tests.support.kafka.plain_client import PlainBrokers

_LIMIT = 1 << 30


def whole_range(brokers: PlainBrokers, topic: str, partition: int) -> CopyRange:
    """Everything that a partition holds now."""
    topic_id = brokers.topic_id(topic)
    start, end = (brokers.offset(topic, partition, when) for when in (-2, -1))
    return CopyRange(topic, topic_id, partition, start, end, topic_id.hex, first=True)


def split(whole: CopyRange, pieces: int) -> list[CopyRange]:
    """The same offsets as several ranges, with borders that care for no batch."""
    width = max((whole.hi - whole.lo) // pieces, 1)
    borders = [*list(range(whole.lo, whole.hi, width))[:pieces], whole.hi]
    ranges = [replace(whole, lo=lo, hi=hi, first=False) for lo, hi in pairwise(borders)]
    return [replace(ranges[0], first=whole.first), *ranges[1:]] if ranges else [whole]


def unit_of(
    name: str,
    place: SourceRef,
    brokers: Brokers,
    ranges: Sequence[CopyRange],
    *,
    max_bytes: int = 8 << 20,
    segment_bytes: int = DEFAULT_SEGMENT_BYTES,
    codec: Codec = Codec.NONE,
) -> CopyUnit:
    limits = FetchLimits(max_bytes=max_bytes, max_wait_ms=100)
    return CopyUnit(name, place, 1, "run-1", 1, tuple(ranges), brokers, segment_bytes, limits, codec)


def archived(place: SourceRef, joined: Sequence[Segment]) -> list[bytes]:
    """The batches of one log as a reader of the archive sees them; every object and index is checked on the way."""
    found: list[bytes] = []
    for piece in joined:
        if piece.has_object:
            data = StoredLog.of(place, piece).whole(_LIMIT)
            walked = walk(data)
            assert walked.stop is WalkEnd.END
            assert first_broken(data, walked.batches) is None
            index_name = layout.index_of(place.source, piece.log, piece.first, piece.token)
            stored = decode(place.store.get(index_name, _LIMIT))
            assert (stored.rows == index_of(walked.batches).rows).all()
            chosen = (stored.rows["last_offset"] >= piece.start) & (stored.rows["base_offset"] < piece.end)
            rows = stored.rows[chosen]
            found += [data[r["position"] : r["position"] + r["size"]] for r in rows]
    return found


def on_disk(kafka: EmbeddedKafka, topic: str, partition: int, start: int, end: int) -> list[bytes]:
    """The batches of `[start, end)` in the broker's own segment files."""
    directory = kafka.directory / "data" / f"{topic}-{partition}"
    found: list[bytes] = []
    for path in sorted(directory.glob("*.log")):
        data = path.read_bytes()
        batches = walk(data).batches
        for base, last, at, size in zip(
            batches.base_offsets, batches.last_offsets, batches.positions, batches.sizes, strict=True
        ):
            if last >= start and base < end:
                found.append(data[at : at + size])
    return found


def look_at_disk(kafka: EmbeddedKafka, topic: str, partition: int, start: int, end: int) -> list[bytes] | None:
    """The same while the cleaner works; None when it has just put another file in the place of one."""
    try:
        return on_disk(kafka, topic, partition, start, end)
    except FileNotFoundError:
        return None


def object_paths(root: Path, suffix: str) -> list[Path]:
    return sorted(root.rglob(f"*{suffix}"))
