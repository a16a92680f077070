"""The task that reads the offsets of groups at a time from one archived log.

The state is the latest record of each key, by its offset, among those outside of transactions and those whose commit
marker is before the end. A log with transactions is read twice: first for its markers. Nothing is decoded record by
record but the result.
"""

import re
from collections import Counter
from collections.abc import Iterator

import msgspec
import numpy as np

from logkeep.formats.datasets.key_names import NameFilter, key_types, unknown_records
from logkeep.formats.datasets.latest_records import LatestRecord, LatestRecords
from logkeep.formats.kafka.batches import BatchStretch
from logkeep.formats.kafka.internal_topics.coordinator_records import GROUP_OFFSETS
from logkeep.formats.kafka.internal_topics.offsets_topic import GROUP_KINDS
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.records import RecordColumns
from logkeep.kafka.group_history.log_shape import shape_of
from logkeep.kafka.group_history.records_of_groups import (
    POSITION,
    SHARE_TOPICS,
    archived_position,
    changes_position,
    topics_of_share_group,
)
from logkeep.kafka.group_history.values import SHOWN_NAMES, ArchivedPosition, GroupLogUnit, LogPositions
from logkeep.kafka.logs.archived import settled_transactions, stretches
from logkeep.kafka.logs.burials import read_buried
from logkeep.model.ranges import Range
from logkeep.model.work import Progress

_BESIDES = (*GROUP_KINDS, SHARE_TOPICS)


def name_filter(unit: GroupLogUnit) -> NameFilter:
    patterns = [re.compile(text) for text in unit.groups]
    return NameFilter((lambda name: any(p.fullmatch(name) for p in patterns)) if patterns else None)


def read_positions_at(unit: GroupLogUnit, progress: Progress) -> LogPositions:
    """A task: the offsets of groups at a time. Raises Damaged, ObjectMissing or another StoreError."""
    shape = shape_of(unit.place, unit.segments, Range(unit.start, unit.end), unit.at_ms)
    names, latest, unknown = name_filter(unit), LatestRecords(), Counter[str]()
    for records in _visible(unit, shape.end, progress):
        unknown.update(unknown_records(unit.log.name, records))
        _add(unit.log.name, records, names, latest)
    state = _State(unit.log.name)
    for each in latest:
        state.take(each)
    return LogPositions(
        shape=shape,
        positions=tuple(state.positions()),
        kinds=state.kinds(),
        topics=state.topics,
        unknown=dict(unknown),
        seen=names.passed,
        names=tuple(names.names[:SHOWN_NAMES]),
    )


def _visible(unit: GroupLogUnit, end: int, progress: Progress) -> Iterator[RecordColumns]:
    settled = settled_transactions(unit.place, unit.log, unit.segments, unit.start, end) if unit.transactional else None
    view = View(unit.start, end, settled, buried=read_buried(unit.place, unit.buried))
    yield from visible_records(read_stretches(unit, end, progress), view)


def read_stretches(unit: GroupLogUnit, end: int, progress: Progress) -> Iterator[BatchStretch]:
    """The archived batches before `end`."""
    for segment in unit.segments:
        yield from stretches(unit.place, [segment], unit.start, end)
        progress(segment.stored_bytes)


def _add(topic: str, records: RecordColumns, names: NameFilter, latest: LatestRecords) -> None:
    types = key_types(records)
    positions = changes_position(topic, records, types)
    besides = np.isin(types, _BESIDES if topic == GROUP_OFFSETS else ())
    kept = names.selected(records) & (positions | besides)
    kinds = np.where(positions, np.int16(POSITION), types).astype(np.int16)
    latest.add(records.chosen(kept), types[kept], kinds[kept])


class _State:
    """The latest value and tombstone of each key, put together."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._values: dict[tuple[int, bytes], LatestRecord] = {}
        self._erased: dict[tuple[int, bytes], LatestRecord] = {}
        self.topics: dict[str, str] = {}

    def take(self, record: LatestRecord) -> None:
        (self._erased if record.value is None else self._values)[record.kind, record.key] = record
        if record.kind == SHARE_TOPICS and record.value is not None:
            self.topics |= topics_of_share_group(record.key, record.value)

    def kinds(self) -> dict[str, str]:
        """The kind of each group that exists, by name."""
        alive = (each for key, each in sorted(self._values.items()) if self._erased_ms(key, each) is None)
        return {
            each.key[2:].decode(errors="replace"): GROUP_KINDS[each.kind] for each in alive if each.kind in GROUP_KINDS
        }

    def positions(self) -> Iterator[ArchivedPosition]:
        for (kind, key), each in sorted(self._values.items()):
            if kind == POSITION and each.value is not None:
                found = archived_position(self._topic, key, each.value, each.offset, each.type)
                if found is not None:
                    yield msgspec.structs.replace(found, erased_ms=self._erased_ms((kind, key), each))

    def _erased_ms(self, key: tuple[int, bytes], value: LatestRecord) -> int | None:
        tombstone = self._erased.get(key)
        return tombstone.time_ms if tombstone is not None and tombstone.offset > value.offset else None
