"""An ongoing backup: begin or resume it, then complete or fail it.

The order of writing makes it safe: request, data and receipts, parts, attachments, manifest, commit. Interrupted
anywhere, readers see the chain as it was.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from logkeep.errors import AlreadyExists, BackupFailed, Damaged, IllegalTransition, ObjectMissing
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId, next_id
from logkeep.model.ranges import Range
from logkeep.model.segments import Segment
from logkeep.model.time import rfc3339
from logkeep.repository.backups.burials import burials_by_log
from logkeep.repository.backups.content import PartReader, put_part, served_parts
from logkeep.repository.backups.cut_coverage import inherited_gaps, untiled
from logkeep.repository.backups.journal import BackupRequest, UnitReceipt, open_ids, put_request, read_request, receipts
from logkeep.repository.backups.manifest import (
    MAX_PARTS,
    WITH_PACKED,
    AttachmentRef,
    KnownGap,
    LogCut,
    Manifest,
)
from logkeep.repository.backups.source import SourceFacts, read_manifest
from logkeep.repository.backups.states import OWNER_LOST
from logkeep.repository.backups.verification import inherited_damage, known_damaged, put_verification
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import BackupAction, FailedAction, ObjectRef, PartRef, Summary
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import seal, seal_of
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.chain.lease import Head
from logkeep.repository.chain.write_session import Writing
from logkeep.repository.parts import SegmentTable, objects, plan_parts, ranges, total

_PARALLEL_HEADS = 16


@dataclass(frozen=True)
class FinishedRun:
    """The results of a run that are committed."""

    cut: Sequence[LogCut]
    new: Sequence[Segment]
    """Segments that this run archived; those of the base are added automatically."""
    gaps: Sequence[KnownGap] = ()
    attachments: Sequence[AttachmentRef] = ()
    findings: Sequence[Finding] = ()
    switched: Sequence[str] = ()
    """Catch-ups whose copies this backup has."""


class OngoingBackup:
    """A backup whose request is recorded and whose lease we hold."""

    def __init__(self, writing: Writing, request: BackupRequest, facts: SourceFacts) -> None:
        self._writing, self.request, self._facts = writing, request, facts
        self.id = BackupId(request.id)
        self.base = writing.folded.entry(request.base) if request.base is not None else None
        self.rests_on: tuple[str, ...] = ()
        """Damaged objects that the completed backup needs."""

    @property
    def run(self) -> str:
        """The current run; after a resume not the one of the request."""
        return self._writing.run

    def receipts(self) -> Iterable[UnitReceipt]:
        """Receipts of finished units, of this run and of those before a resume."""
        return receipts(self._writing.place, self.id)

    def complete(self, outcome: FinishedRun) -> BackupEntry:
        """Commit it as completed. Raises LeaseLost, CommitConflict or BackupFailed; then it is still ongoing."""
        self._writing.lease.confirm()
        self._check_stored(outcome.new)
        parts, rows = self._parts(outcome)
        gaps = (*outcome.gaps, *self._inherited_gaps(outcome, rows))
        self._check_tiling(outcome.cut, gaps, rows)
        manifest = self._manifest(replace(outcome, gaps=gaps), parts)
        switched = tuple(outcome.switched) or msgspec.UNSET
        action = BackupAction(self.id, self._put_manifest(manifest), self._summary(outcome, rows), switched)
        self._inherit_damage(outcome.cut, rows)
        entry = self._writing.commit(action).entry(self.id)
        if entry is None:
            raise BackupFailed("the backup was committed but is not in the chain", subject=str(self.id))
        return entry

    def fail(self, reason: str) -> None:
        """Commit it as failed. This is final."""
        self._writing.commit(FailedAction(self.id, reason))

    def _inherited_gaps(self, outcome: FinishedRun, rows: SegmentTable) -> list[KnownGap]:
        """Gaps of the base that this backup still has: they were reported when they were found."""
        if self.base is None:
            return []
        return inherited_gaps(
            read_manifest(self._writing.place, self.base).gaps, outcome.cut, outcome.gaps, ranges(rows)
        )

    def _check_tiling(self, cut: Sequence[LogCut], gaps: Sequence[KnownGap], rows: SegmentTable) -> None:
        """Every position of the cut must be archived or be a known gap."""
        for log, _, what in untiled(cut, gaps, ranges(rows)):
            raise BackupFailed(f"{what} of {log}", subject=f"backup {self.id}")

    def _inherit_damage(self, cut: Sequence[LogCut], rows: SegmentTable) -> None:
        """A backup that needs a damaged object must not be reported as good."""
        place = self._writing.place
        damaged = known_damaged(place, {e.id for e in self._writing.folded.completed})
        if not damaged:
            return
        burials = burials_by_log(self._writing.folded, self.id, [c.log for c in cut])
        needed = {layout.buried(place.source, b.object.token) for some in burials.values() for b in some}
        needed.update(name for _, name, _, _ in objects(rows, place.source))
        inherited = {name: damaged[name] for name in needed if name in damaged}
        if inherited:
            self.rests_on = tuple(sorted(inherited))
            folded, now = self._writing.folded, self._writing.clock()
            document = inherited_damage(place, self.id, inherited, Head(folded.generation, folded.head), now)
            put_verification(place, document, now, self._writing.tokens())

    def _check_stored(self, new: Sequence[Segment]) -> None:
        for problem in lost_segments(self._writing.place, new):
            raise BackupFailed(problem, subject=f"backup {self.id}")

    def _parts(self, outcome: FinishedRun) -> tuple[tuple[PartRef, ...], SegmentTable]:
        """The parts of the new manifest and all its rows: the base's parts, some of them merged with the new rows."""
        place, reader = self._writing.place, PartReader(self._writing.place)
        cut = {c.log: Range(c.start, c.end) for c in outcome.cut}
        new = SegmentTable.from_segments(outcome.new)
        if self.base is None:
            return self._stored([], new), new.covering(cut)
        manifest = read_manifest(place, self.base)
        served = served_parts(manifest, self._writing.folded)
        found = [reader.read(ref) for ref in served]
        tables = _cut_to_base(manifest, found, trimmed=bool(self.base.trims))
        plan = plan_parts([len(table) for table in tables], len(new), MAX_PARTS)
        anew = {*plan.merge, *(i for i, table in enumerate(tables) if table is not found[i])}
        merged = SegmentTable.merge([*(tables[i] for i in sorted(anew)), new])
        kept = [ref for i, ref in enumerate(served) if i not in anew]
        return self._stored(kept, merged), SegmentTable.merge([*tables, new]).covering(cut)

    def _stored(self, kept: list[PartRef], table: SegmentTable) -> tuple[PartRef, ...]:
        if not len(table):
            return tuple(kept)
        return (*kept, put_part(self._writing.place, table, self._writing.tokens()))

    def _manifest(self, outcome: FinishedRun, parts: tuple[PartRef, ...]) -> Manifest:
        return Manifest(
            version=WITH_PACKED if any(a.packed for a in outcome.attachments) else 1,
            repository=self._writing.place.repository,
            source=self._writing.place.source,
            id=self.id,
            run=self.run,
            kind=self._facts.kind,
            identity=self._facts.identity,
            group=self.request.group,
            started=self.request.started,
            finished=rfc3339(self._writing.clock()),
            base=self.request.base,
            cut=tuple(outcome.cut),
            parts=parts,
            gaps=tuple(outcome.gaps),
            attachments=tuple(outcome.attachments),
            findings=tuple(outcome.findings),
        )

    def _put_manifest(self, manifest: Manifest) -> ObjectRef:
        data, token = seal(manifest), self._writing.tokens()
        self._writing.place.store.put_new(layout.manifest(self._writing.place.source, self.id, token), data)
        return ObjectRef(token, len(data), seal_of(data))

    def _summary(self, outcome: FinishedRun, rows: SegmentTable) -> Summary:
        return Summary(
            started=self.request.started,
            logs=len(outcome.cut),
            segments=len(rows),
            records=total(rows, "records"),
            stored_bytes=total(rows, "stored_bytes"),
            new_bytes=sum(s.stored_bytes for s in outcome.new),
            warnings=sum(f.severity is not Severity.NOTE for f in outcome.findings) + len(outcome.gaps),
            tags=self.request.tags,
            group=self.request.group,
        )


