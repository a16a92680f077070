"""The report of `logkeep zookeeper backup`: what was copied, of which members, and the rounds of --follow."""

import msgspec

from logkeep.cli.terminal.text import TerminalStyle, count, duration, plural, size
from logkeep.cli.verbs.follow import FollowCounts, summary_text
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone
from logkeep.zookeeper.model.archived import Member

FIRST_SOURCE = "zookeeper"
"""The name of the very first source, when none is given."""


class BackedUpMember(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    role: str
    """Empty when no server answered."""
    version: str
    zxid: str | None
    """The last transaction that the server reports."""


class ZooKeeperRound(msgspec.Struct, frozen=True, kw_only=True):
    """One round of --follow: the document of a line."""

    round: int
    id: int | None
    """The backup that the round committed; null when nothing was new, or it failed."""
    backup_zxid: str | None
    new_bytes: int
    behind_seconds: float
    """Since the last moment at which the archive held all that the members had."""
    findings: int
    merged_objects: int
    """Small objects that were merged into larger ones after this round."""
    seconds: float
    error: str | None
    """The name of the error that failed the round, or that followed its commit."""
    message: str | None
    again_in_seconds: float


class ZooKeeperFollowSummary(FollowCounts, frozen=True, kw_only=True):
    last_round: ZooKeeperRound | None
    ended: bool


class ZooKeeperBackupReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    id: int | None
    """Null on a dry run, and when a run with --follow found nothing new."""
    history: str
    """The same zxid in another history is another transaction."""
    members: tuple[BackedUpMember, ...]
    backup_zxid: str | None
    """The newest transaction in the backup; null on a dry run."""
    new_snapshots: int
    new_logs: int
    new_bytes: int
    """As stored; an upper bound on a dry run."""
    stored_bytes: int | None
    findings: tuple[Finding, ...]
    exit_code: int
    dry_run: bool
    follow: ZooKeeperFollowSummary | None = None
    """Of a run with --follow: then new snapshots, logs, bytes and findings are those of all its rounds."""


def backup_text(report: ZooKeeperBackupReport, look: TerminalStyle) -> str:
    if report.follow is not None:
        return look.text(summary_text(report.follow, size(report.new_bytes)))
    done = "would copy" if report.dry_run else f"backup {report.id} of {report.source}: copied"
    most = "at most " if report.dry_run else ""
    amount = f"{plural(report.new_snapshots, 'snapshot')}, {plural(report.new_logs, 'log piece')}"
    lines = [look.line(f"{done} {amount}, {most}{size(report.new_bytes)}")]
    reached = f" · up to {report.backup_zxid}" if report.backup_zxid else ""
    lines.append(look.line(f"history {report.history} · {_members_text(report)}{reached}"))
    return "\n".join([*lines, *finding_lines(report.findings, look, every=True)])


def _members_text(report: ZooKeeperBackupReport) -> str:
    members = [f"{m.name} ({m.role} {m.version})" if m.role else f"{m.name} (not asked)" for m in report.members]
    return f"{count(len(members))} member{'s' * (len(members) != 1)}: {', '.join(members)}"


def round_text(one: ZooKeeperRound) -> str:
    """One line, whatever happened."""
    if one.error is not None and one.id is None:
        return f"round {one.round}: failed, again in {duration(one.again_in_seconds)}: {one.message}"
    if one.id is None:
        return f"round {one.round}: nothing new"
    more = [
        f"; {plural(one.findings, 'finding')}" if one.findings else "",
        f"; merged {plural(one.merged_objects, 'small object')}" if one.merged_objects else "",
        f"; after it: {one.message}" if one.error is not None else "",
    ]
    return f"round {one.round}: backup {one.id}, up to {one.backup_zxid}, {size(one.new_bytes)}{''.join(more)}"


def member_report(member: Member) -> BackedUpMember:
    zxid = hex_zxid(member.zxid) if member.zxid is not None else None
    return BackedUpMember(name=member.name, role=member.role, version=member.version, zxid=zxid)


def done_report(place: SourceRef, done: ZooKeeperBackupDone, entry: BackupEntry | None) -> ZooKeeperBackupReport:
    """The report of a committed backup."""
    gathered = done.gathered
    stored = [*(placed.stored for placed in gathered.snapshots), *(placed.stored for placed in gathered.logs)]
    return ZooKeeperBackupReport(
        source=place.source,
        id=int(done.name),
        history=gathered.history,
        members=tuple(map(member_report, gathered.members)),
        backup_zxid=hex_zxid(gathered.backup_zxid),
        new_snapshots=len(gathered.snapshots),
        new_logs=len(gathered.logs),
        new_bytes=sum(one.size_bytes for one in stored),
        stored_bytes=entry.summary.stored_bytes if entry else None,
        findings=tuple(done.findings),
        exit_code=done.exit_code,
        dry_run=False,
    )
