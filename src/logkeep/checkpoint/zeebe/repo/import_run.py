"""Imports a backup from Zeebe's store into a repository, as the next backup of its source.

Its id in the repository is Zeebe's. An import that was interrupted is continued under the same id. Logs continue those
of the backup before where their frames are equal; otherwise a new history begins, and everything is archived again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import msgspec

from logkeep.checkpoint.zeebe.inventory import ZeebeBackup
from logkeep.checkpoint.zeebe.repo.plan import (
    CopySource,
    bundles,
    chosen_copies,
    continues,
    cut_of,
    kept_segments,
    known_files,
    known_segments,
    partition_record,
)
from logkeep.checkpoint.zeebe.repo.record import KIND, ROLE, ZeebePartition, ZeebeRecord
from logkeep.checkpoint.zeebe.repo.segment_task import copy_segment
from logkeep.checkpoint.zeebe.repo.state_task import copy_state
from logkeep.checkpoint.zeebe.repo.units import (
    CopiedSegment,
    CopiedState,
    ImportTarget,
    SegmentImport,
    SegmentOutcome,
    StateFile,
    StateImport,
)
from logkeep.errors import IllegalTransition
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId, backup_id
from logkeep.model.segments import Segment
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import Engine, Task
from logkeep.repository.backups.attachments import put_attachment, read_attachment
from logkeep.repository.backups.backup import FinishedRun, OngoingBackup, begin, resume
from logkeep.repository.backups.journal import UnitReceipt, open_ids
from logkeep.repository.backups.source import SourceFacts, ensure_source, read_manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.chain.format import ZSTD_FRAMES, require_feature
from logkeep.repository.chain.write_session import Writing, writing
from logkeep.repository.resume import usable_receipts
from logkeep.store.base import Store

UnitT = TypeVar("UnitT", SegmentImport, StateImport)
ResultT = TypeVar("ResultT", CopiedSegment, CopiedState)


@dataclass(frozen=True)
class ZeebeImportOptions:
    number: int
    """Zeebe's id."""
    wanted: int | None
    tags: tuple[str, ...]
    lease_ttl: timedelta
    findings: tuple[Finding, ...] = ()
    """Of the verification before the import."""


@dataclass(frozen=True)
class ZeebeImported:
    entry: BackupEntry
    record: ZeebeRecord
    changed: bool
    """False: it was in the repository already."""
    new_history: bool


def record_of(place: SourceRef, entry: BackupEntry) -> ZeebeRecord | None:
    """Raises Damaged."""
    return read_attachment(place, read_manifest(place, entry), ROLE, ZeebeRecord)


class ZeebeImport:
    """One import of a backup that was verified."""

    def __init__(self, place: SourceRef, store: Store, backup: ZeebeBackup, clock: Clock, tokens: TokenSource) -> None:
        self._place, self._store, self._copies = place, store, chosen_copies(backup)
        self._clock, self._tokens = clock, tokens

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self._copies)

    def run(self, options: ZeebeImportOptions, engine: Engine) -> ZeebeImported:
        wanted = backup_id(options.wanted or options.number)
        with writing(self._place, "import", self._clock, self._tokens, options.lease_ttl) as session:
            if (found := self._imported(session, wanted)) is not None:
                return found
            require_feature(self._place.store, ZSTD_FRAMES)
            ongoing = _ongoing(session, ensure_source(self._place, KIND, {}, self._clock()), wanted, options.tags)
            return _ImportRun(session, ongoing, self._store, self._copies, engine).run(options)

    def _imported(self, session: Writing, wanted: BackupId) -> ZeebeImported | None:
        entry = session.folded.entry(wanted)
        record = record_of(self._place, entry) if entry is not None else None
        if entry is None or record is None:
            return None
        cut = {each.manifest.partition: each.manifest.checkpoint_position for each in self._copies}
        same = {each.partition: each.checkpoint_position for each in record.partitions} == cut
        return ZeebeImported(entry, record, changed=False, new_history=False) if same else None


def _ongoing(session: Writing, facts: SourceFacts, wanted: BackupId, tags: tuple[str, ...]) -> OngoingBackup:
    """An interrupted import of this id is continued: as a failed one, the id could not be used again."""
    opened = open_ids(session.place, session.folded.last_id)
    if opened and opened[-1] == wanted and (found := resume(session, facts)) is not None:
        return found
    try:
        return begin(session, facts, wanted=wanted, tags=tags)
    except IllegalTransition as error:
        error.remedy = "import backups in the order of their ids, or give this one a larger id with --id"
        raise


