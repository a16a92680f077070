"""`logkeep kafka dataset reindex` and `dataset prune`: indexes written again, old segments deleted."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural, size
from logkeep.cli.verbs.kafka.datasets.existing_dataset import existing_dataset, settle_exchange
from logkeep.cli.verbs.kafka.datasets.upkeep_declarations import PRUNE, REINDEX
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.config.options import EXCLUDE, OLDER_THAN, SOURCE_RETENTION, TOPICS
from logkeep.errors import UsageError
from logkeep.kafka.dataset_upkeep.dataset import ExistingDataset, open_existing
from logkeep.kafka.dataset_upkeep.prune import (
    DatasetSegment,
    PrunedPartition,
    delete_segments,
    plan_prune,
    topic_policy,
)
from logkeep.kafka.dataset_upkeep.reindex import IndexResult, reindex_partition
from logkeep.kafka.dataset_upkeep.segments import Log, latest_time, segments_of
from logkeep.kafka.dataset_upkeep.verify import exit_code
from logkeep.kafka.datasets.dataset_lock import lock_dataset
from logkeep.kafka.topic_selection import topic_filter
from logkeep.model.findings import Finding
from logkeep.model.work import ProgressSink

_SHOWN = 20
Segments = tuple[DatasetSegment, ...]


class WrittenIndex(msgspec.Struct, frozen=True, kw_only=True):
    file: str
    entries: int


class ReindexReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    right: int
    """Indexes that were right already."""
    written: tuple[WrittenIndex, ...]
    findings: tuple[Finding, ...]
    """Indexes that stay as they are, because they show a loss."""
    dry_run: bool


def _reindex_text(report: ReindexReport, look: TerminalStyle) -> str:
    did = "would write" if report.dry_run else "wrote"
    lines = [
        f"{report.url}: {did} {plural(len(report.written), 'index', 'indexes')};"
        f" {plural(report.right, 'was right', 'were right')}"
    ]
    lines += [f"{each.file}: {plural(each.entries, 'entry', 'entries')}" for each in report.written[:_SHOWN]]
    if len(report.written) > _SHOWN:
        lines.append(f"… and {len(report.written) - _SHOWN} more; --json has them")
    return "\n".join([*map(look.prose, lines), *finding_lines(report.findings, look, every=True)])


@verb(REINDEX, report=ReindexReport, text=_reindex_text, exit_code=lambda report: exit_code(report.findings))
def reindex(run: Run, url: str) -> ReindexReport:
    if not run.dry_run:
        settle_exchange(run, url)
    dataset = existing_dataset(run, url)
    if not dataset.v1:
        raise UsageError(
            f"a dataset in the format {dataset.format} has no index",
            subject=dataset.target.url,
            remedy="`logkeep kafka dataset verify` checks its records",
        )
    run.confirm(f"write the indexes of {dataset.target.url} again?")
    if run.dry_run:
        done = list(_reindexed(run, dataset))
    else:
        with lock_dataset(dataset.target) as held:
            done = list(_reindexed(run, open_existing(held.target)))  # a round may have added records meanwhile
    return ReindexReport(
        url=dataset.target.url,
        right=sum(not each.written and each.kept is None for each in done),
        written=tuple(WrittenIndex(file=each.name, entries=each.entries) for each in done if each.written),
        findings=tuple(each.kept for each in done if each.kept is not None),
        dry_run=run.dry_run,
    )


def _reindexed(run: Run, dataset: ExistingDataset) -> Iterator[IndexResult]:
    progress = run.progress()
    progress.start("reindex", dataset.records_bytes, len(dataset.v1))
    done_bytes = 0
    try:
        for done, ((topic, number), files) in enumerate(dataset.v1.items(), 1):
            yield from reindex_partition(dataset.target, topic, number, files, dry_run=run.dry_run)
            done_bytes += sum(info.size for info in files.records.values())
            progress.update(done_bytes, done, 0)
    finally:
        progress.finish()


class PrunedSegments(msgspec.Struct, frozen=True, kw_only=True):
    """What one partition loses."""

    topic: str
    partition: int
    first_offsets: tuple[int, ...]
    """In the names of the segments that go."""
    stored_bytes: int
    kept: int
    reason: str
    """Why nothing, or nothing more, goes; empty: the next segment is young enough."""


class DatasetPruneReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    partitions: tuple[PrunedSegments, ...]
    stored_bytes: int
    dry_run: bool


def _prune_text(report: DatasetPruneReport, look: TerminalStyle) -> str:
    did = "would delete" if report.dry_run else "deleted"
    segments = sum(len(each.first_offsets) for each in report.partitions)
    lines = [f"{report.url}: {did} {plural(segments, 'segment')}, {size(report.stored_bytes)}"]
    gone = [each for each in report.partitions if each.first_offsets]
    lines += [
        f"{each.topic}/{each.partition}: {plural(len(each.first_offsets), 'segment')}, {size(each.stored_bytes)};"
        f" {plural(each.kept, 'stays', 'stay')}"
        for each in gone[:_SHOWN]
    ]
    whole = {each.topic: each.reason for each in report.partitions if each.reason and not each.first_offsets}
    lines += [f"{topic}: {reason}" for topic, reason in list(whole.items())[:_SHOWN]]
    if max(len(gone), len(whole)) > _SHOWN:
        lines.append("… --json has all partitions")
    return "\n".join(map(look.prose, lines))


@verb(PRUNE, report=DatasetPruneReport, text=_prune_text)
def prune(run: Run, url: str) -> DatasetPruneReport:
    if (run[OLDER_THAN] is None) != _by_source(run):
        raise UsageError("exactly one limit is needed", remedy="pass either --older-than 7d or --source-retention")
    if not run.dry_run:
        settle_exchange(run, url)
    dataset = existing_dataset(run, url)
    if run.dry_run:
        return _prune_report(run, dataset, list(_planned(run, dataset)))
    with lock_dataset(dataset.target) as held:
        dataset = open_existing(held.target)  # a round may have added records meanwhile
        planned = list(_planned(run, dataset))
        gone = [each for each in planned if each.segments]
        if gone:
            segments = plural(sum(len(each.segments) for each in gone), "segment")
            run.confirm(f"delete {segments}, {size(sum(each.size_bytes for each in gone))}, of {dataset.target.url}?")
        for _ in delete_segments(dataset.target, dataset.document, gone):
            pass
    return _prune_report(run, dataset, planned)


def _by_source(run: Run) -> bool:
    """Only if it is typed: the setting of a configuration is about backups."""
    return run[SOURCE_RETENTION] and run.settings.typed(SOURCE_RETENTION)


def _planned(run: Run, dataset: ExistingDataset) -> Iterator[PrunedPartition]:
    include: tuple[str, ...] = run[TOPICS]
    exclude: tuple[str, ...] = run[EXCLUDE]
    selects, topics = topic_filter(include, exclude, internal=True), dataset.topics
    older = run[OLDER_THAN]
    older_ms = None if older is None else older // timedelta(milliseconds=1)
    now_ms, named = int(run.clock().timestamp() * 1000), run.settings.typed(TOPICS)
    chosen = {log: segments for log, segments in segments_of(dataset).items() if selects(log[0], False)}
    counted = _Counted(run.progress(), sum(each.size_bytes for some in chosen.values() for each in some), len(chosen))
    known, by_source = dataset.topics_of_known_configs, _by_source(run)
    for log, segments in counted.each(chosen):
        policy = topic_policy(
            topics.get(log[0]), older_ms, configs_known=log[0] in known, by_source=by_source, named=named
        )
        if policy.keep_ms is None:
            yield PrunedPartition(*log, (), len(segments), policy.reason)
            continue
        latest = counted.reading(latest_time(dataset, log))
        gone, reason = plan_prune(segments, now_ms - policy.keep_ms, latest)
        yield PrunedPartition(*log, gone, len(segments) - len(gone), reason)


class _Counted:
    """The progress of a plan. Segments that are young enough are not read, and counted all the same."""

    def __init__(self, progress: ProgressSink, total_bytes: int, partitions: int) -> None:
        self._progress, self._bytes, self._partitions = progress, 0, 0
        progress.start("prune", total_bytes, partitions)

    def each(self, chosen: Mapping[Log, Segments]) -> Iterator[tuple[Log, Segments]]:
        done_bytes = 0
        try:
            for number, (log, segments) in enumerate(chosen.items(), 1):
                yield log, segments
                done_bytes += sum(each.size_bytes for each in segments)
                self._bytes, self._partitions = done_bytes, number
                self._progress.update(done_bytes, number, 0)
        finally:
            self._progress.finish()

    def reading(self, latest: Callable[[DatasetSegment], int]) -> Callable[[DatasetSegment], int]:
        def read(segment: DatasetSegment) -> int:
            found = latest(segment)
            self._bytes += segment.size_bytes
            self._progress.update(self._bytes, self._partitions, 0)
            return found

        return read


def _prune_report(run: Run, dataset: ExistingDataset, planned: list[PrunedPartition]) -> DatasetPruneReport:
    return DatasetPruneReport(
        url=dataset.target.url,
        partitions=tuple(
            PrunedSegments(
                topic=each.topic,
                partition=each.partition,
                first_offsets=tuple(segment.first for segment in each.segments),
                stored_bytes=each.size_bytes,
                kept=each.kept,
                reason=each.reason,
            )
            for each in planned
        ),
        stored_bytes=sum(each.size_bytes for each in planned),
        dry_run=run.dry_run,
    )
