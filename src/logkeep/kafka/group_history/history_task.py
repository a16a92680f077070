"""The tasks that list archived records of one log: every commit of the selected groups, or every record as it is.

Only the records of the selected groups are decoded in Python: they are what is shown. If there are more than are
wanted, they are only counted.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.datasets.key_names import NameFilter, key_types, unknown_records
from logkeep.formats.kafka.batches import CONTROL, Batches, BatchStretch
from logkeep.formats.kafka.internal_topics.coordinator_records import GROUP_OFFSETS, decode_record
from logkeep.formats.kafka.plain_records import marker_type
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode
from logkeep.kafka.group_history.commit_endings import CommitEndings
from logkeep.kafka.group_history.log_shape import shape_of
from logkeep.kafka.group_history.positions_task import name_filter, read_stretches
from logkeep.kafka.group_history.records_of_groups import (
    SHARE_TOPICS,
    archived_commit,
    changes_position,
    topics_of_share_group,
)
from logkeep.kafka.group_history.values import SHOWN_NAMES, GroupLogUnit, LogHistory, LogRecords, RawRecord
from logkeep.kafka.logs.burials import read_buried
from logkeep.model.ranges import Range
from logkeep.model.work import Progress


@dataclass(frozen=True)
class _Marker:
    offset: int
    producer: int
    kind: int
    time_ms: int


def read_history(unit: GroupLogUnit, progress: Progress) -> LogHistory:
    """A task: every commit of the selected groups. Raises Damaged, ObjectMissing or another StoreError."""
    shape = shape_of(unit.place, unit.segments, Range(unit.start, unit.end), None)
    names, unknown, listing = name_filter(unit), Counter[str](), _CommitListing(unit)
    for stretch, parts in _decoded(unit, progress):
        listing.markers = _markers(stretch) if unit.transactional else deque()
        for records in parts:
            unknown.update(unknown_records(unit.log.name, records))
            listing.take(records, names)
        listing.end_transactions(unit.end)
    return LogHistory(
        shape=shape,
        commits=listing.endings.commits() if listing.total <= unit.most_rows else (),
        total=listing.total,
        topics=listing.topics,
        unknown=dict(unknown),
        seen=names.passed,
        names=tuple(names.names[:SHOWN_NAMES]),
    )


def _decoded(unit: GroupLogUnit, progress: Progress) -> Iterator[tuple[BatchStretch, Iterator[RecordColumns]]]:
    """The records outside of control batches, for each stretch of the log. Raises Damaged."""
    buried = read_buried(unit.place, unit.buried)
    for stretch in read_stretches(unit, unit.end, progress):
        inside = stretch.touching(unit.start, unit.end)

        def parts(inside: BatchStretch = inside) -> Iterator[RecordColumns]:
            data = (inside.batches.headers["attributes"] & CONTROL) == 0
            own = Batches(inside.batches.headers[data], inside.batches.positions[data])
            for part in decode(inside.buffer, own) if len(own) else ():
                if isinstance(part, Malformed):
                    raise Damaged(str(part), subject=str(unit.log))
                found = part.within(unit.start, unit.end)
                yield found if buried is None else found.chosen(~buried.hides(found.offsets))

        yield inside, parts()


def _markers(stretch: BatchStretch) -> deque[_Marker]:
    batches = stretch.batches
    rows = np.flatnonzero(((batches.headers["attributes"] & CONTROL) != 0) & (batches.headers["records"] > 0))
    found = deque[_Marker]()
    for row in rows.tolist():
        header, at = batches.headers[row], int(batches.positions[row])
        kind = marker_type(memoryview(stretch.buffer)[at : at + int(batches.sizes[row])])
        producer, time_ms = int(header["producer_id"]), int(header["max_time_ms"])
        found.append(_Marker(int(header["base_offset"]), producer, kind, time_ms))
    return found


class _CommitListing:
    """Takes records and markers in the order of their offsets."""

    def __init__(self, unit: GroupLogUnit) -> None:
        self._unit = unit
        self.markers = deque[_Marker]()
        """Markers of the current stretch that were not applied yet."""
        self.endings, self.topics, self.total = CommitEndings(), dict[str, str](), 0

    def take(self, records: RecordColumns, names: NameFilter) -> None:
        topic, types = self._unit.log.name, key_types(records)
        naming = types == SHARE_TOPICS if topic == GROUP_OFFSETS else np.zeros(len(types), np.bool_)
        shown = changes_position(topic, records, types) & (records.times_ms >= self._unit.since_ms)
        wanted = names.selected(records) & (shown | naming)
        chosen, naming = records.chosen(wanted), naming[wanted]
        producers, inside = chosen.producer_ids.tolist(), chosen.transactional.tolist()
        for row, offset in enumerate(chosen.offsets.tolist()):
            self.end_transactions(offset)
            if naming[row]:
                self._name_topics(chosen, row)
            else:
                self._record(chosen, row, producers[row] if inside[row] else None)

    def end_transactions(self, before: int) -> None:
        """Apply the markers before an offset."""
        while self.markers and self.markers[0].offset < before:
            marker = self.markers.popleft()
            self.endings.marker(marker.producer, marker.kind, marker.time_ms)

    def _name_topics(self, records: RecordColumns, row: int) -> None:
        key, value = records.key(row), records.value(row)
        if key is not None and value is not None:
            self.topics |= topics_of_share_group(key[2:], value)

    def _record(self, records: RecordColumns, row: int, producer: int | None) -> None:
        key, value = records.key(row) or b"", records.value(row)
        offset, time_ms = int(records.offsets[row]), int(records.times_ms[row])
        if value is None:
            self.endings.tombstone(key[2:], offset, time_ms)
            return
        self.total += 1
        if self.total > self._unit.most_rows:
            return
        found = archived_commit(self._unit.log.name, key, value, offset, time_ms, transactional=producer is not None)
        if found is not None:
            self.endings.commit(key[2:], found, producer)


def read_raw(unit: GroupLogUnit, progress: Progress) -> LogRecords:
    """A task: every record as it is, those of aborted transactions too. Raises Damaged, ObjectMissing or another
    StoreError."""
    shape = shape_of(unit.place, unit.segments, Range(unit.start, unit.end), None)
    names, unknown, rows, total = name_filter(unit), Counter[str](), list[RawRecord](), 0
    for _, parts in _decoded(unit, progress):
        for records in parts:
            unknown.update(unknown_records(unit.log.name, records))
            chosen = records.chosen(names.selected(records) & (records.times_ms >= unit.since_ms))
            total += len(chosen)
            if total <= unit.most_rows:
                rows += [_raw(unit, chosen, row) for row in range(len(chosen))]
    return LogRecords(
        shape=shape,
        records=tuple(rows) if total <= unit.most_rows else (),
        total=total,
        unknown=dict(unknown),
        seen=names.passed,
        names=tuple(names.names[:SHOWN_NAMES]),
    )


def _raw(unit: GroupLogUnit, records: RecordColumns, row: int) -> RawRecord:
    key, value = records.key(row), records.value(row)
    found = decode_record(unit.log.name, key, value)
    return RawRecord(
        topic=unit.log.name,
        partition=unit.log.partition,
        offset=int(records.offsets[row]),
        time_ms=int(records.times_ms[row]),
        type=found.type,
        name=found.name,
        version=found.version,
        key=found.key,
        value=found.value,
        unknown=found.unknown,
        key_hex=key.hex() if found.unknown and key is not None else None,
        value_hex=value.hex() if found.unknown and value is not None else None,
    )
