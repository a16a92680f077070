"""`logkeep zookeeper backup`: the files of one server or of several, into a repository, while the servers run."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from logkeep.cli.frame.execute import CommandOutcome, Run
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, count, plural, size
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.cli.verbs.zookeeper.admin_backup import admin_member, back_up_over_http
from logkeep.cli.verbs.zookeeper.members import given_members, member_places
from logkeep.cli.verbs.zookeeper.rounds import RoundsSummary, summary_text
from logkeep.cli.wiring import STORE_EXITS, WarmEngines, refuse_contradictions, written_source
from logkeep.config.options import (
    ADMIN_SERVER,
    AUTH_FILE,
    BACKUP_ID,
    CONFIG_DIRS,
    ENGINE,
    FOLLOW,
    INCLUDE_CONFIG,
    LEASE_TTL,
    LIMIT_UPLOAD,
    MASTER,
    NEW_HISTORY,
    PARALLEL,
    PROGRESS,
    REPO,
    RETRY_FOR,
    SOURCE,
    SPARK_CONF,
    TAG,
    ZK_COMPRESSION,
    ZK_DATA_DIRS,
    ZK_HOSTS,
    ZK_INTERVAL,
    ZK_LOG_DIRS,
    ZK_SEGMENT_BYTES,
)
from logkeep.errors import UsageError
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding
from logkeep.model.ids import backup_id
from logkeep.model.segments import Codec
from logkeep.model.work import EngineFor
from logkeep.repository.backups.source import check_source
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry
from logkeep.zookeeper.backup.findings import exit_code
from logkeep.zookeeper.backup.preview import Nowhere, preview_backup
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone, ZooKeeperBackupOptions, back_up
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.repo.record import KIND, known_from
from logkeep.zookeeper.repo.sink import ArchiveShelf, ArchiveSink, archiving, last_record
from logkeep.zookeeper.server.client import server_state
from logkeep.zookeeper.server.four_letter import four_letter

FIRST_SOURCE = "zookeeper"
ASK_S = 10.0


class BackedUpMember(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    role: str
    """Empty when no server could be asked."""
    version: str
    zxid: str | None
    """What the server said it had processed."""


class ZooKeeperBackupReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    id: int | None
    """Null on a dry run, and when a run with --follow found nothing new."""
    history: str
    """In another history the same zxids mean other transactions."""
    members: tuple[BackedUpMember, ...]
    backup_zxid: str | None
    """The newest transaction that the backup knows of; null on a dry run."""
    new_snapshots: int
    new_logs: int
    new_bytes: int
    """As stored; on a dry run, at most what would be."""
    stored_bytes: int | None
    findings: tuple[Finding, ...]
    exit_code: int
    dry_run: bool
    follow: RoundsSummary | None = None
    """Of a run with --follow: then new snapshots, logs, bytes and findings are those of all its rounds."""


def backup_text(report: ZooKeeperBackupReport, look: TerminalStyle) -> str:
    if report.follow is not None:
        return look.text(summary_text(report.follow, report.new_bytes))
    done = "would copy" if report.dry_run else f"backup {report.id} of {report.source}: copied"
    most = "at most " if report.dry_run else ""
    amount = f"{plural(report.new_snapshots, 'snapshot')}, {plural(report.new_logs, 'log piece')}"
    lines = [look.line(f"{done} {amount}, {most}{size(report.new_bytes)}")]
    reached = f" · up to {report.backup_zxid}" if report.backup_zxid else ""
    lines.append(look.line(f"history {report.history} · {_members(report)}{reached}"))
    return "\n".join([*lines, *finding_lines(report.findings, look, every=True)])


def _members(report: ZooKeeperBackupReport) -> str:
    told = [f"{m.name} ({m.role} {m.version})" if m.role else f"{m.name} (not asked)" for m in report.members]
    return f"{count(len(told))} member{'s' * (len(told) != 1)}: {', '.join(told)}"


def _metrics(outcome: CommandOutcome[ZooKeeperBackupReport]) -> Iterator[MetricSample]:
    report = outcome.report
    if report is not None and report.follow is not None and report.follow.ended:
        return  # every round has told its own
    source = report.source if report else outcome.source or FIRST_SOURCE
    yield sample("logkeep_backup_duration_seconds", outcome.duration.total_seconds(), source=source)
    yield sample("logkeep_backup_success", 1 if report else 0, source=source)
    if report is not None:
        yield sample("logkeep_backup_size_bytes", report.stored_bytes or 0, source=source)
        yield sample("logkeep_backup_last_success_timestamp_seconds", outcome.ended.timestamp(), source=source)


@verb(
    report=ZooKeeperBackupReport,
    text=backup_text,
    options=(
        REPO,
        SOURCE,
        ZK_DATA_DIRS,
        ZK_LOG_DIRS,
        ZK_HOSTS,
        ADMIN_SERVER,
        AUTH_FILE,
        NEW_HISTORY,
        ZK_COMPRESSION,
        INCLUDE_CONFIG,
        CONFIG_DIRS,
        BACKUP_ID,
        TAG,
        FOLLOW,
        ZK_INTERVAL,
        ZK_SEGMENT_BYTES,
        ENGINE,
        MASTER,
        PARALLEL,
        SPARK_CONF,
        LIMIT_UPLOAD,
        RETRY_FOR,
        LEASE_TTL,
        PROGRESS,
    ),
    exits=(2, 10, 20, 21, 31, 50, *STORE_EXITS),
    exit_code=lambda report: report.exit_code,
    changes=True,
    metrics=_metrics,
    examples=(
        "logkeep zookeeper backup --data-dir /var/lib/zookeeper --zk-host localhost:2181 -r s3://bucket/logkeep",
        "logkeep zookeeper backup --data-dir zk1=/data/zk1 --data-dir zk2=/data/zk2 --zk-host zk1=zk1:2181 "
        "--zk-host zk2=zk2:2181",
        "logkeep zookeeper backup --data-dir /var/lib/zookeeper --zk-host localhost:2181 --follow --interval 5s",
        "logkeep zookeeper backup --admin-server http://localhost:8080 --auth-file /etc/logkeep/zk-admin",
    ),
)
def backup(run: Run) -> ZooKeeperBackupReport:
    """Back up ZooKeeper from the files of one server or of several, while they run.

    Snapshots come first, then the logs up to the last whole record that the server has committed, again and again until
    the newest snapshot is covered. Only used bytes are copied, and only what earlier backups do not have. A run proves
    that the directories continue what is archived; restored data, or another ensemble, ends with 31 unless
    --new-history says that it is meant. Transactions that no file holds any more end with 21. Where no server could be
    asked, the newest transactions are kept and labelled unproven, and the run ends with 2.

    Without access to the disks, --admin-server asks a server of 3.9 for a snapshot. It is the tree of one transaction
    if the digest in it proves that; under load it is fuzzy, which a finding says, and the run ends with 2.

    With --follow it goes on, round after round, until SIGTERM or SIGINT; a round with nothing new commits nothing, and
    now and then the small objects that rounds leave are merged, as `zookeeper optimize` does.
    """
    refuse_contradictions(run)
    over_http = admin_member(run)
    if over_http is not None:
        place = written_source(run, FIRST_SOURCE)
        with opened_sink(run, place) as sink:
            done = back_up_over_http(run, *over_http, sink)
        return done_report(place, done, sink.entry)
    place, wish = written_source(run, FIRST_SOURCE), _wish(run)
    if run[FOLLOW]:
        from logkeep.cli.verbs.zookeeper.follow import follow  # noqa: PLC0415 - only who follows needs it

        return follow(run, place, wish)
    if run.dry_run:
        return _foreseen(run, place, wish)
    with opened_sink(run, place) as sink:
        done = back_up(wish, sink, rounds(WarmEngines(run)), ask_word)
    return done_report(place, done, sink.entry)


def opened_sink(run: Run, place: SourceRef) -> AbstractContextManager[ArchiveSink]:
    """The repository, ready for one backup."""
    wanted = run[BACKUP_ID]
    return archiving(
        place,
        clock=run.clock,
        tokens=run.token,
        codec=Codec(run[ZK_COMPRESSION]),
        wanted=backup_id(wanted) if wanted is not None else None,
        tags=run[TAG],
        lease_ttl=run[LEASE_TTL],
    )


def rounds(engines: EngineFor) -> RoundSettings:
    return RoundSettings(engines, lambda host: server_state(host, ASK_S))


def ask_word(host: str, word: str) -> str:
    return four_letter(host, word, ASK_S)


def _wish(run: Run) -> ZooKeeperBackupOptions:
    config_dirs: tuple[str, ...] = run[CONFIG_DIRS]
    if config_dirs and not run[INCLUDE_CONFIG]:
        raise UsageError("--config-dir is about configuration files", remedy="add --include-config")
    return ZooKeeperBackupOptions(
        members=member_places(given_members(run)),
        new_history=run[NEW_HISTORY],
        include_config=run[INCLUDE_CONFIG],
        config_dirs=tuple(Path(text).expanduser() for text in config_dirs),
    )


def _foreseen(run: Run, place: SourceRef, wish: ZooKeeperBackupOptions) -> ZooKeeperBackupReport:
    check_source(place, KIND, {})
    known = known_from(last_record(place, read_chain(place)))
    sink = Nowhere(ArchiveShelf(place, Codec(run[ZK_COMPRESSION])), known)
    found = preview_backup(wish, sink, rounds(WarmEngines(run)))
    return ZooKeeperBackupReport(
        source=place.source,
        id=None,
        history=found.history,
        members=tuple(_member(member.member()) for member in found.members),
        backup_zxid=None,
        new_snapshots=found.snapshots,
        new_logs=found.logs,
        new_bytes=found.size_bytes,
        stored_bytes=None,
        findings=found.findings,
        exit_code=exit_code(found.findings),
        dry_run=True,
    )


def _member(member: Member) -> BackedUpMember:
    zxid = hex_zxid(member.zxid) if member.zxid is not None else None
    return BackedUpMember(name=member.name, role=member.role, version=member.version, zxid=zxid)


def done_report(place: SourceRef, done: ZooKeeperBackupDone, entry: BackupEntry | None) -> ZooKeeperBackupReport:
    """Of a backup that was committed."""
    gathered = done.gathered
    stored = [*(placed.stored for placed in gathered.snapshots), *(placed.stored for placed in gathered.logs)]
    return ZooKeeperBackupReport(
        source=place.source,
        id=int(done.name),
        history=gathered.history,
        members=tuple(map(_member, gathered.members)),
        backup_zxid=hex_zxid(gathered.backup_zxid),
        new_snapshots=len(gathered.snapshots),
        new_logs=len(gathered.logs),
        new_bytes=sum(one.size_bytes for one in stored),
        stored_bytes=entry.summary.stored_bytes if entry else None,
        findings=tuple(done.findings),
        exit_code=done.exit_code,
        dry_run=False,
    )
