"""`logkeep kafka backup`: the cluster's logs byte for byte, and everything that a restore needs."""

import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec

from logkeep.cli.frame.execute import CommandOutcome, Run
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural, size
from logkeep.cli.verbs.follow import refuse_single_backup, summary_text
from logkeep.cli.verbs.kafka.backup_report import KafkaBackupReport
from logkeep.cli.verbs.kafka.copied_report import FIRST_SOURCE, copied_code, copied_lines, copied_metrics, gap_text
from logkeep.cli.verbs.kafka.datasets.from_cluster import dataset_backup, wants_dataset
from logkeep.cli.verbs.kafka.datasets.report import DatasetReport, dataset_lines
from logkeep.cli.verbs.kafka.declarations import BACKUP
from logkeep.cli.verbs.next_steps import after_kafka_backup
from logkeep.cli.wiring import chosen_engine, expect_work, object_bytes, refuse_contradictions, written_source
from logkeep.config.options import (
    ACCEPT_DELETIONS,
    ALLOW_GAPS,
    APPLICATION,
    BACKUP_ID,
    BOOTSTRAP_SERVERS,
    CATCH_UP_BYTES,
    CHECKPOINT_TIMEOUT,
    CLIENT_RACK,
    COMMAND_CONFIG,
    COMPACTED,
    COMPRESSION,
    CONTROLLER_CONFIG,
    CONTROLLERS,
    COORDINATION_TOPIC,
    EXCLUDE,
    FOLLOW,
    GENERATION_DAYS,
    INSTANCE,
    INSTANCE_ROLE,
    INTERNAL,
    LEASE_TTL,
    LIMIT_DOWNLOAD,
    QUIET,
    REGISTRY,
    REGISTRY_CONFIG,
    RESUME,
    SCRAM_TO,
    SOURCE,
    STANDBY,
    TAG,
    TOPICS,
)
from logkeep.errors import LogkeepError, UsageError
from logkeep.file_owners import OriginFile
from logkeep.kafka.backup.deletion_passes import CompactedMode
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.generations.plan import GenerationRule
from logkeep.kafka.backup.plan import UNIT_BYTES, Plan
from logkeep.kafka.backup.run import KafkaBackup
from logkeep.kafka.backup.values import KafkaBackupDone, KafkaBackupOptions
from logkeep.kafka.client.properties import load_settings, settings_from
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.record.scram import ScramOptions
from logkeep.kafka.registry.settings import RegistrySettings, registry_settings, sent_in_clear
from logkeep.model.findings import Finding
from logkeep.model.ids import backup_id
from logkeep.model.segments import Codec
from logkeep.repository.chain.commits import SourceRef


def _text(report: KafkaBackupReport, look: TerminalStyle) -> str:
    if report.dataset is not None:
        return "\n".join(map(look.prose, dataset_lines(report.dataset)))
    if report.follow is not None:
        new = f"{plural(report.new_offsets, 'offset')}, {size(report.new_bytes)}"
        return look.text(summary_text(report.follow, new))
    return "\n".join(map(look.prose, copied_lines(report)))


def _metrics(outcome: CommandOutcome[KafkaBackupReport]) -> Iterator[MetricSample]:
    report = outcome.report
    if report is not None and report.follow is not None and report.follow.ended:
        return  # every round has written its own; the length of the whole run means nothing
    yield from copied_metrics(outcome)
    last = report.follow.last_round if report and report.follow else None
    if report is not None and last is not None and last.lag_offsets is not None:
        yield sample("logkeep_backup_lag_offsets", last.lag_offsets, source=report.source)
        yield sample("logkeep_backup_lag_bytes", last.lag_bytes or 0, source=report.source)


@verb(
    BACKUP, next_step=after_kafka_backup, report=KafkaBackupReport, text=_text, exit_code=copied_code, metrics=_metrics
)
def backup(run: Run) -> KafkaBackupReport:
    if wants_dataset(run):
        return _of_dataset(dataset_backup(run, client_settings(run)), run[SOURCE] or FIRST_SOURCE)
    refuse_contradictions(run)
    place = written_source(run, FIRST_SOURCE)
    task, options = backup_of(run, place)
    if run[APPLICATION] is not None:
        options = _with_application(run, options, place, task.settings)
    if run[STANDBY] and not run[FOLLOW]:
        raise UsageError("--standby is for runs with --follow", remedy="add --follow, or leave --standby out")
    if run.settings.typed(INSTANCE_ROLE) and not run[STANDBY]:
        raise UsageError("--role is for runs with --standby", remedy="add --standby, or leave --role out")
    if run[FOLLOW]:
        return _follow(run, task, options)
    return preview(run, task, options) if run.dry_run else take(run, task, options)


