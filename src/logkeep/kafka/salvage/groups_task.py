"""The task that reads groups and their offsets from one partition of `__consumer_offsets` on disk.

Every record replaces an earlier one with the same key. Offsets that were committed inside a transaction count from its
commit marker on, unless a later record has replaced them; without a marker they do not count. Memory use depends on
live keys, not on the size of the log.
"""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL, first_broken
from logkeep.formats.kafka.internal_topics.offsets_topic import (
    GroupKey,
    PositionKey,
    PositionValue,
    decode_classic_group,
    decode_key,
    decode_position,
)
from logkeep.formats.kafka.plain_records import PlainRecord, marker_type, records_of
from logkeep.kafka.disks.segment_windows import SegmentWindow, windows
from logkeep.model.work import Progress

_COMMIT = 1


class FileRange(msgspec.Struct, frozen=True):
    """Valid batches of one file, and the offsets to read from it."""

    path: str
    from_byte: int
    to_byte: int
    lo: int
    hi: int
    size_bytes: int
    """The approximate size of these offsets."""


@dataclass(frozen=True)
class PositionsUnit:
    partition: int
    sources: tuple[FileRange, ...]

    @property
    def size_bytes(self) -> int:
        return sum(s.to_byte - s.from_byte for s in self.sources)


class FoundPosition(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class FoundGroup(msgspec.Struct, frozen=True):
    name: str
    kind: str
    state: str
    protocol_type: str
    positions: tuple[FoundPosition, ...]


class SalvagedGroups(msgspec.Struct, frozen=True):
    groups: tuple[FoundGroup, ...]
    unreadable: int
    """Records that this release cannot decode."""
    undecided: int
    """Offsets of transactions without a marker."""


def read_positions(unit: PositionsUnit, progress: Progress) -> SalvagedGroups:
    """Read all groups. Raises LogDirUnusable."""
    state = GroupState()
    for source in unit.sources:
        for window in windows(Path(source.path), source.from_byte, source.to_byte):
            _take(state, window, source)
            progress(len(window.data))
    return state.result()


def _take(state: "GroupState", window: SegmentWindow, source: FileRange) -> None:
    batches = window.batches
    broken = first_broken(window.data, batches)
    good = batches if broken is None else batches[:broken]
    for header, at, size in zip(good.headers, good.positions.tolist(), good.sizes.tolist(), strict=True):
        base = int(header["base_offset"])
        if source.lo <= base < source.hi:
            data, attributes = window.data[at : at + size], int(header["attributes"])
            state.batch(data, base, attributes, int(header["producer_id"]), int(header["records"]))


@dataclass
class GroupState:
    """Live groups and offsets after each record."""

    positions: dict[PositionKey, tuple[int, PositionValue]] = field(default_factory=dict)
    groups: dict[GroupKey, bytes] = field(default_factory=dict)
    pending: dict[int, dict[PositionKey, tuple[int, PositionValue]]] = field(default_factory=dict)
    unreadable: int = 0

    def batch(self, data: memoryview, base: int, attributes: int, producer: int, count: int) -> None:
        try:
            if attributes & CONTROL:
                self._marker(producer, marker_type(data))
                return
            for record in records_of(data, base, attributes, count):
                self._record(record, producer if attributes & TRANSACTIONAL else None)
        except Damaged:
            self.unreadable += 1

    def _record(self, record: PlainRecord, transaction: int | None) -> None:
        try:
            key = decode_key(record.key or b"")
            if isinstance(key, PositionKey):
                value = None if record.value is None else decode_position(record.value)
                self._position(key, value, record.offset, transaction)
            elif key is not None:
                self._group(key, record.value)
        except Damaged:
            self.unreadable += 1

    def _position(self, key: PositionKey, value: PositionValue | None, offset: int, transaction: int | None) -> None:
        if value is None:
            self.positions.pop(key, None)
        elif transaction is not None:
            self.pending.setdefault(transaction, {})[key] = offset, value
        else:
            self.positions[key] = offset, value

    def _group(self, key: GroupKey, value: bytes | None) -> None:
        if value is None:
            self.groups.pop(key, None)
        else:
            self.groups[key] = value

    def _marker(self, producer: int, decided: int) -> None:
        for key, (offset, value) in self.pending.pop(producer, {}).items():
            if decided == _COMMIT and self.positions.get(key, (-1, None))[0] < offset:
                self.positions[key] = offset, value

    def result(self) -> SalvagedGroups:
        found: dict[str, list[FoundPosition]] = {}
        for key, (_, value) in sorted(self.positions.items()):
            place = FoundPosition(key.topic, key.partition, value.offset, value.leader_epoch, value.metadata)
            found.setdefault(key.group, []).append(place)
        kinds = {key.group: key for key in sorted(self.groups)}
        groups = [self._found_group(name, kinds.get(name), found.get(name, [])) for name in sorted({*found, *kinds})]
        return SalvagedGroups(tuple(groups), self.unreadable, sum(map(len, self.pending.values())))

    def _found_group(self, name: str, key: GroupKey | None, places: list[FoundPosition]) -> FoundGroup:
        """A group without a broker has no members: its state is empty, whatever it was when the broker died."""
        kind = key.kind if key is not None else "classic"
        protocol = "consumer" if kind == "consumer" else ""
        if key is not None and kind == "classic":
            try:
                protocol = decode_classic_group(self.groups[key]).protocol_type
            except Damaged:
                self.unreadable += 1
        return FoundGroup(name, kind, "Empty", protocol, tuple(places))
