"""The contents of one backup: its logs, ranges, sizes, gaps, findings, and what its kind of source adds."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from logkeep.errors import Damaged, UnknownBackup, UsageError
from logkeep.kafka.record.contents import KafkaReport
from logkeep.kafka.topic_selection import compiled
from logkeep.kinds import kind_named
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId, choose_id
from logkeep.reports.backups import BackupRow, backup_row, health_of, read_source
from logkeep.repository.backups.certificate import Certificate
from logkeep.repository.backups.journal import BackupRequest, read_request
from logkeep.repository.backups.source import SourceView
from logkeep.repository.backups.states import Completed, DoesNotExist, State, StateName, group_state
from logkeep.repository.backups.verification import stored_certificate
from logkeep.repository.chain.commits import SourceRef
from logkeep.zookeeper.repo.report import ZooKeeperReport

SourceViews = dict[str, tuple[SourceRef, SourceView]]
"""By the name of the source."""


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
    """The topics of --topic; `kafka` then has only these."""
    all: bool = False
    certificate: Certificate | None = None
    """The newest certificate of the backup, if `verify --level cut` has made one."""
    certificate_verdict: str | None = None


def contents_report(
    places: Iterable[SourceRef], now: datetime, backup: str, *, one_source: bool, topics: tuple[str, ...]
) -> InfoReport:
    """Of a backup id among these sources. `one_source`: the user chose the source, so a group is not asked for."""
    views = source_views(places, now)
    backup_id = _choose(backup, [v for _, v in views.values()])
    states = member_states(views, backup_id, only_these=one_source)
    members = list(states)
    rows = tuple(backup_row(s, state, health_of(views[s][0]) if s in views else {}, now) for s, state in states.items())
    report = InfoReport(id=backup_id, state=group_state(s.name for s in states.values()), members=rows, topic=topics)
    if len(members) == 1 and isinstance(states[members[0]], Completed):
        return _with_content(report, *views[members[0]])
    return report


def source_views(places: Iterable[SourceRef], now: datetime) -> SourceViews:
    return {place.source: (place, read_source(place, now)) for place in places}


def member_states(views: SourceViews, backup_id: BackupId, *, only_these: bool = False) -> dict[str, State]:
    """The state of a backup in each source of its group."""
    members = _members(views, backup_id, only_these=only_these)
    return {s: views[s][1].state(backup_id) if s in views else DoesNotExist(backup_id) for s in members}


def _choose(text: str, views: Sequence[SourceView]) -> BackupId:
    """An id among these sources; `latest` is the newest completed one."""
    if text == "latest":
        completed = [BackupId(e.id) for v in views for e in v.folded.completed]
        return choose_id(text, sorted(completed))
    return choose_id(text, sorted({s.id for v in views for s in v.states()}))


def _members(views: SourceViews, backup_id: BackupId, *, only_these: bool) -> list[str]:
    """The sources of a group: those that one of them names, else all that have the id.

    A member that never started counts too, also when the repository does not know it: without it the group would look
    completed.
    """
    have = [s for s, (_, v) in views.items() if v.state(backup_id).name is not StateName.DOES_NOT_EXIST]
    named = {m for s in have for m in _group_members(views[s][1], backup_id)}
    return sorted(named) if named and not only_these else have


def _group_members(view: SourceView, backup_id: BackupId) -> tuple[str, ...]:
    state = view.state(backup_id)
    if isinstance(state, Completed):
        return state.entry.summary.group
    request = None if isinstance(state, DoesNotExist) else state.request or _stored_request(view, backup_id)
    return request.group if request else ()


def _stored_request(view: SourceView, backup_id: BackupId) -> BackupRequest | None:
    """The chain says of a failed backup only why it failed."""
    try:
        return read_request(view.place, backup_id)
    except Damaged:
        return None


def _with_content(report: InfoReport, place: SourceRef, view: SourceView) -> InfoReport:
    """Add what only the manifest and the rows have. The rows need Arrow, which is slow to load."""
    from logkeep.repository.backups.content import PartReader, rows_of, served_parts  # noqa: PLC0415
    from logkeep.repository.backups.source import read_manifest, read_trimmed_cuts  # noqa: PLC0415
    from logkeep.repository.backups.trim_floors import trim_findings  # noqa: PLC0415
    from logkeep.repository.parts import log_totals  # noqa: PLC0415

    entry = view.folded.entry(report.id)
    if entry is None:
        raise UnknownBackup(f"backup {report.id} no longer exists", subject=place.source)
    manifest = read_manifest(place, entry)
    parts = served_parts(manifest, view.folded)
    totals = log_totals(rows_of(PartReader(place), manifest, parts))
    kind, trimmed = kind_named(manifest.kind), trim_findings(read_trimmed_cuts(place, entry))
    found = kind.contents(place, view.folded, manifest, totals)
    if report.topic:
        found = _only_topics(found, manifest.id, report.topic)
    logs = [
        LogRow(
            log=str(c.log), history=c.log.history, start=c.start, end=c.end,
            segments=totals[c.log].segments if c.log in totals else 0,
            records=totals[c.log].records if c.log in totals else 0,
            stored_bytes=totals[c.log].stored_bytes if c.log in totals else 0,
        )
        for c in manifest.cut
    ]  # fmt: skip
    certificate = (
        stored_certificate(place, BackupId(manifest.id)) if report.members[0].verified_level == "cut" else None
    )
    return msgspec.structs.replace(
        report,
        certificate=certificate,
        certificate_verdict=certificate.verdict if certificate else None,
        kind=manifest.kind,
        identity=manifest.identity,
        base=manifest.base,
        logs=tuple(logs),
        gaps=tuple(f"{g.log} [{g.start}, {g.end}): {g.reason}" for g in manifest.gaps),
        findings=(*manifest.findings, *kind.doubts(place, view.folded, manifest), *trimmed),
        attachments=tuple(a.role for a in manifest.attachments),
        parts=len(parts),
        **({kind.name: found} if found is not None else {}),
    )


def _only_topics(found: msgspec.Struct | None, backup: int, wanted: tuple[str, ...]) -> KafkaReport:
    if not isinstance(found, KafkaReport):
        raise UsageError("this backup has no topics", subject=f"backup {backup}", remedy="leave --topic out")
    patterns = [compiled(pattern) for pattern in wanted]
    chosen = tuple(t for t in found.topics if any(pattern.fullmatch(t.name) for pattern in patterns))
    if not chosen:
        names = ", ".join(t.name for t in found.topics[:5]) or "none"
        raise UsageError(f"no topic matches {' or '.join(wanted)}", remedy=f"the backup has: {names}")
    return msgspec.structs.replace(found, topics=chosen)