class _ImportRun:
    def __init__(
        self, session: Writing, ongoing: OngoingBackup, store: Store, copies: Sequence[CopySource], engine: Engine
    ) -> None:
        self._session, self._ongoing, self._store, self._copies = session, ongoing, store, copies
        self._engine = engine
        self._target = ImportTarget(session.place, ongoing.id, session.run)
        self._base = record_of(session.place, ongoing.base) if ongoing.base is not None else None
        self._done = usable_receipts(session, ongoing, engine)

    def run(self, options: ZeebeImportOptions) -> ZeebeImported:
        history, segments = self._segments()
        states = [self._state(copy) for copy in self._copies]
        kept = [kept_segments(copy, found) for copy, found in zip(self._copies, segments, strict=True)]
        partitions = [
            partition_record(copy, some, [file for state in found for file in state.files])
            for copy, some, found in zip(self._copies, kept, states, strict=True)
        ]
        rows = [row for some in kept for each in some if (row := each.row) is not None]
        rows += [row for found in states for state in found for row in state.rows]
        record = self._record(options, history, partitions)
        entry = self._complete(record, _unique(rows), options)
        new_history = self._base is not None and self._base.history != history
        return ZeebeImported(entry, record, changed=True, new_history=new_history)

    def _segments(self) -> tuple[str, list[list[CopiedSegment]]]:
        """The history, and what became of every segment of every copy."""
        if self._base is not None and continues(self._base, self._copies):
            found = self._copied(self._base.history, self._base)
            if not any(each.outcome is SegmentOutcome.OTHER_HISTORY for some in found for each in some):
                return self._base.history, found
        history = f"h{self._ongoing.id}"
        return history, self._copied(history, None)

    def _copied(self, history: str, base: ZeebeRecord | None) -> list[list[CopiedSegment]]:
        known = known_segments(base)
        units = [
            [
                SegmentImport(
                    target=self._target,
                    store=self._store,
                    object=place,
                    partition=copy.manifest.partition,
                    history=history,
                    checkpoint_position=copy.manifest.checkpoint_position,
                    known=known.get((copy.manifest.partition, number)),
                )
                for number, place in copy.numbered()
            ]
            for copy in self._copies
        ]
        flat = iter(self._mapped(copy_segment, [u for some in units for u in some], CopiedSegment, "log segments"))
        return [[next(flat) for _ in some] for some in units]

    def _state(self, copy: CopySource) -> list[CopiedState]:
        known, partition = known_files(self._base), copy.manifest.partition
        units = [
            StateImport(
                target=self._target,
                store=self._store,
                partition=partition,
                files=tuple(
                    StateFile(name, place, known.get((partition, name, place.size_bytes))) for name, place in some
                ),
            )
            for some in bundles(sorted(copy.files.items()))
        ]
        return self._mapped(copy_state, units, CopiedState, "state files")

    def _mapped(
        self, task: Task[UnitT, ResultT], units: Sequence[UnitT], kind: type[ResultT], label: str
    ) -> list[ResultT]:
        """Results in the order of units; what an interrupted run finished is taken from its receipts."""
        done = {u.name: result for u in units if (result := _received(self._done.get(u.name), kind)) is not None}
        todo = [u for u in units if u.name not in done]
        fresh = self._engine.map(task, todo, kind, label=label, weight=_weight)
        done |= {u.name: result for u, result in zip(todo, fresh, strict=True)}
        return [done[u.name] for u in units]

    def _record(self, options: ZeebeImportOptions, history: str, partitions: Sequence[ZeebePartition]) -> ZeebeRecord:
        return ZeebeRecord(
            repository=self._session.place.repository,
            source=self._session.place.source,
            id=self._ongoing.id,
            checkpoint_id=options.number,
            history=history,
            partitions=tuple(partitions),
        )

    def _complete(self, record: ZeebeRecord, rows: list[Segment], options: ZeebeImportOptions) -> BackupEntry:
        place = self._session.place
        ref = put_attachment(place, self._ongoing.id, ROLE, record, self._session.tokens())
        cut = cut_of(record.history, record.partitions)
        return self._ongoing.complete(FinishedRun(cut=cut, new=rows, attachments=(ref,), findings=options.findings))


def _weight(unit: SegmentImport | StateImport) -> int:
    return unit.object.size_bytes if isinstance(unit, SegmentImport) else unit.size_bytes


def _received(receipt: UnitReceipt | None, kind: type[ResultT]) -> ResultT | None:
    if receipt is None:
        return None
    try:
        return msgspec.json.decode(receipt.note, type=kind)
    except (ValueError, RecursionError):
        return None


def _unique(rows: Sequence[Segment]) -> list[Segment]:
    """One row per log and position: two files of a partition's snapshot may have the same content."""
    return list({(row.log, row.start): row for row in rows}.values())