def backup_of(run: Run, place: SourceRef) -> tuple[KafkaBackup, KafkaBackupOptions]:
    """What the settings ask for: the cluster and the options of its backup."""
    settings = _with_rack(run, client_settings(run))
    return KafkaBackup(place, settings, run.clock, run.token), _backup_options(run, settings)


def preview(run: Run, task: KafkaBackup, options: KafkaBackupOptions) -> KafkaBackupReport:
    """Plan it. Writes nothing."""
    prepared = task.prepare(options)
    planned = _plan_report(task.place.source, prepared.facts, prepared.plan, prepared.findings, run[ALLOW_GAPS])
    wanted = prepared.comparisons if options.compacted is CompactedMode.AUTO else ()
    lines = tuple(f"{log}, about {size(live)}, unless no offset is missing: {why}" for log, why, live in wanted)
    return msgspec.structs.replace(planned, to_compare=lines, generations_due=prepared.due)


def take(run: Run, task: KafkaBackup, options: KafkaBackupOptions) -> KafkaBackupReport:
    """Take it with the engine that the settings name."""
    done = task.run(
        options,
        lambda size_bytes: chosen_engine(run, size_bytes, work="copy"),
        lambda size_bytes: expect_work(run, size_bytes, UNIT_BYTES, "copy"),
    )
    publish_switches(run, task.settings, done)
    return _report(task.place.source, done, run[ALLOW_GAPS])


def _with_application(
    run: Run, options: KafkaBackupOptions, place: SourceRef, settings: ClientSettings
) -> KafkaBackupOptions:
    """The topics are those that the application declared; the cut is taken when the backup has begun."""
    from logkeep.application.kafka.coordinator import ParticipantCutter  # noqa: PLC0415 - few runs need it

    for other in (TOPICS, EXCLUDE, INTERNAL, FOLLOW, RESUME):
        if run.settings.typed(other):
            flag = other.spellings()[0].flag
            raise UsageError(f"{flag} is not for runs with --application", remedy=f"leave {flag} out")
    cutter = ParticipantCutter(
        run[APPLICATION] or "", settings, place, run.token(), run[CHECKPOINT_TIMEOUT].total_seconds()
    )
    topics = tuple(re.escape(topic) for topic in cutter.topics())
    return replace(options, include=topics, exclude=(), application=cutter)


def _of_dataset(written: DatasetReport, source: str) -> KafkaBackupReport:
    return KafkaBackupReport(
        source=source,
        id=None,
        cluster_id=written.cluster_id,
        topics=written.topics,
        partitions=written.partitions,
        groups=written.groups,
        open_transactions=0,
        units=0,
        new_offsets=written.new_offsets,
        new_bytes=written.written_bytes,
        stored_bytes=None,
        gaps=written.gaps,
        findings=written.findings,
        allow_gaps=written.allow_gaps,
        dry_run=written.dry_run,
        dataset=written,
    )


def publish_switches(run: Run, settings: ClientSettings, done: KafkaBackupDone) -> None:
    """Send events about new generations, if the user asked for them. What fails is a warning: the backup counts."""
    topic = run[COORDINATION_TOPIC]
    if topic is None or not done.switched:
        return
    from logkeep.kafka.follow.coordination import publish, switch_events  # noqa: PLC0415 - few runs need it

    events = switch_events(done, instance_name(run), int(run.clock().timestamp() * 1000))
    try:
        publish(settings, topic, events)
    except LogkeepError as error:
        run.console.warn(f"events about new generations were not sent: {error}; the backup is complete")


def instance_name(run: Run) -> str:
    return run[INSTANCE] or socket.gethostname().partition(".")[0]


def _follow(run: Run, task: KafkaBackup, options: KafkaBackupOptions) -> KafkaBackupReport:
    from logkeep.cli.verbs.kafka.follow import follow_cluster  # noqa: PLC0415 - only --follow needs it

    refuse_single_backup(run)
    if options.scram is not None:
        raise UsageError(
            "--follow cannot detect a changed password, so it archives no SCRAM credentials",
            remedy="archive them with a separate run, for example every night: `kafka backup --scram-to …`",
        )
    options = _without_registry(run, options)
    publish = lambda done: publish_switches(run, task.settings, done)  # noqa: E731
    report_of = lambda done: _report(task.place.source, done, run[ALLOW_GAPS])  # noqa: E731
    return follow_cluster(run, task, options, report_of, publish, instance_name(run))


def _without_registry(run: Run, options: KafkaBackupOptions) -> KafkaBackupOptions:
    note = left_out_registry(options.registry, typed=run.settings.typed(REGISTRY))
    if note and not run[QUIET]:
        run.console.note(note)
    return replace(options, registry=None)


