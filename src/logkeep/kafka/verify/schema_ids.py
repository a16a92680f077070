"""Reads which schema ids the archived records of a backup begin with: units for an engine, whole columns at a time.

Records of aborted transactions count too. Every object that is read is compared with its hash.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Final

import msgspec
import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.compare.digest import warm
from logkeep.formats.kafka.buried_offsets import BuriedOffsets
from logkeep.formats.kafka.record_kernels import Longs
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode
from logkeep.formats.schemas.frames import RecordSide, schema_ids, sizes
from logkeep.kafka.client.topology import is_internal
from logkeep.kafka.logs.batch_check import checked_batches
from logkeep.kafka.logs.burials import read_buried
from logkeep.kafka.registry.id_use import MOST_UNKNOWN, SideUse, UnknownId, join_uses
from logkeep.kafka.registry.values import ArchivedRegistry
from logkeep.kafka.verify.records import SegmentRange, bounded_lists, covered_segments
from logkeep.model.findings import Finding
from logkeep.model.work import Engine, Progress
from logkeep.repository.backups.burials import burials_by_log
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Folded
from logkeep.repository.parts import SegmentTable
from logkeep.repository.verify.checks import CheckedObjects

LABEL: Final = "read schema ids"
_UNIT_PIECES: Final = 1_000
_CACHED_LOGS: Final = 8


class IdUnit(msgspec.Struct, frozen=True):
    place: SourceRef
    pieces: list[SegmentRange]
    known: dict[str, tuple[int, ...]]
    """Ids that the registry explains, by context."""
    contexts: dict[str, tuple[str, ...]]
    """The contexts of subjects (`TOPIC-key`, `TOPIC-value`) that are not only in the usual one."""

    @property
    def size_bytes(self) -> int:
        return sum(piece.segment.stored_bytes for piece in self.pieces)


class IdResult(msgspec.Struct, frozen=True):
    uses: tuple[SideUse, ...]
    findings: list[Finding]


@dataclass(frozen=True)
class IdsFound:
    """The results for all objects that were read."""

    uses: tuple[SideUse, ...]
    findings: tuple[Finding, ...]
    objects: int
    size_bytes: int


def id_pieces(
    place: SourceRef, folded: Folded, manifest: Manifest, rows: SegmentTable, but: Iterable[str]
) -> list[SegmentRange]:
    """All archived objects of ordinary topics, but for these."""
    left_out = set(but)
    cuts = tuple(c for c in manifest.cut if c.log.name not in left_out and not is_internal(c.log.name, False))
    burials = burials_by_log(folded, manifest.id, [c.log for c in cuts])
    wanted = {c.log for c in cuts}
    segments = (s for s in rows.to_segments() if s.log in wanted)
    only = msgspec.structs.replace(manifest, cut=cuts)
    return [p for p in covered_segments(place.source, only, segments, burials) if p.segment.has_object]


def find_ids(place: SourceRef, pieces: Sequence[SegmentRange], registry: ArchivedRegistry, engine: Engine) -> IdsFound:
    """What the records of these objects begin with."""
    warm()
    contexts = registry.contexts_of_subjects()
    known = {each: tuple(sorted(registry.known_ids(each))) for each in {"", *chain.from_iterable(contexts.values())}}
    some = bounded_lists(pieces, lambda p: p.segment.stored_bytes, _UNIT_PIECES)
    units = [IdUnit(place, each, known, contexts) for each in some]
    results = engine.map(read_ids, units, IdResult, label=LABEL, weight=lambda unit: unit.size_bytes)
    return IdsFound(
        join_uses(use for result in results for use in result.uses),
        tuple(finding for result in results for finding in result.findings),
        len(pieces),
        sum(unit.size_bytes for unit in units),
    )


def read_ids(unit: IdUnit, progress: Progress) -> IdResult:
    """A task: read every object once, check its hash and batches, count the ids in its records."""
    checked = CheckedObjects([])
    buried_of = lru_cache(_CACHED_LOGS)(partial(read_buried, unit.place))
    counts: dict[tuple[str, RecordSide], _SideCount] = {}

    def count_of(topic: str, side: RecordSide) -> _SideCount:
        if (topic, side) not in counts:
            contexts = unit.contexts.get(f"{topic}-{side.value}", ("",))
            known = np.unique(np.concatenate([np.array(unit.known[each], np.int64) for each in contexts]))
            counts[topic, side] = _SideCount(known)
        return counts[topic, side]

    for piece in unit.pieces:
        log = piece.segment.log
        sides = [(side, count_of(log.name, side)) for side in RecordSide]
        for records in _records(unit.place, piece, buried_of, checked, progress):
            for side, count in sides:
                count.take(records, side, log.partition)
    return IdResult(tuple(count.use(topic, side) for (topic, side), count in counts.items()), checked.findings)


def _records(
    place: SourceRef,
    piece: SegmentRange,
    buried_of: Callable[[tuple[ObjectRef, ...]], BuriedOffsets | None],
    checked: CheckedObjects,
    progress: Progress,
) -> Iterable[RecordColumns]:
    try:
        buried = buried_of(piece.buried)
    except Damaged as error:
        checked.from_error("buried-offsets-damaged", error)
        return
    malformed = 0
    for buffer, batches in checked_batches(place.store, piece.expected, checked, progress):
        for part in decode(buffer, batches):
            if isinstance(part, Malformed):
                malformed += 1
                if malformed == 1:  # a producer that wrote one such batch wrote many
                    checked.damage("record-malformed", piece.name, f"{piece.segment.log}: {part}")
                continue
            within = part.within(piece.start, piece.end)
            hidden = within.control if buried is None else within.control | buried.hides(within.offsets)
            yield within.chosen(~hidden)


class _SideCount:
    """The keys or values of one topic so far. Memory is bounded, whatever the records hold."""

    def __init__(self, known: Longs) -> None:
        self._known_ids = known
        self._records = self._fitting = self._known = self._eight = self._unlisted = 0
        self._unknown: dict[int, UnknownId] = {}

    def take(self, records: RecordColumns, side: RecordSide, partition: int) -> None:
        ids, lengths = schema_ids(records, side), sizes(records, side)
        self._records += int(np.count_nonzero(lengths >= 0))
        self._eight += int(np.count_nonzero(lengths == 8))
        rows = np.flatnonzero(ids > 0)
        self._fitting += len(rows)
        unknown = rows[~np.isin(ids[rows], self._known_ids)]
        self._known += len(rows) - len(unknown)
        found, first, counts = np.unique(ids[unknown], return_index=True, return_counts=True)
        # Chunks come in the order of offsets, so the first of a chunk is the first of all if the id is new.
        order = np.argsort(first)
        room = MOST_UNKNOWN - len(self._unknown)
        listed = np.isin(found, np.fromiter(self._unknown, np.int64, len(self._unknown)))
        new = order[~listed[order]]
        self._unlisted += int(counts[new[room:]].sum())
        for at in (*np.flatnonzero(listed).tolist(), *new[:room].tolist()):
            self._add(int(found[at]), int(counts[at]), partition, int(records.offsets[unknown[first[at]]]))

    def _add(self, number: int, records: int, partition: int, offset: int) -> None:
        before = self._unknown.get(number)
        if before is None:
            self._unknown[number] = UnknownId(number, records, partition, offset)
            return
        partition, offset = min((before.partition, before.offset), (partition, offset))
        self._unknown[number] = UnknownId(number, before.records + records, partition, offset)

    def use(self, topic: str, side: RecordSide) -> SideUse:
        return SideUse(
            topic=topic,
            side=side.value,
            records=self._records,
            fitting=self._fitting,
            known=self._known,
            eight_bytes=self._eight,
            unknown=tuple(self._unknown[number] for number in sorted(self._unknown)),
            unlisted=self._unlisted,
        )
