"""`logkeep app backup`, `status` and `checkpoint`."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from logkeep.application.client_config import client_config
from logkeep.application.control_client import ControlClient
from logkeep.checkpoint.archive.record import read_application
from logkeep.checkpoint.archive.running_application import ApplicationFacts, ApplicationPort
from logkeep.checkpoint.archive.settle import settle
from logkeep.checkpoint.archive.take import TakenBackup, TakeOptions, mark, take
from logkeep.checkpoint.steps import run as run_steps
from logkeep.cli.frame.execute import CommandOutcome, Run
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.frame.signals import after_a_signal
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.application.declarations import BACKUP, CHECKPOINT, STATUS
from logkeep.cli.verbs.next_steps import after_application_backup
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.cli.wiring import chosen_source, opened_repository
from logkeep.config.options import (
    APP_DATA,
    APP_TIMEOUT,
    BACKUP_ID,
    BOOTSTRAP_SERVERS,
    CLIENT_CONFIG,
    NO_WAIT,
    ON_FAILOVER,
    SUPERSEDE,
)
from logkeep.errors import Interrupted, LogkeepError, UsageError
from logkeep.kinds import APPLICATION, require_kind
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId, backup_id, choose_id, source_name
from logkeep.repository.backups.source import read_manifest, view
from logkeep.repository.backups.states import StateName
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.owner import this_process


class ApplicationBackupReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    id: int
    state: str
    """doesNotExist, ongoing, completed or failed."""
    reason: str = ""
    joined: bool = False
    """Another coordinator had stored the request."""
    missing: tuple[int, ...] = ()
    """Partitions without a whole copy, while it is ongoing."""
    warnings: int = 0
    findings: tuple[Finding, ...] = ()
    stored_bytes: int = 0
    new_bytes: int = 0
    unarchived_bytes: int = 0
    """Log that waited for this backup when it began, in the partition with most; 0 if the application did not say."""
    pause_ms: int = 0
    """How long processing waited for it at most, in any partition; 0 if it is not completed."""


class CheckpointReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    id: int


def _text(report: ApplicationBackupReport, look: TerminalStyle) -> str:
    reason = f": {report.reason}" if report.reason else ""
    lines = [look.text(f"backup {report.id} of {report.source} is {report.state}{reason}")]
    if report.missing:
        lines.append(look.text(f"without a copy: partitions {', '.join(map(str, report.missing))}"))
    lines += finding_lines(report.findings, look, every=False)
    return "\n".join(lines)


def _code(report: ApplicationBackupReport) -> int:
    if report.state == StateName.FAILED:
        return 20
    return 21 if report.warnings else 0


def data_directory(run: Run) -> Path:
    named = run[APP_DATA]
    if named is None:
        raise UsageError(
            "--data is missing",
            remedy="name the data directory of the application, or --bootstrap-servers if its log is on Kafka",
        )
    return Path(named)


@contextmanager
def running_application(run: Run, name: str) -> Iterator[ApplicationPort]:
    """The application in the data directory, or the one of this name on Kafka. Raises UsageError, ClusterError."""
    servers = run[BOOTSTRAP_SERVERS]
    if run[APP_DATA] is not None or servers is None:
        yield ControlClient(data_directory(run))
        return
    config = client_config(servers, run[CLIENT_CONFIG])
    from logkeep.application.kafka_log.client import KafkaClient  # noqa: PLC0415 - needs confluent-kafka

    with closing(KafkaClient(config, name)) as client:
        yield client


def _metrics(outcome: CommandOutcome[ApplicationBackupReport]) -> Iterator[MetricSample]:
    """An error names no source: the verb has written those of a backup that failed. An ongoing one has not ended."""
    report = outcome.report
    if report is None or report.state == StateName.ONGOING:
        return
    completed = report.state == StateName.COMPLETED
    yield sample("logkeep_backup_duration_seconds", outcome.duration.total_seconds(), source=report.source)
    yield sample("logkeep_backup_success", 1 if completed else 0, source=report.source)
    if completed or report.unarchived_bytes:
        yield sample("logkeep_backup_unarchived_bytes", report.unarchived_bytes, source=report.source)
    if completed:
        yield sample("logkeep_backup_size_bytes", report.stored_bytes, source=report.source)
        yield sample("logkeep_backup_pause_seconds", report.pause_ms / 1000, source=report.source)
        yield sample("logkeep_backup_last_success_timestamp_seconds", outcome.ended.timestamp(), source=report.source)


@verb(
    BACKUP,
    next_step=after_application_backup,
    report=ApplicationBackupReport,
    text=_text,
    exit_code=_code,
    metrics=_metrics,
)
def backup(run: Run, name: str) -> ApplicationBackupReport:
    source_name(name)  # it becomes a label of metrics, also of a backup that fails before a store is asked
    started = time.monotonic()
    known: list[ApplicationFacts] = []
    try:
        place, wanted = opened_repository(run).place(name), run[BACKUP_ID]
        options = TakeOptions(
            wanted=None if wanted is None else backup_id(wanted),
            wait=not run[NO_WAIT],
            supersede=run[SUPERSEDE],
            timeout=run[APP_TIMEOUT],
            on_failover="retake" if run[ON_FAILOVER] == "retake" else "fail",
        )
        goes_on = "the application continues a backup that has begun: `logkeep app status` shows how it ends"
        with running_application(run, name) as port, after_a_signal(goes_on):
            steps = take(place, port, options, run.clock, run.token, learn=known.append)
            taken = run_steps(steps, threading.Event().wait)
    except Interrupted:
        raise
    except LogkeepError as error:
        failed = ApplicationBackupReport(
            source=name,
            id=run[BACKUP_ID] or 0,
            state=StateName.FAILED,
            reason=error.what,
            unarchived_bytes=known[0].unarchived_bytes if known else 0,
        )
        run.update_metrics(failed, None, time.monotonic() - started)
        raise
    return msgspec.structs.replace(_report(place, taken), unarchived_bytes=known[0].unarchived_bytes)


def _report(place: SourceRef, taken: TakenBackup) -> ApplicationBackupReport:
    entry = read_chain(place).entry(BackupId(taken.id))
    report = ApplicationBackupReport(
        source=place.source, id=taken.id, state=taken.state, reason=taken.reason, joined=taken.joined
    )
    if entry is None:
        return report
    summary = entry.summary
    manifest = read_manifest(place, entry)
    record = read_application(place, manifest)
    return msgspec.structs.replace(
        report,
        warnings=summary.warnings,
        findings=manifest.findings,
        stored_bytes=summary.stored_bytes,
        new_bytes=summary.new_bytes,
        pause_ms=max(copy.pause_ms for copy in record.copies),
    )


@verb(STATUS, report=ApplicationBackupReport, text=_text, exit_code=_code)
def status(run: Run, backup: str) -> ApplicationBackupReport:
    place = chosen_source(run)
    require_kind(place, APPLICATION)
    wanted = _backup_id(run, place, backup)
    settled = run_steps(settle(place, wanted, run.clock, run.token), threading.Event().wait)
    report = _report(place, TakenBackup(wanted, False, settled.state, settled.reason))
    return msgspec.structs.replace(report, missing=settled.missing)


def _backup_id(run: Run, place: SourceRef, text: str) -> BackupId:
    """An id that the repository does not know is one too: its state is doesNotExist."""
    if text == "latest":
        return choose_id(text, [state.id for state in view(place, run.clock(), this_process(run.token())).states()])
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"{text!r} is not a backup id", remedy="give the number, or `latest`")
    return backup_id(int(text))


@verb(
    CHECKPOINT,
    report=CheckpointReport,
    text=lambda report, look: look.text(f"checkpoint {report.id} of {report.source} is in the logs"),
)
def checkpoint(run: Run, name: str) -> CheckpointReport:
    place, wanted = opened_repository(run).place(name), run[BACKUP_ID]
    chosen = None if wanted is None else backup_id(wanted)
    with running_application(run, name) as port:
        steps = mark(place, port, chosen, run[APP_TIMEOUT], run.clock, run.token)
        return CheckpointReport(source=place.source, id=run_steps(steps, threading.Event().wait))