def left_out_registry(registry: RegistrySettings | None, *, typed: bool) -> str:
    """A note for --follow about a registry that a configuration file names for other runs. Raises UsageError if it was
    typed."""
    if registry is None:
        return ""
    what, remedy = "--follow archives no schema registry", "archive it with a separate run, for example every night"
    if typed:
        why = "reading it takes a request for each version, in every round"
        raise UsageError(f"{what}: {why}", remedy=f"{remedy}: `kafka backup --registry …`")
    return f"{what}: {remedy}"


def client_settings(run: Run) -> ClientSettings:
    """How to reach the given cluster. Prints notes about unusual settings."""
    servers, path = run[BOOTSTRAP_SERVERS], run[COMMAND_CONFIG]
    if path is not None:
        settings = load_settings(path, bootstrap=servers or "")
    elif servers is not None:
        settings = settings_from({}, OriginFile(Path()), bootstrap=servers)
    else:
        raise UsageError("no cluster is given", remedy="pass --bootstrap-servers, or --command-config with them in it")
    for note in settings.notes:
        run.console.note(note)
    return settings


def _with_rack(run: Run, settings: ClientSettings) -> ClientSettings:
    rack = run[CLIENT_RACK]
    return settings if rack is None else replace(settings, rack=rack)


def chosen_registry(run: Run) -> RegistrySettings | None:
    """The registry that the settings name; None if they name none. Warns of a password that is sent in clear."""
    url, file = run[REGISTRY], run[REGISTRY_CONFIG]
    if url is None:
        if run.settings.typed(REGISTRY_CONFIG):
            raise UsageError("--registry-config is for a schema registry", remedy="name it with --registry URL")
        return None
    settings = registry_settings(url, file)
    if sent_in_clear(settings):
        run.console.warn(f"{settings.address}: the credential is sent in clear; use https://")
    return settings


def _scram(run: Run, settings: ClientSettings) -> ScramOptions | None:
    """The controllers' listeners may need other credentials than the brokers'."""
    servers, path = run[CONTROLLERS], run[CONTROLLER_CONFIG]
    if not run[SCRAM_TO]:
        if servers or path:
            raise UsageError(
                "--controllers is used only for SCRAM credentials, and these are archived only encrypted",
                remedy="name a recipient with --scram-to age1…, or leave --controllers out",
            )
        return None
    if path is not None:
        return ScramOptions(run[SCRAM_TO], load_settings(path, bootstrap=servers or ""))
    return ScramOptions(run[SCRAM_TO], replace(settings, bootstrap=endpoints(servers)) if servers else None)


def _backup_options(run: Run, settings: ClientSettings) -> KafkaBackupOptions:
    wanted = run[BACKUP_ID]
    return KafkaBackupOptions(
        include=run[TOPICS],
        exclude=run[EXCLUDE],
        internal=run[INTERNAL],
        wanted_id=backup_id(wanted) if wanted is not None else None,
        resume=run[RESUME],
        tags=run[TAG],
        segment_bytes=object_bytes(run),
        compression=Codec(run[COMPRESSION]),
        limit_download=run[LIMIT_DOWNLOAD],
        lease_ttl=run[LEASE_TTL],
        scram=_scram(run, settings),
        compacted=CompactedMode(run[COMPACTED]),
        accept_deletions=run[ACCEPT_DELETIONS],
        registry=chosen_registry(run),
        generations=_generations(run),
    )


def _generations(run: Run) -> GenerationRule:
    days = run[GENERATION_DAYS]
    return GenerationRule(timedelta(days=days) if days is not None else None, run[CATCH_UP_BYTES])


def _plan_report(
    source: str, facts: Facts, plan: Plan, findings: tuple[Finding, ...], allow_gaps: bool
) -> KafkaBackupReport:
    return KafkaBackupReport(
        source=source,
        id=None,
        cluster_id=facts.metadata.cluster_id,
        topics=len(facts.topics),
        partitions=len(facts.partitions()),
        groups=len(facts.groups),
        open_transactions=len(facts.open_transactions),
        units=len(plan.units),
        new_offsets=plan.records,
        new_bytes=plan.size_bytes,
        stored_bytes=None,
        gaps=tuple(map(gap_text, plan.gaps)),
        findings=findings,
        allow_gaps=allow_gaps,
        dry_run=True,
    )


def _report(source: str, done: KafkaBackupDone, allow_gaps: bool) -> KafkaBackupReport:
    summary = done.entry.summary
    planned = _plan_report(source, done.facts, done.plan, done.findings, allow_gaps)
    return msgspec.structs.replace(
        planned,
        id=done.entry.id,
        new_offsets=done.offsets,
        new_bytes=summary.new_bytes,
        stored_bytes=summary.stored_bytes,
        gaps=tuple(map(gap_text, done.gaps)),
        dry_run=False,
        catch_up=done.catch_up,
    )
