"""The steps of an export: facts → what the dataset has → plan → tasks that write logs → groups → document.

Everything is written in an order that a kill cannot harm: the document names the logs before their first record,
records come before indexes, groups after both, and the times that prove deletions last.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from logkeep.errors import StoreLocationMissing, TargetUnsafe
from logkeep.kafka.datasets.bucket_rewrite import ReadBack, exchanged_now
from logkeep.kafka.datasets.dataset_lock import HeldDataset, lock_dataset
from logkeep.kafka.datasets.deletion_rule import JudgedExport, judge_export, unproven_findings
from logkeep.kafka.datasets.documents import (
    begun_document,
    joined_document,
    named_log,
    put_document,
    read_document,
    topic_rules,
    with_files,
    without_logs,
)
from logkeep.kafka.datasets.export_task import ExportUnit, RecordSource, compare_ends, export_logs
from logkeep.kafka.datasets.format_table import dataset_format
from logkeep.kafka.datasets.formats import DatasetEnd, DatasetFormat, DatasetOptions
from logkeep.kafka.datasets.plan import (
    ExportPlan,
    divide_into_units,
    dropped_records,
    ends_to_compare,
    plan_export,
    refuse_other_dataset,
    refuse_other_histories,
    refuse_partial_rewrites,
    refuse_unknown_rewrites,
    refuse_without_last,
)
from logkeep.kafka.datasets.rewrite import Rewrite, begin_rewrite, remove_rewritten
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.datasets.values import ExportableLogs, ExportedLog, ExportResult, LogToExport
from logkeep.kafka.record.dataset_document import DatasetDocument, DatasetLog, NotedLog
from logkeep.kafka.record.dataset_version import FOLDER
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.model.work import Engine, EngineFor, Progress

LABEL = "export"
NOT_HELD = "not-held"
"""Code of findings about what a format or schema has no place for."""
REMOVED = "files-removed"
"""Code of findings about logs that lost files since the last run."""


class ExportSource(Protocol):
    """A cluster or a backup, for one round."""

    @property
    def facts(self) -> ExportableLogs: ...

    def records(self, logs: tuple[LogToExport, ...], engine: Engine, units: int) -> RecordSource:
        """What a unit of these logs reads from."""

    def buried_below(self, log: DatasetLog, offset: int) -> int:
        """How many offsets below this one are buried."""


@dataclass(frozen=True)
class ExportOptions:
    format: str
    isolation: str
    files: DatasetOptions
    rewrite: tuple[str, ...] = ()


@dataclass(frozen=True)
class PreparedExport:
    document: DatasetDocument | None
    """What is there; None: nothing."""
    wanted: DatasetDocument
    facts: ExportableLogs
    plan: ExportPlan
    ends: Mapping[DatasetLog, DatasetEnd]
    """What the dataset has of each log; nothing of logs that are rewritten."""
    dropped: tuple[Finding, ...] = ()
    """What those lose, because the source has it no longer."""
    removed: tuple[Finding, ...] = ()
    """Logs that lost files since the last run: the source may have less of them."""


@dataclass(frozen=True)
class ExportDone:
    prepared: PreparedExport
    logs: tuple[ExportedLog, ...] = ()
    holes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.logs)

    def sum(self, name: str) -> int:
        return sum(getattr(each, name) for each in self.logs)


@dataclass
class DatasetExport:
    """Exports into one dataset. `create` makes the place of a dataset in a directory; `read_back` reads topics that
    were written anew, before they replace the old ones of a bucket."""

    target: DatasetTarget
    options: ExportOptions
    read_back: ReadBack
    create: Callable[[], None] = lambda: None
    ask: Callable[[Sequence[Finding]], None] = lambda _: None
    """Called with findings before topics that lose records are rewritten; raises what ends the run."""
    _positions: dict[DatasetLog, Mapping[str, int]] = field(default_factory=dict)
    """What group files have, as earlier rounds wrote them."""

    @property
    def form(self) -> DatasetFormat:
        return dataset_format(self.options.format)

    def prepare(self, source: ExportSource) -> PreparedExport:
        """Plan a run. Writes nothing, and refuses what a run would refuse."""
        if (error := exchanged_now(self.target)) is not None:
            raise error
        return self._prepared(source)

    def _prepared(self, source: ExportSource) -> PreparedExport:
        facts, url = source.facts, self.target.url
        wanted = DatasetDocument(
            format=self.options.format,
            schema=self.form.schema(self.options.files),
            isolation=self.options.isolation,
            cluster_id=facts.cluster_id,
        )
        document = self._document()
        if document is not None:
            refuse_other_dataset(document, wanted, url)
        refuse_unknown_rewrites(self.options.rewrite, {t.name for t in facts.topics})
        refuse_partial_rewrites(self.options.rewrite, facts, _noted(document))
        refuse_other_histories(document, facts, self.options.rewrite, url)
        noted = {log: note for log, note in _noted(document).items() if log.topic not in self.options.rewrite}
        ends = {each.log: self._end(each.log, document) for each in facts.logs}
        plan, dropped = plan_export(facts, ends, noted, url), self._dropped(facts, document)
        return PreparedExport(document, wanted, facts, plan, ends, tuple(dropped), tuple(_removed(plan, noted)))

    def _dropped(self, facts: ExportableLogs, document: DatasetDocument | None) -> list[Finding]:
        noted = {log: note for log, note in _noted(document).items() if log.topic in self.options.rewrite}
        old = dict[DatasetLog, DatasetEnd]()
        for log, note in noted.items():
            try:
                old[log] = self.form.find_end(self.target, log)
            except TargetUnsafe:  # writing the topic anew repairs it
                old[log] = DatasetEnd(joined=True, last=note.last if note.last >= 0 else None)
        return dropped_records(facts, old, noted)

    def run(self, source: ExportSource, engine_for: EngineFor) -> ExportDone:
        """Export once. Raises errors of the source and of the target; what is complete by then stays in the dataset."""
        if exchanged_now(self.target) is None:
            self._prepared(source)  # refuses before anything is created
        self.create()
        with lock_dataset(self.target) as held:
            remove_rewritten(self.target)
            prepared = self._prepared(source)
            if prepared.dropped:
                self.ask(prepared.dropped)
            compared = ends_to_compare(prepared.plan, _noted(prepared.document))
            found = self._mapped(source, held.files, compared, engine_for, compare_ends, "compare")
            refuse_without_last((log for each in found for log in each.logs), prepared.facts, held.target.url)
            begun = self._begun(prepared)
            put_document(held.target, begun)
            topics = sorted({each.log.topic for each in prepared.plan.logs} & set(self.options.rewrite))
            rewrite = begin_rewrite(held, topics, self.form.root, self.read_back)
            done = self._write(source, prepared, engine_for, rewrite, held)
            document, ended = self._noted_down(source, prepared, done)
            rewrite.finish(tuple(done.values()), document, begun)
        return ended

    def _begun(self, prepared: PreparedExport) -> DatasetDocument:
        facts, logs = prepared.facts, prepared.plan.logs
        return begun_document(prepared.document, prepared.wanted, facts, logs, self.options.rewrite)

    def _document(self) -> DatasetDocument | None:
        """The document of the dataset; None for an empty target. Raises TargetUnsafe if the target has files, but is no
        dataset of Logkeep."""
        try:
            document = read_document(self.target)
            foreign: list[str] = []
            names = (info.name for info in self.target.store.list("", foreign=foreign))
            other = None if document else next((n for n in names if not n.startswith(f"{FOLDER}/")), None)
        except StoreLocationMissing:
            return None
        if document is None and (other is not None or foreign):
            raise TargetUnsafe(
                f"it is not empty and has no {FOLDER}/dataset.json: see {other or foreign[0]}",
                subject=self.target.url,
                remedy="write to an empty or missing directory, or to an empty prefix",
            )
        return document

    def _end(self, log: DatasetLog, document: DatasetDocument | None) -> DatasetEnd:
        if document is None or log.topic in self.options.rewrite:
            return DatasetEnd(joined=False)
        return self.form.find_end(self.target, log)

    def _write(
        self,
        source: ExportSource,
        prepared: PreparedExport,
        engine_for: EngineFor,
        rewrite: Rewrite,
        held: HeldDataset,
    ) -> dict[DatasetLog, ExportedLog]:
        anew = [each for each in prepared.plan.logs if each.log.topic in self.options.rewrite]
        new = [each for each in prepared.plan.new if each.log.topic not in self.options.rewrite]
        done = self._exported(source, held.files, new, engine_for)
        done |= self._exported(source, rewrite.beside, anew, engine_for)
        self._put_groups(prepared, done, rewrite.beside, held.target)
        return done

    def _exported(
        self, source: ExportSource, target: DatasetTarget, logs: list[LogToExport], engine_for: EngineFor
    ) -> dict[DatasetLog, ExportedLog]:
        results = self._mapped(source, target, logs, engine_for, export_logs, LABEL)
        return {each.log: each for result in results for each in result.logs}

    def _mapped(
        self,
        source: ExportSource,
        target: DatasetTarget,
        logs: list[LogToExport],
        engine_for: EngineFor,
        task: Callable[[ExportUnit, Progress], ExportResult],
        label: str,
    ) -> list[ExportResult]:
        if not logs:
            return []
        engine, parts = engine_for(sum(each.size_bytes for each in logs)), divide_into_units(logs)
        units = [
            ExportUnit(target, self.options.format, self.options.files, source.records(part, engine, len(parts)), part)
            for part in parts
        ]
        return engine.map(task, units, ExportResult, label=label, weight=lambda unit: unit.size_bytes)

    def _put_groups(
        self,
        prepared: PreparedExport,
        done: Mapping[DatasetLog, ExportedLog],
        beside: DatasetTarget,
        target: DatasetTarget,
    ) -> None:
        """Write the positions of groups as they were committed, but not above the end of the dataset. An older backup
        sets none back."""
        committed, older = prepared.facts.positions(), prepared.plan.older_topics
        for each in prepared.plan.logs:
            if each.joined and each.log.topic in older:
                continue
            last = _last(each, done.get(each.log))
            own = committed.get(each.log, {}) if last >= 0 else {}
            positions = {group: min(offset, last + 1) for group, offset in own.items()}
            if not each.joined or self._positions.get(each.log) != positions:
                self.form.put_groups(beside if each.log.topic in self.options.rewrite else target, each.log, positions)
                self._positions[each.log] = positions

    def _noted_down(
        self, source: ExportSource, prepared: PreparedExport, done: Mapping[DatasetLog, ExportedLog]
    ) -> tuple[DatasetDocument, ExportDone]:
        """The document of a dataset that has all of this, and the result of the run."""
        known = _noted(prepared.document)
        before = topic_rules(prepared.document)
        judged: dict[LogToExport, JudgedExport] = {}
        notes = []
        for each in prepared.plan.logs:
            fresh = each.log.topic in self.options.rewrite
            note = None if fresh else known.get(each.log)
            counted = _with_burials(each, note, source)
            rule = None if fresh else before.get(each.log.topic)
            judged[each] = judge_export(counted, done.get(each.log), note, prepared.facts, rule)
            new = _note(each, done.get(each.log), note, judged[each], source)
            notes.append(with_files(new, note, prepared.ends[each.log], done.get(each.log)))
        others = without_logs(prepared.document, self.options.rewrite)
        document = joined_document(others, prepared.wanted, prepared.facts, notes, prepared.plan.older_topics)
        logs = tuple(done.values())
        return document, ExportDone(
            prepared,
            logs,
            tuple(holes_of(prepared.plan.logs, done)),
            (
                *prepared.facts.findings,
                *prepared.dropped,
                *prepared.removed,
                *unproven_findings(judged),
                *not_held_findings(not_held_counts(logs)),
                *_uncounted(logs),
            ),
        )


def _noted(document: DatasetDocument | None) -> dict[DatasetLog, NotedLog]:
    return document.noted if document is not None else {}


def _removed(plan: ExportPlan, noted: Mapping[DatasetLog, NotedLog]) -> Iterator[Finding]:
    """Findings about logs that end earlier than the last run left them. `noted`: without rewritten logs."""
    for each in plan.logs:
        note = noted.get(each.log)
        if note is None or note.last <= each.last:
            continue
        there = f"it ended at offset {each.last}" if each.last >= 0 else "it had none"
        yield Finding(
            code=REMOVED,
            severity=Severity.WARNING,
            where=str(each.log),
            what=f"the last run left records up to offset {note.last}, and {there}: files were deleted or damaged; "
            f"this run reads again from offset {each.start}",
            remedy="`logkeep kafka dataset verify` shows what is missing; what the source has no longer is lost",
        )


def _last(planned: LogToExport, done: ExportedLog | None) -> int:
    return max(planned.last, done.last if done is not None else -1)


def _with_burials(planned: LogToExport, note: NotedLog | None, source: ExportSource) -> LogToExport:
    """The planned log with the number of buried offsets that the dataset may hold."""
    if not planned.source.buried or note is None or note.covered < 0:
        return replace(planned, source=replace(planned.source, buried=0))
    return replace(planned, source=replace(planned.source, buried=source.buried_below(planned.log, note.covered)))


def _note(
    planned: LogToExport, done: ExportedLog | None, note: NotedLog | None, judged: JudgedExport, source: ExportSource
) -> NotedLog:
    named = named_log(note, planned)
    covered = max(planned.end, note.covered if note is not None else -1)
    lost = (*(note.lost if note is not None else ()), *planned.lost)
    return NotedLog(
        topic=planned.log.topic,
        partition=planned.log.partition,
        history=named.history,
        archived=named.archived,
        last=_last(planned, done),
        covered=covered,
        lost=tuple(dict.fromkeys([*lost, *(done.lost if done is not None else ())])),
        buried=source.buried_below(planned.log, covered) if planned.source.buried else 0,
        deletions=judged.times,
    )


def holes_of(logs: Collection[LogToExport], done: Mapping[DatasetLog, ExportedLog]) -> list[str]:
    """Texts about offsets that the source has no longer; before the logs are read, only those known so far."""
    found = []
    for each in logs:
        spans = set(each.lost)
        spans |= set(done[each.log].lost) if each.log in done else set()
        found += [
            f"{each.log} [{start}, {end}): the source has these offsets no longer" for start, end in sorted(spans)
        ]
    return found


def not_held_counts(logs: Iterable[ExportedLog]) -> Counter[tuple[str, str]]:
    """How many records have something that the format has no place for, by topic and kind."""
    counts: Counter[tuple[str, str]] = Counter()
    for each in logs:
        counts.update({(each.topic, kind): count for kind, count in each.not_held.items()})
    return counts


def not_held_findings(counts: Mapping[tuple[str, str], int]) -> list[Finding]:
    return [
        Finding(
            code=NOT_HELD,
            severity=Severity.WARNING,
            where=topic,
            what=f"{plural(count, 'record')}: the format has no place for {kind}, written as closely as possible",
        )
        for (topic, kind), count in sorted(counts.items())
    ]


def _uncounted(logs: Collection[ExportedLog]) -> list[Finding]:
    return [
        Finding(
            code=NOT_HELD,
            severity=Severity.WARNING,
            where=str(each.log),
            what="an attempt failed and was repeated; records that it wrote were not counted: the format may have no "
            "place for something of them",
        )
        for each in sorted(logs, key=lambda each: each.log)
        if each.uncounted
    ]