def _cut_to_base(base: Manifest, tables: list[SegmentTable], *, trimmed: bool) -> list[SegmentTable]:
    """Rows of the base without positions after its cut, and without logs that it does not cover.

    A log that the base left out is copied again when it is selected again; older rows of it must not be used. Segments
    that were merged with later ones extend past the cut: that part belonged to a backup that may be deleted, of a
    history that the source may have left. The new backup has its own segments for these positions.

    Rows below the start of a trimmed base may have lost their objects.
    """
    cut = {c.log: Range(c.start, c.end) for c in base.cut}
    shortened = [table.up_to(cut) for table in tables]
    return [table.from_starts(cut) for table in shortened] if trimmed else shortened


def check_wanted(wanted: BackupId | None, last_id: int) -> None:
    """Ids must grow. Raises IllegalTransition."""
    if wanted is not None and wanted <= last_id:
        raise IllegalTransition(f"backup id {wanted} is not larger than the last one, {last_id}")


def begin(
    writing: Writing,
    facts: SourceFacts,
    *,
    wanted: BackupId | None = None,
    tags: tuple[str, ...] = (),
    group: tuple[str, ...] = (),
    options: dict[str, str] | None = None,
) -> OngoingBackup:
    """Start a new backup. Abandoned requests are recorded as failed first."""
    for abandoned in open_ids(writing.place, writing.folded.last_id):
        writing.commit(FailedAction(abandoned, OWNER_LOST))
    folded = writing.folded
    check_wanted(wanted, folded.last_id)
    backup_id = wanted or next_id(writing.clock(), folded.last_id)
    request = BackupRequest(
        repository=writing.place.repository,
        source=writing.place.source,
        id=backup_id,
        owner=writing.lease.owner,
        started=rfc3339(writing.clock()),
        base=folded.completed[-1].id if folded.completed else None,
        fence=folded.generation,
        group=group,
        tags=tags,
        options=options or {},
    )
    writing.lease.work_on(backup_id)
    try:
        put_request(writing.place, request)
    except AlreadyExists as error:
        raise IllegalTransition(f"backup {backup_id} was started by another run") from error
    return OngoingBackup(writing, request, facts)


