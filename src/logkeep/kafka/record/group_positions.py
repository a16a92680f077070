"""Group offsets from an archived `__consumer_offsets`, including those that the cluster has deleted since.

When a topic or a group is deleted or expires, the broker writes a tombstone for the group's offset, and the cluster no
longer has it. The archived log still has the record before the tombstone. Deciding is pure: records in, offsets out.
An offset committed inside a transaction counts from the commit marker on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL, WalkEnd, first_broken, walk
from logkeep.formats.kafka.internal_topics.offsets_topic import PositionKey, decode_key, decode_position
from logkeep.formats.kafka.plain_records import PlainRecord, marker_type, records_of
from logkeep.model.segments import Segment
from logkeep.repository.backups.segment_bytes import StoredLog
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef

TOPIC = "__consumer_offsets"
_COMMIT = 1


@dataclass(frozen=True)
class GroupPosition:
    """The last committed offset of a group in one partition, and when the cluster deleted it, if it did."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    erased_ms: int | None = None


class PositionFold:
    """Takes the batches of one partition of the topic in order."""

    def __init__(self) -> None:
        self.positions: dict[PositionKey, GroupPosition] = {}
        self._undecided: dict[int, list[tuple[PlainRecord, int]]] = {}

    def plain(self, records: Iterable[PlainRecord], time_ms: int) -> None:
        for record in records:
            self._apply(record, time_ms)

    def transactional(self, producer: int, records: Iterable[PlainRecord], time_ms: int) -> None:
        self._undecided.setdefault(producer, []).extend((record, time_ms) for record in records)

    def marker(self, producer: int, kind: int) -> None:
        for record, time_ms in self._undecided.pop(producer, ()):
            if kind == _COMMIT:
                self._apply(record, time_ms)

    def _apply(self, record: PlainRecord, time_ms: int) -> None:
        key = decode_key(record.key) if record.key is not None else None
        if not isinstance(key, PositionKey):
            return
        if record.value is not None:
            value = decode_position(record.value)
            self.positions[key] = GroupPosition(value.offset, value.leader_epoch, value.metadata, value.commit_time_ms)
        elif key in self.positions and self.positions[key].erased_ms is None:
            self.positions[key] = replace(self.positions[key], erased_ms=time_ms)


def archived_positions(place: SourceRef, logs: Iterable[Sequence[Segment]]) -> dict[PositionKey, GroupPosition]:
    """Read archived logs of the topic, each as its segments in order. Raises Damaged."""
    found: dict[PositionKey, GroupPosition] = {}
    for segments in logs:
        fold = PositionFold()
        for segment in segments:
            if segment.has_object:
                _fold_segment(place, segment, fold)
        found |= fold.positions
    return found


def _fold_segment(place: SourceRef, segment: Segment, fold: PositionFold) -> None:
    tail, name = b"", layout.segment(place.source, segment)
    for piece in StoredLog.of(place, segment).pieces():
        data = tail + bytes(piece)
        walked = walk(data)
        if walked.stop in (WalkEnd.DAMAGED, WalkEnd.OLD_FORMAT) or first_broken(data, walked.batches) is not None:
            raise Damaged("holds bytes that are no valid batches", subject=name)
        _fold_batches(data, walked.batches.headers, walked.batches.positions, segment, fold)
        tail = data[walked.stopped_at :]
    if tail:
        raise Damaged("ends in the middle of a batch", subject=name)


def _fold_batches(
    data: bytes,
    headers: "np.ndarray[tuple[int], np.dtype[np.void]]",
    positions: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    segment: Segment,
    fold: PositionFold,
) -> None:
    for header, at in zip(headers, positions.tolist(), strict=True):
        base, last = int(header["base_offset"]), int(header["base_offset"]) + int(header["last_offset_delta"])
        if last < segment.start or base >= segment.end:
            continue  # another segment claims it
        batch = data[at : at + 12 + int(header["length"])]
        attributes, producer = int(header["attributes"]), int(header["producer_id"])
        if attributes & CONTROL:
            fold.marker(producer, marker_type(batch))
            continue
        records, time_ms = records_of(batch, base, attributes, int(header["records"])), int(header["max_time_ms"])
        if attributes & TRANSACTIONAL:
            fold.transactional(producer, records, time_ms)
        else:
            fold.plain(records, time_ms)
