"""`logkeep kafka import`: a backup from a dataset or from an archive of another tool."""

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.finding_text import finding_texts
from logkeep.cli.terminal.text import TerminalStyle, plural, size
from logkeep.cli.verbs.kafka.copied_report import KafkaCopied, copied_code, copied_metrics, gap_text
from logkeep.cli.verbs.kafka.datasets.import_declarations import IMPORT
from logkeep.cli.verbs.next_steps import after_kafka_copy
from logkeep.cli.wiring import chosen_engine, opened_repository, opened_store, use_directories
from logkeep.config.options import (
    ALLOW_GAPS,
    BACKUP_ID,
    EXCLUDE,
    IMPORT_FORMAT,
    INTERNAL,
    LEASE_TTL,
    PARTITION_COUNT,
    SEGMENT_BYTES,
    SOURCE,
    TAG,
    TOPICS,
)
from logkeep.errors import UsageError
from logkeep.kafka.importing.reader import DatasetReader
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.kafka.importing.run import ImportDone, ImportOptions, KafkaImport
from logkeep.model.ids import backup_id
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.access import local_root, place_exists
from logkeep.store.readonly import ReadOnlyStore

_FIRST_SOURCE = "imported"


class DoubtCount(msgspec.Struct, frozen=True):
    code: str
    count: int
    partitions: int


class KafkaImportReport(KafkaCopied, frozen=True, kw_only=True):
    url: str
    format: str
    tool: str
    tool_version: str
    """Empty: the archive does not say it."""
    unknown: tuple[str, ...]
    """What the tool could not archive."""
    records: int
    """In the dataset, also those that were archived before."""
    changed: bool
    """False: nothing is new, and no backup was made."""
    doubts: tuple[DoubtCount, ...]
    """Sums over all partitions."""


def _text(report: KafkaImportReport, look: TerminalStyle) -> str:
    about = "about " if report.dry_run else ""
    if not report.changed:
        first = (
            f"nothing new in {plural(report.records, 'record')}; backup {report.id} of {report.source} has all of them"
        )
    else:
        done = "would import" if report.dry_run else f"backup {report.id} of {report.source}: imported"
        first = f"{done} {plural(report.new_offsets, 'offset')}, {about}{size(report.new_bytes)}"
    lines = [
        first,
        f"{plural(report.topics, 'topic')} · {plural(report.partitions, 'partition')} · "
        f"{plural(report.groups, 'group')} · {report.format}, written by {report.tool}"
        f"{' ' + report.tool_version if report.tool_version else ''}",
        *(f"UNKNOWN {each}" for each in report.unknown),
        *(f"GAP   {gap}" for gap in report.gaps),
        *finding_texts(report.findings),
    ]
    return "\n".join(map(look.prose, lines))


@verb(
    IMPORT,
    next_step=after_kafka_copy,
    report=KafkaImportReport,
    text=_text,
    exit_code=copied_code,
    metrics=copied_metrics,
)
def import_(run: Run, url: str) -> KafkaImportReport:
    options = import_options(run)
    store = _dataset_store(run, url)
    reader = open_dataset(store, run[IMPORT_FORMAT])
    place = _place(run)
    task = KafkaImport(place, reader, store.url, run.clock, run.token)
    engine = chosen_engine(run, reader.size_bytes, work="copy")
    done = task.preview(options, engine) if run.dry_run else task.run(options, engine)
    return _report(place.source, task, done, run[ALLOW_GAPS])


def opened_dataset(run: Run, url: str, wanted: str) -> DatasetReader:
    """The dataset at a URL, for reading only."""
    return open_dataset(_dataset_store(run, url), wanted)


def _dataset_store(run: Run, url: str) -> ReadOnlyStore:
    if (root := local_root(url)) is not None:
        if not place_exists(url):
            raise UsageError("there is no such directory", subject=url, remedy="check the path")
        use_directories(run, root)
    return ReadOnlyStore(opened_store(run, url))


def _place(run: Run) -> SourceRef:
    """Another source than those of clusters, unless the user names one."""
    repository, named = opened_repository(run), run[SOURCE]
    return repository.place(named if named is not None else _FIRST_SOURCE)


def import_options(run: Run) -> ImportOptions:
    wanted = run[BACKUP_ID]
    return ImportOptions(
        include=run[TOPICS],
        exclude=run[EXCLUDE],
        internal=run[INTERNAL],
        partition_counts=partition_counts(run[PARTITION_COUNT]),
        wanted_id=backup_id(wanted) if wanted is not None else None,
        tags=run[TAG],
        segment_bytes=run[SEGMENT_BYTES],
        lease_ttl=run[LEASE_TTL],
    )


def partition_counts(texts: tuple[str, ...]) -> dict[str, int]:
    """`TOPIC=N`, several of them. Raises UsageError."""
    found: dict[str, int] = {}
    for text in texts:
        topic, _, count = text.rpartition("=")
        if not topic or not count.isdecimal() or not 0 < int(count) <= 1_000_000:
            raise UsageError("not TOPIC=N", subject=f"--partition-count {text}", remedy="--partition-count orders=12")
        found[topic] = int(count)
    return found


def _doubts(done: ImportDone) -> tuple[DoubtCount, ...]:
    counts: dict[str, list[int]] = {}
    for each in (d for survey in done.surveys for d in survey.doubts):
        counts.setdefault(each.code, []).append(each.count)
    return tuple(DoubtCount(code, sum(some), len(some)) for code, some in sorted(counts.items()))


def _report(source: str, task: KafkaImport, done: ImportDone, allow_gaps: bool) -> KafkaImportReport:
    summary, label = done.entry.summary if done.entry else None, task.reader.label
    return KafkaImportReport(
        source=source,
        id=done.entry.id if done.entry else None,
        cluster_id=task.cluster_id,
        topics=len({s.topic for s in done.surveys}),
        partitions=len(done.surveys),
        groups=done.groups,
        open_transactions=0,
        units=len(done.plan.ranges),
        new_offsets=done.plan.offsets,
        new_bytes=summary.new_bytes if summary and done.changed else 0 if summary else done.plan.size_bytes,
        stored_bytes=summary.stored_bytes if summary else None,
        gaps=tuple(map(gap_text, done.gaps)),
        findings=done.findings,
        allow_gaps=allow_gaps,
        dry_run=done.entry is None,
        url=task.url,
        format=label.format,
        tool=label.tool,
        tool_version=label.version,
        unknown=label.unknown,
        records=sum(s.records for s in done.surveys),
        changed=done.changed,
        doubts=_doubts(done),
    )
