"""`logkeep zookeeper backup`: copy the files of one or several running servers into a repository."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from logkeep.cli.frame.execute import CommandOutcome, Run
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.frame.verb import verb
from logkeep.cli.verbs.next_steps import after_zookeeper_backup
from logkeep.cli.verbs.zookeeper.admin_backup import admin_member, back_up_over_http
from logkeep.cli.verbs.zookeeper.backup_report import (
    FIRST_SOURCE,
    ZooKeeperBackupReport,
    backup_text,
    done_report,
    member_report,
)
from logkeep.cli.verbs.zookeeper.declarations import BACKUP
from logkeep.cli.verbs.zookeeper.members import given_members, member_places
from logkeep.cli.wiring import WarmEngines, refuse_contradictions, use_directories, written_source
from logkeep.config.options import (
    BACKUP_ID,
    CONFIG_DIRS,
    FOLLOW,
    INCLUDE_CONFIG,
    LEASE_TTL,
    NEW_HISTORY,
    TAG,
    ZK_COMPRESSION,
)
from logkeep.errors import UsageError
from logkeep.model.ids import backup_id
from logkeep.model.segments import Codec
from logkeep.model.work import EngineFor
from logkeep.repository.backups.source import check_source
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.zookeeper.backup.findings import exit_code
from logkeep.zookeeper.backup.preview import PreviewSink, preview_backup
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import ZooKeeperBackupOptions, back_up
from logkeep.zookeeper.repo.record import KIND, known_from
from logkeep.zookeeper.repo.sink import ArchiveObjects, ArchiveSink, archiving, last_record
from logkeep.zookeeper.server.client import server_state
from logkeep.zookeeper.server.four_letter import four_letter

ASK_S = 10.0


def _metrics(outcome: CommandOutcome[ZooKeeperBackupReport]) -> Iterator[MetricSample]:
    report = outcome.report
    if report is not None and report.follow is not None and report.follow.ended:
        return  # every round has written its own
    source = report.source if report else outcome.source or FIRST_SOURCE
    yield sample("logkeep_backup_duration_seconds", outcome.duration.total_seconds(), source=source)
    yield sample("logkeep_backup_success", 1 if report else 0, source=source)
    if report is not None:
        yield sample("logkeep_backup_size_bytes", report.stored_bytes or 0, source=source)
        yield sample("logkeep_backup_last_success_timestamp_seconds", outcome.ended.timestamp(), source=source)


@verb(
    BACKUP,
    next_step=after_zookeeper_backup,
    report=ZooKeeperBackupReport,
    text=backup_text,
    exit_code=lambda report: report.exit_code,
    metrics=_metrics,
)
def backup(run: Run) -> ZooKeeperBackupReport:
    refuse_contradictions(run)
    over_http = admin_member(run)
    if over_http is not None:
        place = written_source(run, FIRST_SOURCE)
        with opened_sink(run, place) as sink:
            done = back_up_over_http(run, *over_http, sink)
        return done_report(place, done, sink.entry)
    place, options = written_source(run, FIRST_SOURCE), file_options(run)
    if run[FOLLOW]:
        from logkeep.cli.verbs.zookeeper.follow import follow_ensemble  # noqa: PLC0415 - only --follow needs it

        return follow_ensemble(run, place, options, lambda: opened_sink(run, place), round_settings, ask_word)
    if run.dry_run:
        return preview(run, place, options)
    with opened_sink(run, place) as sink:
        return copy_files(run, place, options, sink)


def copy_files(run: Run, place: SourceRef, options: ZooKeeperBackupOptions, sink: ArchiveSink) -> ZooKeeperBackupReport:
    done = back_up(options, sink, round_settings(WarmEngines(run)), ask_word)
    return done_report(place, done, sink.entry)


def opened_sink(run: Run, place: SourceRef, group: tuple[str, ...] = ()) -> AbstractContextManager[ArchiveSink]:
    """The sink of one backup in the repository. `group`: the sources that take part under the same id."""
    wanted = run[BACKUP_ID]
    return archiving(
        place,
        clock=run.clock,
        tokens=run.token,
        codec=Codec(run[ZK_COMPRESSION]),
        wanted=backup_id(wanted) if wanted is not None else None,
        tags=run[TAG],
        group=group,
        lease_ttl=run[LEASE_TTL],
    )


def round_settings(engines: EngineFor) -> RoundSettings:
    return RoundSettings(engines, lambda host: server_state(host, ASK_S))


def ask_word(host: str, word: str) -> str:
    return four_letter(host, word, ASK_S)


def file_options(run: Run) -> ZooKeeperBackupOptions:
    """The options of a backup from servers' files. Engines get to know the directories."""
    options = _backup_options(run)
    use_directories(run, *(path for each in options.members for path in dict.fromkeys((each.data_dir, each.log_dir))))
    return options


def _backup_options(run: Run) -> ZooKeeperBackupOptions:
    config_dirs: tuple[str, ...] = run[CONFIG_DIRS]
    if config_dirs and not run[INCLUDE_CONFIG]:
        raise UsageError("--config-dir is only for configuration files", remedy="add --include-config")
    return ZooKeeperBackupOptions(
        members=member_places(given_members(run)),
        new_history=run[NEW_HISTORY],
        include_config=run[INCLUDE_CONFIG],
        config_dirs=tuple(Path(text).expanduser() for text in config_dirs),
    )


def preview(run: Run, place: SourceRef, options: ZooKeeperBackupOptions) -> ZooKeeperBackupReport:
    check_source(place, KIND, {})
    known = known_from(last_record(place, read_chain(place)))
    sink = PreviewSink(ArchiveObjects(place, Codec(run[ZK_COMPRESSION])), known)
    found = preview_backup(options, sink, round_settings(WarmEngines(run)))
    return ZooKeeperBackupReport(
        source=place.source,
        id=None,
        history=found.history,
        members=tuple(member_report(member.member()) for member in found.members),
        backup_zxid=None,
        new_snapshots=found.snapshots,
        new_logs=found.logs,
        new_bytes=found.size_bytes,
        stored_bytes=None,
        findings=found.findings,
        exit_code=exit_code(found.findings),
        dry_run=True,
    )