def resume(writing: Writing, facts: SourceFacts) -> OngoingBackup | None:
    """Resume the last abandoned backup, with its id and receipts; None if there is none.

    Older abandoned ones are recorded as failed: ids are decided in order.
    """
    abandoned = open_ids(writing.place, writing.folded.last_id)
    if not abandoned:
        return None
    for older in abandoned[:-1]:
        writing.commit(FailedAction(older, OWNER_LOST))
    try:
        request = read_request(writing.place, abandoned[-1])
    except Damaged:
        request = None
    if request is None:  # what it should have covered is unknown
        writing.commit(FailedAction(abandoned[-1], "its request cannot be read"))
        return None
    writing.lease.work_on(abandoned[-1])
    return OngoingBackup(writing, request, facts)


def lost_segments(place: SourceRef, segments: Iterable[Segment]) -> Iterator[str]:
    """Objects that were written and that the store has not, or not whole."""
    written = [s for s in segments if s.has_object]
    if len(written) <= _PARALLEL_HEADS:  # also where every step must be repeatable
        yield from filter(None, map(partial(_lost, place), written))
        return
    with ThreadPoolExecutor(_PARALLEL_HEADS) as pool:
        yield from filter(None, pool.map(partial(_lost, place), written))


def _lost(place: SourceRef, segment: Segment) -> str:
    name = layout.segment(place.source, segment)
    try:
        size = place.store.head(name).size
    except ObjectMissing:
        return f"{name} was written and is missing now"
    return "" if size == segment.stored_bytes else f"{name} has {size} bytes instead of {segment.stored_bytes}"
