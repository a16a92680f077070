"""`logkeep info`: what is in a backup."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, count, size
from logkeep.cli.verbs.backup_rows import BackupRow, backup_row, backup_table, health_of, seen
from logkeep.cli.verbs.kafka import info as kafka_info
from logkeep.cli.verbs.zookeeper import info as zookeeper_info
from logkeep.cli.wiring import STORE_EXITS, chosen_sources
from logkeep.config.options import ALL, REPO, SOURCE, TOPIC
from logkeep.errors import UnknownBackup, UsageError
from logkeep.kafka.record.contents import KafkaReport
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId, choose_id
from logkeep.repository.backups.source import SourceView
from logkeep.repository.backups.states import Completed, DoesNotExist, StateName, group_state
from logkeep.repository.chain.commits import SourceRef
from logkeep.zookeeper.repo.report import ZooKeeperReport

if TYPE_CHECKING:
    from logkeep.model.segments import LogName
    from logkeep.repository.backups.manifest import Manifest
    from logkeep.repository.parts import LogTotals

_SHOWN = 15


class LogRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds of one log: positions `[start, end)`."""

    log: str
    history: str
    start: int
    end: int
    segments: int
    records: int
    stored_bytes: int


class InfoReport(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    state: str
    """Of the group when several sources have this id: completed if all are, failed if any is."""
    members: tuple[BackupRow, ...]
    """One row for each source that has this id."""
    kind: str | None = None
    identity: dict[str, str] | None = None
    base: int | None = None
    logs: tuple[LogRow, ...] = ()
    gaps: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    attachments: tuple[str, ...] = ()
    parts: int = 0
    kafka: KafkaReport | None = None
    """All about the cluster, when it is a backup of one."""
    zookeeper: ZooKeeperReport | None = None
    """All about the ensemble, when it is a backup of one."""
    topic: tuple[str, ...] = ()
    """The topics that were asked for; then only they are in `kafka`."""
    all: bool = False


def _info_text(report: InfoReport, look: TerminalStyle) -> str:
    lines = [f"backup {report.id}: {report.state}", ""]
    lines.append(backup_table(report.members, look))
    if report.kafka is not None:
        return "\n".join([*lines, *_kafka_lines(report, report.kafka, look)])
    if report.zookeeper is not None:
        lines += ["", *zookeeper_info.ensemble_lines(report.zookeeper, report.base, look)]
        lines += [look.line(f"GAP   {g}") for g in report.gaps]
        return "\n".join([*lines, *_finding_lines(report, look)])
    if report.kind is not None:
        identity = ", ".join(f"{k} {v}" for k, v in (report.identity or {}).items())
        base = "none, it stands alone" if report.base is None else str(report.base)
        lines += ["", look.pairs({"kind": report.kind, "identity": identity, "continues": base})]
    if report.logs:
        lines += ["", _log_table(report.logs, look)]
    lines += [look.line(f"GAP   {g}") for g in report.gaps] + _finding_lines(report, look)
    return "\n".join(lines)


def _kafka_lines(report: InfoReport, found: KafkaReport, look: TerminalStyle) -> list[str]:
    if report.topic:
        details = [["", *kafka_info.topic_details(t, look)] for t in found.topics]
        return [line for some in details for line in some] + [*kafka_info.gap_lines(found.topics, look, every=True)]
    lines = ["", look.pairs(kafka_info.overview(found, report.base)), ""]
    lines += kafka_info.topic_table(found.topics, look, every=report.all)
    lines += kafka_info.gap_lines(found.topics, look, every=report.all)
    if found.groups:
        lines += ["", *kafka_info.group_table(found.groups, look, every=report.all)]
    lines += ["", *kafka_info.needs_lines(found.needs, report.id, look)]
    if report.findings:
        lines += ["", *_finding_lines(report, look)]
    return lines


def _finding_lines(report: InfoReport, look: TerminalStyle) -> list[str]:
    shown = report.findings if report.all else report.findings[:_SHOWN]
    lines = [look.line(f"{f.severity.upper():8}{f.where}: {f.what}") for f in shown]
    more = len(report.findings) - len(shown)
    return [*lines, look.text(f"… and {count(more)} more findings; --all shows them")] if more else lines


def _log_table(rows: Sequence[LogRow], look: TerminalStyle) -> str:
    shown = [
        (r.log, r.history, count(r.start), count(r.end), count(r.segments), count(r.records), size(r.stored_bytes))
        for r in rows
    ]
    headers = ("LOG", "HISTORY", "FROM", "TO", "SEGMENTS", "RECORDS", "SIZE")
    return look.table(headers, shown, right="FROM,TO,SEGMENTS,RECORDS,SIZE", spare="SEGMENTS,HISTORY")


@verb(
    report=InfoReport,
    text=_info_text,
    options=(REPO, SOURCE, TOPIC, ALL),
    arguments=(click.Argument(["backup"], metavar="ID"),),
    exits=(10, *STORE_EXITS),
    examples=(
        "logkeep info latest",
        "logkeep info latest --topic 'orders.*'",
        "logkeep info 20261115103000 --source prod --json",
    ),
)
def info(run: Run, backup: str) -> InfoReport:
    """Show what is in a backup: its logs, ranges, sizes, gaps, findings.

    ID is a number, a unique prefix of one, or `latest`. When several sources have backups under the same id, they are
    one group backup: all are shown, and the state is that of the group. Of a Kafka cluster it tells topics by size,
    groups by lag and what a restore would need; of ZooKeeper, how far each member reaches and what can be restored. No
    archived data is read for it.
    """
    views = {place.source: (place, seen(place, run.clock())) for place in chosen_sources(run)}
    backup_id = _choose(backup, [v for _, v in views.values()])
    members = _members(views, backup_id, only_these=run[SOURCE] is not None)
    states = {s: views[s][1].state(backup_id) if s in views else DoesNotExist(backup_id) for s in members}
    rows = tuple(backup_row(s, state, health_of(views[s][0]) if s in views else {}) for s, state in states.items())
    report = InfoReport(
        id=backup_id, state=group_state(s.name for s in states.values()), members=rows, topic=run[TOPIC], all=run[ALL]
    )
    if len(members) == 1 and isinstance(states[members[0]], Completed):
        return _with_content(report, *views[members[0]])
    return report


def _choose(text: str, views: Sequence[SourceView]) -> BackupId:
    """An id among all sources at hand; `latest` is the newest completed one."""
    if text == "latest":
        completed = [BackupId(e.id) for v in views for e in v.folded.completed]
        return choose_id(text, sorted(completed))
    return choose_id(text, sorted({s.id for v in views for s in v.states()}))


def _members(views: dict[str, tuple[SourceRef, SourceView]], backup_id: BackupId, *, only_these: bool) -> list[str]:
    """The sources of a group: those that one of them names, else all that have the id.

    A member that never started is one too, also when the repository has never seen it: without it the whole would look
    completed.
    """
    have = [s for s, (_, v) in views.items() if v.state(backup_id).name is not StateName.DOES_NOT_EXIST]
    named = {m for s in have for m in _named(views[s][1], backup_id)}
    return sorted(named) if named and not only_these else have


def _named(view: SourceView, backup_id: BackupId) -> tuple[str, ...]:
    state = view.state(backup_id)
    if isinstance(state, Completed):
        return state.entry.summary.group
    request = None if isinstance(state, DoesNotExist) else state.request
    return request.group if request else ()


def _with_content(report: InfoReport, place: SourceRef, view: SourceView) -> InfoReport:
    """Add what only the manifest and the rows know. The rows need Arrow, which takes a moment to load."""
    from logkeep.repository.backups.content import PartReader, rows_of, served_parts  # noqa: PLC0415
    from logkeep.repository.backups.source import read_manifest  # noqa: PLC0415
    from logkeep.repository.parts import log_totals  # noqa: PLC0415

    entry = view.folded.entry(report.id)
    if entry is None:
        raise UnknownBackup(f"backup {report.id} is not there any more", subject=place.source)
    manifest = read_manifest(place, entry)
    parts = served_parts(manifest, view.folded)
    totals = log_totals(rows_of(PartReader(place), manifest, parts))
    kafka = _kafka(place, manifest, totals, report.topic)
    logs = [
        LogRow(
            log=str(c.log), history=c.log.history, start=c.start, end=c.end,
            segments=totals[c.log].segments if c.log in totals else 0,
            records=totals[c.log].records if c.log in totals else 0,
            stored_bytes=totals[c.log].stored_bytes if c.log in totals else 0,
        )
        for c in manifest.cut
    ]  # fmt: skip
    return msgspec.structs.replace(
        report,
        kind=manifest.kind,
        identity=manifest.identity,
        base=manifest.base,
        logs=tuple(logs),
        gaps=tuple(f"{g.log} [{g.start}, {g.end}): {g.reason}" for g in manifest.gaps),
        findings=manifest.findings,
        attachments=tuple(a.role for a in manifest.attachments),
        parts=len(parts),
        kafka=kafka,
        zookeeper=_zookeeper(place, view, report.id) if manifest.kind == "zookeeper" else None,
    )


def _zookeeper(place: SourceRef, view: SourceView, backup: int) -> ZooKeeperReport | None:
    from logkeep.zookeeper.repo.reachable import record_rows  # noqa: PLC0415 - needs Arrow
    from logkeep.zookeeper.repo.report import report  # noqa: PLC0415

    entry = view.folded.entry(backup)
    found = record_rows(place, view.folded, entry) if entry is not None else None
    return report(*found) if found is not None else None


def _kafka(
    place: SourceRef, manifest: "Manifest", totals: "Mapping[LogName, LogTotals]", wanted: tuple[str, ...]
) -> KafkaReport | None:
    """What the cluster record adds, of the topics that are wanted; None for another kind of source."""
    from logkeep.kafka.record.contents import report  # noqa: PLC0415
    from logkeep.kafka.record.documents import ROLE, ClusterRecord  # noqa: PLC0415 - brings the whole Kafka client
    from logkeep.kafka.record.scram import ROLE as SCRAM_ROLE  # noqa: PLC0415
    from logkeep.kafka.record.scram import ScramDocument  # noqa: PLC0415
    from logkeep.repository.backups.attachments import read_attachment  # noqa: PLC0415

    record = read_attachment(place, manifest, ROLE, ClusterRecord) if manifest.kind == "kafka" else None
    if record is None:
        if wanted:
            raise UsageError("this backup has no topics", subject=f"backup {manifest.id}", remedy="leave --topic out")
        return None
    scram = read_attachment(place, manifest, SCRAM_ROLE, ScramDocument)
    found = report(record, manifest, totals, scram.credentials if scram is not None else None)
    if not wanted:
        return found
    chosen = tuple(t for t in found.topics if any(_matches(pattern, t.name) for pattern in wanted))
    if not chosen:
        names = ", ".join(t.name for t in found.topics[:5]) or "none"
        raise UsageError(f"no topic matches {' or '.join(wanted)}", remedy=f"the backup has: {names}")
    return msgspec.structs.replace(found, topics=chosen)


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error as error:
        raise UsageError(f"{pattern!r} is not a pattern: {error}") from error
