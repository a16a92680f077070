"""`logkeep kafka backup --format`: a cluster as a dataset, without a repository; once, or in rounds with --follow."""

from collections import Counter

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.terminal.text import duration, plural, size
from logkeep.cli.verbs.kafka.datasets.dataset_settings import wanted_export, wanted_logs
from logkeep.cli.verbs.kafka.datasets.report import DatasetReport, dataset_report, plan_report
from logkeep.cli.wiring import WarmEngines, chosen_engine, refuse_contradictions
from logkeep.config.options import (
    ACCEPT_DELETIONS,
    ALLOW_GAPS,
    AVRO_CODEC,
    AVRO_SCHEMA,
    BACKUP_ID,
    CATCH_UP_BYTES,
    CLIENT_RACK,
    COMPACTED,
    COMPRESSION,
    CONTROLLER_CONFIG,
    CONTROLLERS,
    COORDINATION_TOPIC,
    DATASET_FORMAT,
    DATASET_URL,
    FOLLOW,
    GENERATION_DAYS,
    INSTANCE,
    INSTANCE_ROLE,
    INTERVAL,
    ISOLATION,
    LEASE_TTL,
    LIMIT_DOWNLOAD,
    PARTITIONS,
    REGISTRY,
    REGISTRY_CONFIG,
    REPO,
    RESUME,
    REWRITE,
    SCRAM_TO,
    SOURCE,
    STANDBY,
    TAG,
)
from logkeep.engine.stop import SignalStop
from logkeep.errors import UsageError
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.datasets.follow import DatasetFollower, DatasetRound
from logkeep.kafka.datasets.run import LABEL, DatasetExport, ExportDone
from logkeep.kafka.datasets.sources.cluster_facts import read_cluster
from logkeep.kafka.datasets.sources.export_sources import ClusterSource
from logkeep.model.work import EngineFor

_OF_A_REPOSITORY = (
    REPO, SOURCE, CLIENT_RACK, SCRAM_TO, CONTROLLERS, CONTROLLER_CONFIG, REGISTRY, REGISTRY_CONFIG, BACKUP_ID,
    COMPRESSION, COMPACTED, GENERATION_DAYS, CATCH_UP_BYTES, ACCEPT_DELETIONS, RESUME, STANDBY, INSTANCE, INSTANCE_ROLE,
    COORDINATION_TOPIC, TAG, LEASE_TTL,
)  # fmt: skip
_OF_A_DATASET = (DATASET_URL, PARTITIONS, ISOLATION, REWRITE, AVRO_SCHEMA, AVRO_CODEC)


class DatasetRoundReport(msgspec.Struct, frozen=True, kw_only=True):
    """One round of --follow: the document of a line."""

    round: int
    records: int
    written_bytes: int
    new_offsets: int
    gaps: tuple[str, ...]
    findings: int
    seconds: float
    error: str | None
    message: str | None
    again_in_seconds: float


def wants_dataset(run: Run) -> bool:
    """Raises UsageError for options of datasets without --format, and for options of a repository with it."""
    named = run[DATASET_FORMAT] is not None
    for option in _OF_A_REPOSITORY if named else _OF_A_DATASET:
        if run.settings.typed(option):
            what = "is for backups into a repository" if named else "is for a dataset"
            remedy = "leave it out, or leave --format out" if named else "add --format"
            raise UsageError(f"--{option.typed or option.name} {what}", remedy=remedy)
    return named


def dataset_backup(run: Run, settings: ClientSettings) -> DatasetReport:
    refuse_contradictions(run)
    task = wanted_export(run)
    if run[FOLLOW]:
        return _follow(run, task, settings)
    if run.dry_run:
        return plan_report(task.prepare(_source(run, settings)), task.target.url, allow_gaps=run[ALLOW_GAPS])
    done = task.run(_source(run, settings), lambda size_bytes: chosen_engine(run, size_bytes, work=LABEL))
    return dataset_report(done, task.target.url, allow_gaps=run[ALLOW_GAPS])


def _source(run: Run, settings: ClientSettings) -> ClusterSource:
    with Cluster(settings) as cluster:
        facts = read_cluster(cluster, wanted_logs(run))
    return ClusterSource(facts, settings, run[ISOLATION] == "committed", run[LIMIT_DOWNLOAD])


def _follow(run: Run, task: DatasetExport, settings: ClientSettings) -> DatasetReport:
    """Until a signal arrives; the report sums up all rounds."""
    if run.dry_run or run[REWRITE]:
        other = "--dry-run" if run.dry_run else "--rewrite"
        raise UsageError(f"--follow makes many rounds, and {other} is about a single one", remedy="leave one out")
    sums: Counter[str] = Counter()
    last: list[DatasetReport] = []

    def reported(one: DatasetRound) -> None:
        report = dataset_report(one.done, task.target.url, allow_gaps=run[ALLOW_GAPS]) if one.done else None
        if report is not None:
            last[:] = [_joined(last[0], report) if last else report]
            sums.update({name: getattr(report, name) for name in _SUMMED})
        run.line(_round_text, _round_report(one, report))

    def round_of(engines: EngineFor) -> ExportDone:
        return task.run(_source(run, settings), engines)

    notice = "the run ends after this round; press Ctrl-C again to abort it"
    with SignalStop(soft=True, notice=notice) as stop:
        engines = WarmEngines(run, stop, LABEL)
        DatasetFollower(lambda: round_of(engines), stop, run[INTERVAL].total_seconds(), reported).run()
    if not last:
        raise UsageError("no round was complete", remedy="see the lines above")
    return msgspec.structs.replace(last[0], **{name: sums[name] for name in _SUMMED})


_SUMMED = ("new_offsets", "records", "files", "written_bytes", "read_bytes")


def _joined(before: DatasetReport, now: DatasetReport) -> DatasetReport:
    gaps = tuple(dict.fromkeys((*before.gaps, *now.gaps)))
    return msgspec.structs.replace(now, gaps=gaps[-100:], findings=now.findings)


def _round_report(one: DatasetRound, report: DatasetReport | None) -> DatasetRoundReport:
    return DatasetRoundReport(
        round=one.number,
        records=report.records if report else 0,
        written_bytes=report.written_bytes if report else 0,
        new_offsets=report.new_offsets if report else 0,
        gaps=report.gaps if report else (),
        findings=len(report.findings) if report else 0,
        seconds=round(one.took_s, 3),
        error=one.error.slug() if one.error else None,
        message=str(one.error) if one.error else None,
        again_in_seconds=round(one.again_in_s, 3),
    )


def _round_text(one: DatasetRoundReport) -> str:
    if one.error is not None:
        return f"round {one.round}: failed, again in {duration(one.again_in_seconds)}: {one.message}"
    work = f"{plural(one.records, 'record')}, {size(one.written_bytes)}" if one.new_offsets else "nothing new"
    parts = [f"round {one.round}: {work}", *(f"GAP {gap}" for gap in one.gaps)]
    parts += [plural(one.findings, "finding")] if one.findings else []
    return "; ".join(parts)
