"""`logkeep kafka groups restore` and `rollback`: set only the offsets of consumer groups, and undo it."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural
from logkeep.cli.verbs.kafka.backup import client_settings
from logkeep.cli.verbs.kafka.declarations import GROUPS_RESTORE, GROUPS_ROLLBACK
from logkeep.cli.verbs.kafka.groups import open_groups
from logkeep.cli.verbs.kafka.groups_report import CompleteInterval, interval_lines, interval_of
from logkeep.cli.verbs.next_steps import after_restore
from logkeep.cli.verbs.restore_text import group_lines
from logkeep.cli.wiring import chosen_source, restores_place
from logkeep.config.options import (
    ALL,
    AT_TIME,
    ERASED_FROM,
    EXCLUDE,
    FROM_BACKUP,
    RENAME,
    RESTORED_GROUPS,
    TOPICS,
    YES,
)
from logkeep.engine.inline import InlineEngine
from logkeep.errors import CommitConflict, UsageError
from logkeep.formats.kafka.internal_topics.offsets_topic import PositionKey
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.group_history.answers import GroupQuestion, GroupsAt
from logkeep.kafka.group_history.run import ArchivedGroups
from logkeep.kafka.record.backup_view import KafkaBackupView, view_backup
from logkeep.kafka.restore.group_records import GroupRecordsCheck
from logkeep.kafka.restore.groups_run import GroupsTask
from logkeep.kafka.restore.plan.groups import GroupPosition, GroupsPlan, rows_of
from logkeep.kafka.restore.plan.past_groups import PastGroups, past_groups
from logkeep.kafka.restore.plan.selection import RestoreSelection, SelectedLogs, select_logs
from logkeep.model.plurals import first_names
from logkeep.reports.backups import read_source
from logkeep.reports.restores import choose_restore
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import RestoredGroup

_NAMED = 8


class GroupsMoved(msgspec.Struct, frozen=True, kw_only=True):
    """What was, or would be, set. A row without an offset was left out, or is removed; `detail` says why."""

    source: str
    id: int | None
    """Of this run, for `kafka groups rollback`; null on a dry run."""
    backup: int
    restore: int | None
    """The restore whose map was used, or that is undone."""
    cluster_id: str
    groups: int
    overwritten: int
    """Offsets that had another value before."""
    reread: int
    """Records that groups will read a second time."""
    positions: tuple[RestoredGroup, ...]
    untouched: tuple[str, ...]
    """Chosen groups that have no offset in any restored topic."""
    rollback: bool
    dry_run: bool
    all: bool
    chosen_topics: tuple[str, ...] | None = None
    """Topics that --topics and --exclude limited the positions to; null: all topics that have positions."""
    at_ms: int | None = None
    """The positions are those of this time; null: those of the backup."""
    complete: CompleteInterval | None = None
    """For which times the archive knows all positions; null without --at."""
    unsure: int = 0
    """Archived positions of selected groups that may not be the last ones before --at."""


def _text(report: GroupsMoved, look: TerminalStyle) -> str:
    lines = (
        group_lines(report.positions, look, every=report.all, hint="--all shows every one") if report.positions else []
    )
    if report.untouched:
        groups = plural(len(report.untouched), "group")
        what = f"{groups} without an offset in what was restored, not changed: {first_names(report.untouched, _NAMED)}"
        lines.append(look.prose(f"NOTE  {what}", indent=len("NOTE  ")))
    if report.chosen_topics is not None:
        chosen = plural(len(report.chosen_topics), "chosen topic")
        what = f"only positions in {chosen}: {first_names(report.chosen_topics, _NAMED)}"
        lines.append(look.prose(f"NOTE  {what}", indent=len("NOTE  ")))
    if report.complete is not None:
        lines += [look.prose(line, indent=6) for line in interval_lines(report.complete, report.at_ms, look)]
    if report.unsure:
        what = f"{plural(report.unsure, 'archived position')} may not be the last before that time"
        lines.append(look.prose(f"NOTE  {what}", indent=len("NOTE  ")))
    would = "would set" if report.dry_run else f"restore {report.id}: set"
    back = "back " if report.rollback else ""
    lines.append(
        look.prose(
            f"{would} {plural(report.groups, 'group')} {back}in cluster {report.cluster_id}; "
            f"{plural(report.overwritten, 'position')} overwritten, {plural(report.reread, 'record')} read again"
        )
    )
    if not report.dry_run:
        lines.append(look.text(f"`logkeep kafka groups rollback {report.id}` undoes it"))
    return "\n".join(lines)


def _code(report: GroupsMoved) -> int:
    """2 when an offset is not exact or may not be the last one, or there was no group to set: the user should check."""
    sure = report.complete is None or report.complete.complete
    return 0 if report.groups and sure and all(row.exact for row in report.positions) else 2


@verb(GROUPS_RESTORE, next_step=after_restore, report=GroupsMoved, text=_text, exit_code=_code)
def restore(run: Run, restore: str | None) -> GroupsMoved:
    _refuse_contradictions(run, restore)
    place = chosen_source(run)
    restores = restores_place(run, place, create=not run.dry_run)
    restore_id = choose_restore(restores, restore) if restore is not None else None
    named = str(restore_id.backup) if restore_id else run[FROM_BACKUP] or ""
    view = view_backup(place, read_source(place, run.clock()).completed(named))
    manifest, deleted = view.manifest, _deleted_offsets(run, place)
    past = _groups_at(run, place, view) if run[AT_TIME] is not None else None
    groups, foreign = (view.record.groups, ()) if past is None else (past.groups.groups, past.groups.foreign)
    with Cluster(client_settings(run)) as cluster:
        task = GroupsTask(restores, cluster, run.clock, run.token)
        records: GroupRecordsCheck | None = None
        topics: tuple[str, ...] | None = None
        if restore_id is not None:
            routes = task.routes_of_restore(restore_id.id)
        else:
            chosen = _chosen_logs(run, view)
            routes = task.routes_as_they_are(chosen)
            records = GroupRecordsCheck(view, chosen, cluster, restores)
            topics = tuple(new for _, new in chosen.topics) if run[TOPICS] or run[EXCLUDE] else None

        def decide() -> tuple[GroupsPlan, GroupsMoved]:
            plan = task.plan(groups, routes, run[RESTORED_GROUPS], deleted, foreign)
            plan = plan if records is None else records.check(plan)
            planned = _plan_report(run, place, manifest.id, cluster, plan, restore_id.id if restore_id else None)
            planned = planned if past is None else past.reported(planned)
            return plan, msgspec.structs.replace(planned, chosen_topics=topics)

        plan, planned = decide()
        if run.dry_run or not plan.groups:
            return planned
        if _confirm(run, planned):
            plan, now = decide()
            _refuse_change(planned, now)
        done = task.restore(plan, manifest.id, _options(run, restore))
        return msgspec.structs.replace(planned, id=done, dry_run=False)


def _refuse_contradictions(run: Run, restore: str | None) -> None:
    if (restore is None) == (run[FROM_BACKUP] is None):
        raise UsageError(
            "give a restore, to use its map of offsets, or --backup, to use its offsets as they are",
            remedy="`logkeep receipts list` shows restores, `logkeep list` backups",
        )
    if restore is not None and (run[RENAME] or run[TOPICS] or run[EXCLUDE]):
        raise UsageError(
            "a restore already determines the topics and their names",
            remedy="leave --rename, --topics and --exclude out; --groups chooses groups",
        )

    if run[AT_TIME] is not None and run[ERASED_FROM] is not None:
        raise UsageError(
            "--at uses the offsets of that time, also those that were deleted later",
            remedy="leave --erased-from out; --backup names the backup with the archived __consumer_offsets",
        )


@dataclass(frozen=True)
class _PastState:
    """The groups at --at, and what the archive knows of that time."""

    found: GroupsAt
    groups: PastGroups

    def reported(self, planned: GroupsMoved) -> GroupsMoved:
        names = {row.group for row in planned.positions}
        current = (each for each in self.found.positions if each.position.erased_ms is None)
        return msgspec.structs.replace(
            planned,
            at_ms=self.found.at_ms,
            complete=interval_of(self.found.complete),
            unsure=sum(not each.sure and each.position.group in names for each in current),
        )


def _archived(run: Run, place: SourceRef, backup: str) -> ArchivedGroups:
    """Read in this process, before the target is asked."""
    return open_groups(run, place, backup, lambda _: InlineEngine())


def _groups_at(run: Run, place: SourceRef, view: KafkaBackupView) -> _PastState:
    question = GroupQuestion(run[RESTORED_GROUPS], run[AT_TIME])
    found = _archived(run, place, str(view.manifest.id)).positions(question)
    recorded = {g.name: g.kind for g in view.record.groups}
    positions = [each.position for each in found.positions]
    return _PastState(found, past_groups(positions, view.record.topics, {**recorded, **found.kinds}))


def _deleted_offsets(run: Run, place: SourceRef) -> Mapping[PositionKey, GroupPosition]:
    """Only offsets of groups that commit: a share group has no tombstones of offsets."""
    text = run[ERASED_FROM]
    found = _archived(run, place, text).positions(GroupQuestion()).positions if text is not None else ()
    return {
        PositionKey(p.group, p.topic, p.partition): GroupPosition(
            p.offset, p.leader_epoch, p.metadata, p.committed_ms, p.erased_ms
        )
        for each in found
        if not (p := each.position).share
    }


def _chosen_logs(run: Run, view: KafkaBackupView) -> SelectedLogs:
    configured = not run.settings.typed(TOPICS)
    choice = RestoreSelection(include=run[TOPICS], exclude=run[EXCLUDE], renames=run[RENAME], configured=configured)
    return select_logs(view.record, view.manifest.cut, choice)


def _plan_report(
    run: Run, place: SourceRef, backup: int, cluster: Cluster, plan: GroupsPlan, restore_id: int | None
) -> GroupsMoved:
    return GroupsMoved(
        source=place.source,
        id=None,
        backup=backup,
        restore=restore_id,
        cluster_id=cluster.known().cluster_id,
        groups=len(plan.groups),
        overwritten=sum(len(g.overwritten) for g in plan.groups),
        reread=plan.again,
        positions=rows_of(plan),
        untouched=plan.untouched,
        rollback=False,
        dry_run=True,
        all=run[ALL],
    )


def _confirm(run: Run, planned: GroupsMoved) -> bool:
    """Show the plan and ask. False when no question was needed."""
    asks = run.console.interactive and not run[YES]
    if asks:
        run.show(_text, planned)
    back = " back" if planned.rollback else ""
    run.confirm(f"set {plural(planned.groups, 'group')}{back} in cluster {planned.cluster_id}?")
    return asks


def _refuse_change(planned: GroupsMoved, now: GroupsMoved) -> None:
    if now.positions != planned.positions:
        raise CommitConflict("the groups changed during the confirmation; nothing was changed", subject=now.cluster_id)


def _options(run: Run, restore: str | None) -> dict[str, str]:
    groups: tuple[str, ...] = run[RESTORED_GROUPS]
    renames: tuple[str, ...] = run[RENAME]
    given = {
        "restore": restore or "",
        "backup": run[FROM_BACKUP] or "",
        "groups": " ".join(groups),
        "rename": " ".join(renames),
        "erased-from": run[ERASED_FROM] or "",
        "at": "" if run[AT_TIME] is None else str(run[AT_TIME]),
    }
    return {name: value for name, value in given.items() if value}


@verb(GROUPS_ROLLBACK, report=GroupsMoved, text=_text, exit_code=_code)
def rollback(run: Run, restore: str) -> GroupsMoved:
    place = chosen_source(run)
    restores = restores_place(run, place)
    chosen = choose_restore(restores, restore)
    with Cluster(client_settings(run)) as cluster:
        task = GroupsTask(restores, cluster, run.clock, run.token)
        plan, backup = task.plan_rollback(chosen.id)
        planned = GroupsMoved(
            source=place.source,
            id=None,
            backup=backup,
            restore=chosen.id,
            cluster_id=cluster.known().cluster_id,
            groups=len(plan.groups),
            overwritten=len(plan.moved_on),
            reread=0,
            positions=plan.rows,
            untouched=(),
            rollback=True,
            dry_run=True,
            all=run[ALL],
        )
        if run.dry_run:
            return planned
        if _confirm(run, planned):
            again, _ = task.plan_rollback(chosen.id)
            _refuse_change(planned, msgspec.structs.replace(planned, positions=again.rows))
            plan = again
        done = task.rollback(plan, backup, {"rollback": str(chosen.id)})
        return msgspec.structs.replace(planned, id=done, dry_run=False)
