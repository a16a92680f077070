"""`logkeep list` and `logkeep info`: which backups there are, and what is in one."""

from collections.abc import Sequence

import click
import msgspec

from logkeep.cli.look import Look, count, size
from logkeep.cli.opening import STORE_EXITS, chosen_sources
from logkeep.cli.rows import BackupRow, backup_row, backup_table, health_of, seen
from logkeep.cli.run import Run
from logkeep.cli.verb import verb
from logkeep.config.options import REPO, SOURCE
from logkeep.errors import Damaged, UnknownBackup
from logkeep.model.ids import BackupId, choose_id
from logkeep.repository.chain import Place
from logkeep.repository.source import SourceView
from logkeep.repository.states import Completed, DoesNotExist, StateName, group_state


class ListReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    sources: tuple[str, ...]
    backups: tuple[BackupRow, ...]
    warnings: tuple[str, ...]


def _list_text(report: ListReport, look: Look) -> str:
    if not report.backups:
        return look.text(f"no backups in {report.url}")
    table = backup_table(report.backups, look)
    return "\n".join([table, *(look.line(f"WARN  {w}") for w in report.warnings)])


@verb(
    report=ListReport,
    text=_list_text,
    options=(REPO, SOURCE),
    exits=(2, 10, *STORE_EXITS),
    exit_code=lambda report: 2 if report.warnings else 0,
    examples=("logkeep list -r s3://bucket/logkeep", "logkeep list --json | jq '.backups[-1].id'"),
)
def list_backups(run: Run) -> ListReport:
    """List all backups, oldest first.

    Reads the chain of each source and nothing else: no data, no manifests, no Spark.
    """
    places = list(chosen_sources(run))
    views, trouble = list[tuple[Place, SourceView]](), list[str]()
    for place in places:
        try:
            views.append((place, seen(place, run.clock())))
        except Damaged as damage:
            if len(places) == 1:
                raise
            trouble.append(f"source {place.source}: {damage}; {damage.remedy}")  # must not hide the others
    rows = [row for place, view in views for row in _rows(place, view)]
    return ListReport(
        url=places[0].store.url if places else run.repo(),
        sources=tuple(place.source for place in places),
        backups=tuple(rows),
        warnings=(*trouble, *(w for _, view in views for w in view.warnings)),
    )


def _rows(place: Place, view: SourceView) -> list[BackupRow]:
    health = health_of(place)
    return [backup_row(place.source, state, health) for state in view.states()]


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
    findings: tuple[str, ...] = ()
    attachments: tuple[str, ...] = ()
    parts: int = 0


def _info_text(report: InfoReport, look: Look) -> str:
    lines = [f"backup {report.id}: {report.state}", ""]
    lines.append(backup_table(report.members, look))
    if report.kind is not None:
        identity = ", ".join(f"{k} {v}" for k, v in (report.identity or {}).items())
        base = "none, it stands alone" if report.base is None else str(report.base)
        lines += ["", look.pairs({"kind": report.kind, "identity": identity, "continues": base})]
    if report.logs:
        lines += ["", _log_table(report.logs, look)]
    lines += [look.text(f"GAP   {g}") for g in report.gaps] + [look.text(f"NOTE  {f}") for f in report.findings]
    return "\n".join(lines)


def _log_table(rows: Sequence[LogRow], look: Look) -> str:
    shown = [
        (r.log, r.history, count(r.start), count(r.end), count(r.segments), count(r.records), size(r.stored_bytes))
        for r in rows
    ]
    headers = ("LOG", "HISTORY", "FROM", "TO", "SEGMENTS", "RECORDS", "SIZE")
    return look.table(headers, shown, right="FROM,TO,SEGMENTS,RECORDS,SIZE", spare="SEGMENTS,HISTORY")


@verb(
    report=InfoReport,
    text=_info_text,
    options=(REPO, SOURCE),
    arguments=(click.Argument(["backup"], metavar="ID"),),
    exits=(10, *STORE_EXITS),
    examples=("logkeep info latest", "logkeep info 20261115103000 --source prod --json"),
)
def info(run: Run, backup: str) -> InfoReport:
    """Show what is in a backup: its logs, ranges, sizes, gaps, findings.

    ID is a number, a unique prefix of one, or `latest`. When several sources have backups under the same id, they are
    one group backup: all are shown, and the state is that of the group.
    """
    views = {place.source: (place, seen(place, run.clock())) for place in chosen_sources(run)}
    backup_id = _choose(backup, [v for _, v in views.values()])
    members = _members(views, backup_id, only_these=run[SOURCE] is not None)
    states = {s: views[s][1].state(backup_id) if s in views else DoesNotExist(backup_id) for s in members}
    rows = tuple(backup_row(s, state, health_of(views[s][0]) if s in views else {}) for s, state in states.items())
    report = InfoReport(id=backup_id, state=group_state(s.name for s in states.values()), members=rows)
    if len(members) == 1 and isinstance(states[members[0]], Completed):
        return _with_content(report, *views[members[0]])
    return report


def _choose(text: str, views: Sequence[SourceView]) -> BackupId:
    """An id among all sources at hand; `latest` is the newest completed one."""
    if text == "latest":
        completed = [BackupId(e.id) for v in views for e in v.folded.completed]
        return choose_id(text, sorted(completed))
    return choose_id(text, sorted({s.id for v in views for s in v.states()}))


def _members(views: dict[str, tuple[Place, SourceView]], backup_id: BackupId, *, only_these: bool) -> list[str]:
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


def _with_content(report: InfoReport, place: Place, view: SourceView) -> InfoReport:
    """Add what only the manifest and the rows know. The rows need Arrow, which takes a moment to load."""
    from logkeep.repository.content import PartReader, rows_of, served_parts  # noqa: PLC0415
    from logkeep.repository.parts import log_totals  # noqa: PLC0415
    from logkeep.repository.source import read_manifest  # noqa: PLC0415

    entry = view.folded.entry(report.id)
    if entry is None:
        raise UnknownBackup(f"backup {report.id} is not there any more", subject=place.source)
    manifest = read_manifest(place, entry)
    parts = served_parts(manifest, view.folded)
    totals = log_totals(rows_of(PartReader(place), manifest, parts))
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
        findings=tuple(f"{f.where}: {f.what}" for f in manifest.findings),
        attachments=tuple(a.role for a in manifest.attachments),
        parts=len(parts),
    )
