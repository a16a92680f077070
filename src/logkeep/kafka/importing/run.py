"""The steps of `kafka import`: a backup from a dataset or from an archive of another tool.

recognise → survey of all partitions in tasks → plan (pure; `--dry-run` ends here) → archive in tasks → parts, record,
label, manifest → commit. The survey reads everything first, so a dataset that cannot be used leaves no trace. What is
archived already is compared, not written again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import msgspec

from logkeep.errors import CommitConflict, Damaged, UsageError
from logkeep.kafka.admin.security import AclBinding, check_acls
from logkeep.kafka.backup.assemble import Assembled, assemble
from logkeep.kafka.backup.continuity.archived_batch import by_log, rows_in
from logkeep.kafka.backup.findings import damage_findings
from logkeep.kafka.backup.plan import Plan
from logkeep.kafka.backup.units import DEFAULT_SEGMENT_BYTES, CopyResult
from logkeep.kafka.client.topology import is_internal
from logkeep.kafka.importing.findings import count_findings, doubt_findings
from logkeep.kafka.importing.groups import group_records
from logkeep.kafka.importing.import_task import import_ranges
from logkeep.kafka.importing.plan import ImportPlan, bundles, plan_import, topic_id, unit_name
from logkeep.kafka.importing.reader import DatasetReader
from logkeep.kafka.importing.survey_task import survey_partition
from logkeep.kafka.importing.values import DatasetSurveyUnit, ImportUnit, PartitionSurvey
from logkeep.kafka.logs.leader_epochs import EpochRun
from logkeep.kafka.logs.log_traits import LogTraits, all_joined
from logkeep.kafka.record.dataset_document import NOT_A_DOCUMENT, DatasetLog
from logkeep.kafka.record.dataset_version import DOCUMENT
from logkeep.kafka.record.documents import KIND, ClusterRecord, PartitionRecord, check_consistent, same_cluster
from logkeep.kafka.record.import_label import ImportedPartition, put_label
from logkeep.kafka.record.stored_record import last_record, put_record
from logkeep.kafka.scan.values import ScanRange
from logkeep.kafka.topic_selection import topic_filter
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId
from logkeep.model.segments import Segment
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import Engine
from logkeep.repository.backups.backup import FinishedRun, OngoingBackup, begin, check_wanted
from logkeep.repository.backups.manifest import KnownGap
from logkeep.repository.backups.source import check_source, ensure_source
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.lease import DEFAULT_TTL
from logkeep.repository.chain.write_session import Writing, writing

_NO_TIP = EpochRun(-1, -1, -1)


@dataclass(frozen=True)
class ImportOptions:
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    internal: bool = False
    partition_counts: Mapping[str, int] | None = None
    wanted_id: BackupId | None = None
    tags: tuple[str, ...] = ()
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    lease_ttl: timedelta = DEFAULT_TTL


@dataclass(frozen=True)
class ImportDone:
    """The result of an import. `entry` is None for a dry run."""

    entry: BackupEntry | None
    changed: bool
    """False: the dataset has nothing that the last backup lacks, and nothing was committed."""
    plan: ImportPlan
    surveys: tuple[PartitionSurvey, ...]
    gaps: tuple[KnownGap, ...]
    findings: tuple[Finding, ...]
    groups: int


@dataclass(frozen=True)
class _Surveyed:
    """What is known before anything is written."""

    reader: DatasetReader
    surveys: tuple[PartitionSurvey, ...]
    plan: ImportPlan
    last: ClusterRecord | None
    generation: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class KafkaImport:
    place: SourceRef
    reader: DatasetReader
    url: str
    clock: Clock
    tokens: TokenSource

    @property
    def identity(self) -> dict[str, str]:
        """What identifies the source. It is never that of a cluster, whose own backups have other topic ids."""
        return {"imported": self.reader.label.format, "cluster_id": self.cluster_id}

    @property
    def cluster_id(self) -> str:
        return self.reader.cluster_id or f"imported-{self.reader.label.format}"

    def preview(self, options: ImportOptions, engine: Engine) -> ImportDone:
        """What a run would archive. Reads all of it, writes nothing, and raises the same errors as a run."""
        found = self._survey(options, engine)
        record = self._record(found, Assembled((), (), (), (), {}), BackupId(1))
        return ImportDone(
            None,
            bool(found.plan.ranges),
            found.plan,
            found.surveys,
            found.plan.gaps,
            found.findings,
            len(record.groups),
        )

    def run(self, options: ImportOptions, engine: Engine) -> ImportDone:
        """Take the backup. Earlier backups are never changed."""
        found = self._survey(options, engine)
        with writing(self.place, "import", self.clock, self.tokens, options.lease_ttl) as session:
            if session.folded.generation != found.generation:
                raise CommitConflict("another run changed the source while the dataset was read")
            if same := self._nothing_new(found, session.folded):
                return same
            source = ensure_source(self.place, KIND, self.identity, self.clock())
            ongoing = begin(session, source, wanted=options.wanted_id, tags=options.tags)
            results = self._archive(ongoing, found.plan, options, engine)
            plan = Plan(found.plan.cut, (), found.plan.gaps, ())
            return self._complete(session, ongoing, found, assemble(plan, results))

    def _survey(self, options: ImportOptions, engine: Engine) -> _Surveyed:
        from logkeep.kafka.importing.writer_notes import with_lost_partitions  # noqa: PLC0415 - pyarrow loads late

        folded = read_chain(self.place)
        check_wanted(options.wanted_id, folded.last_id)
        check_source(self.place, KIND, self.identity)
        reader = _selected(with_lost_partitions(self.reader), options)
        _check_acls(reader)
        ids = {t.name: topic_id(reader.label.format, self.place.source, t.name) for t in reader.topics}
        last = last_record(self.place, folded)
        archived = self._archived(folded, last, ids)
        logs = [(DatasetLog(p.topic, p.partition), p) for p in reader.partitions]
        units = [DatasetSurveyUnit(p, archived.get(log), reader.notes.get(log), reader.has_aborted) for log, p in logs]
        surveys = engine.map(
            survey_partition, units, PartitionSurvey, label="read the dataset", weight=lambda u: u.size_bytes
        )
        counts = options.partition_counts or {}
        plan = plan_import(reader.partitions, surveys, reader.topics, ids, last, counts)
        findings = (*reader.findings, *doubt_findings(surveys), *count_findings(reader.topics, counts))
        return _Surveyed(reader, tuple(surveys), plan, last, folded.generation, findings)

    def _archived(
        self, folded: Folded, last: ClusterRecord | None, ids: Mapping[str, str]
    ) -> dict[DatasetLog, ScanRange]:
        """What is archived of each log of the dataset."""
        if last is None:
            return {}
        rows = by_log(rows_in(self.place, folded.completed[-1]).to_segments())
        return {
            DatasetLog(r.topic, r.partition): _scan(self.place, r, rows.get(r.log, []))
            for r in last.logs
            if ids.get(r.topic) == r.history and r.start < r.end
        }

    def _nothing_new(self, found: _Surveyed, folded: Folded) -> ImportDone | None:
        """The last backup, if it has all that the dataset has."""
        if found.plan.ranges or found.last is None:
            return None
        entry = folded.completed[-1]
        record = self._record(found, Assembled(found.plan.cut, (), (), (), {}), BackupId(entry.id))
        if not same_cluster(record, found.last):
            return None
        return ImportDone(entry, False, found.plan, found.surveys, (), found.findings, len(record.groups))

    def _archive(
        self, ongoing: OngoingBackup, plan: ImportPlan, options: ImportOptions, engine: Engine
    ) -> list[CopyResult]:
        units = [
            ImportUnit(unit_name(some), self.place, ongoing.id, ongoing.run, some, options.segment_bytes)
            for some in bundles(plan.ranges)
        ]
        return engine.map(import_ranges, units, CopyResult, label="import", weight=lambda u: u.size_bytes)

    def _complete(self, session: Writing, ongoing: OngoingBackup, found: _Surveyed, assembled: Assembled) -> ImportDone:
        record = self._record(found, assembled, ongoing.id)
        check_consistent(record, assembled.cut)
        doubtful = tuple(ImportedPartition(s.topic, s.partition, s.doubts) for s in found.surveys if s.doubts)
        refs = (
            put_record(self.place, ongoing.id, record, session.tokens()),
            put_label(self.place, ongoing.id, found.reader.label, self.url, doubtful, session.tokens()),
        )
        gaps = found.plan.gaps
        outcome = FinishedRun(
            cut=assembled.cut, new=assembled.segments, gaps=gaps, attachments=refs, findings=found.findings
        )
        entry = ongoing.complete(outcome)
        findings = (*found.findings, *damage_findings(ongoing.rests_on))
        return ImportDone(entry, True, found.plan, found.surveys, gaps, findings, len(record.groups))

    def _record(self, found: _Surveyed, assembled: Assembled, backup_id: BackupId) -> ClusterRecord:
        last = found.last
        return ClusterRecord(
            repository=self.place.repository,
            source=self.place.source,
            id=backup_id,
            cluster_id=self.cluster_id,
            topics=found.plan.topics,
            logs=tuple(_logs(found, assembled)),
            open_transactions=(),
            groups=group_records(found.reader, found.plan.cut, last),
            acls=found.reader.acls if found.reader.acls is not None or last is None else last.acls,
            quotas=found.reader.quotas or (last.quotas if last is not None else ()),
        )


def _check_acls(reader: DatasetReader) -> None:
    """Raises Damaged for a rule that no cluster could have."""
    try:
        check_acls([AclBinding(*msgspec.structs.astuple(rule)) for rule in reader.acls or ()])
    except Damaged as error:
        raise Damaged(error.what, subject=DOCUMENT, remedy=NOT_A_DOCUMENT) from error


def _selected(reader: DatasetReader, options: ImportOptions) -> DatasetReader:
    """The dataset with the topics that the user selects. Raises UsageError if none is left."""
    selects = topic_filter(options.include, options.exclude, internal=options.internal)
    names = {t.name for t in reader.topics if selects(t.name, is_internal(t.name, False))}
    if not names:
        known = ", ".join(t.name for t in reader.topics[:5])
        raise UsageError("no topic of the dataset is selected", remedy=f"it has: {known}")
    return replace(
        reader,
        topics=tuple(t for t in reader.topics if t.name in names),
        partitions=tuple(p for p in reader.partitions if p.topic in names),
    )


def _scan(place: SourceRef, record: PartitionRecord, segments: Sequence[Segment]) -> ScanRange:
    return ScanRange(
        place=place,
        log=record.log,
        start=record.start,
        end=record.end,
        segments=tuple(segments),
        settled_to=record.end,
        transactional=False,
    )


def _logs(found: _Surveyed, assembled: Assembled) -> Iterable[PartitionRecord]:
    """One record for each log; a log without new batches keeps the values of the last backup."""
    before = {r.log: r for r in (found.last.logs if found.last else ())}
    for cut in assembled.cut:
        old = before.get(cut.log)
        tip = assembled.tips.get(cut.log, EpochRun(old.last_epoch, -1, old.last_end) if old else _NO_TIP)
        yield PartitionRecord(
            topic=cut.log.name,
            partition=cut.log.partition,
            history=cut.log.history,
            start=cut.start,
            end=cut.end,
            last_stable=cut.end,
            last_epoch=tip.epoch,
            last_end=tip.end,
            traits=all_joined((old.traits if old else LogTraits(), assembled.traits.get(cut.log, LogTraits()))),
            last_batch=assembled.last_batches.get(cut.log, old.last_batch if old else None),
        )
