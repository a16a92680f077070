"""`logkeep kafka groups restore` and `rollback`: positions of groups alone, again, or undone."""

from collections.abc import Mapping

import click
import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural
from logkeep.cli.verbs.kafka.backup import client_settings
from logkeep.cli.verbs.kafka.groups import archived_logs
from logkeep.cli.verbs.restore_text import group_lines
from logkeep.cli.wiring import STORE_EXITS, chosen_source, restores_place
from logkeep.config.options import (
    ALL,
    BOOTSTRAP_SERVERS,
    COMMAND_CONFIG,
    ERASED_FROM,
    EXCLUDE,
    FROM_BACKUP,
    RENAME,
    REPO,
    RESTORED_GROUPS,
    SOURCE,
    STATE_DIR,
    TOPIC_SELECTION,
    TOPICS,
    YES,
)
from logkeep.errors import CommitConflict, Damaged, UsageError
from logkeep.formats.kafka.offsets_topic import PositionKey
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.record.documents import ROLE, ClusterRecord
from logkeep.kafka.record.group_positions import GroupPosition, archived_positions
from logkeep.kafka.restore.groups_run import GroupsTask
from logkeep.kafka.restore.plan.group_offsets import Routes
from logkeep.kafka.restore.plan.groups import GroupsPlan, rows_of
from logkeep.kafka.restore.plan.selection import RestoreSelection, choose
from logkeep.reports.backups import read_source
from logkeep.reports.restores import choose_restore
from logkeep.repository.backups.attachments import read_attachment
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import RestoredGroup


class GroupsMoved(msgspec.Struct, frozen=True, kw_only=True):
    """What was, or would be, set. A position without an offset was left out, or is removed; `detail` says why."""

    source: str
    id: int | None
    """Of this run, for `kafka groups rollback`; null on a dry run."""
    backup: int
    restore: int | None
    """The restore whose map was used, or that is undone."""
    cluster_id: str
    groups: int
    overwritten: int
    """Positions that stood elsewhere before."""
    reread: int
    """Records that groups will read a second time."""
    positions: tuple[RestoredGroup, ...]
    untouched: tuple[str, ...]
    """Groups that were meant and have no position in anything that came back."""
    rollback: bool
    dry_run: bool
    all: bool


def _text(report: GroupsMoved, look: TerminalStyle) -> str:
    lines = (
        group_lines(report.positions, look, every=report.all, hint="--all shows every one") if report.positions else []
    )
    for name in report.untouched:
        lines.append(look.line(f"NOTE  group {name} has no position in what was restored; it is left alone"))
    would = "would put" if report.dry_run else f"restore {report.id}: put"
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
    """2 when a group is not exactly where it was, or there was none to put anywhere, so that somebody looks."""
    return 0 if report.groups and all(row.exact for row in report.positions) else 2


_CLUSTER = (REPO, SOURCE, STATE_DIR, BOOTSTRAP_SERVERS, COMMAND_CONFIG)
_EXITS = (10, 30, 31, 50, *STORE_EXITS)


@verb(
    report=GroupsMoved,
    text=_text,
    options=(*_CLUSTER, FROM_BACKUP, RESTORED_GROUPS, *TOPIC_SELECTION, RENAME, ERASED_FROM, ALL),
    arguments=(click.Argument(["restore"], metavar="[RESTORE-ID]", required=False),),
    exits=(2, *_EXITS),
    exit_code=_code,
    changes=True,
    examples=(
        "logkeep kafka groups restore latest --groups 'billing.*' --dry-run",
        "logkeep kafka groups restore --backup latest --bootstrap-servers broker:9092",
    ),
)
def restore(run: Run, restore: str | None) -> GroupsMoved:
    """Put groups where they stood, in the cluster that their records were restored to.

    With RESTORE-ID positions are translated by the exact map of that restore. With --backup they are taken as they
    are, for records that stand at their own offsets, and kept inside of the logs that are there. A group goes on with
    the record that it would have read next; where that is not possible it is said why, and how many records are read
    again. Groups that are being read by are refused. What stood there before is kept: `kafka groups rollback`.
    """
    _refuse_contradictions(run, restore)
    place = chosen_source(run)
    restores = restores_place(run, place, create=not run.dry_run)
    restore_id = choose_restore(restores, restore) if restore is not None else None
    manifest, record = _backup(run, place, str(restore_id.backup) if restore_id else run[FROM_BACKUP] or "")
    recovered = _recovered(run, place)
    with Cluster(client_settings(run)) as cluster:
        task = GroupsTask(restores, cluster, run.clock, run.token)
        routes = task.routes_of_restore(restore_id.id) if restore_id else _as_they_are(run, task, record, manifest)

        def decide() -> tuple[GroupsPlan, GroupsMoved]:
            plan = task.plan(record, routes, run[RESTORED_GROUPS], recovered)
            return plan, _foreseen(run, place, manifest.id, cluster, plan, restore_id.id if restore_id else None)

        plan, foreseen = decide()
        if run.dry_run or not plan.groups:
            return foreseen
        if _asked(run, foreseen):
            plan, now = decide()
            _refuse_change(foreseen, now)
        done = task.restore(plan, manifest.id, _options(run, restore))
        return msgspec.structs.replace(foreseen, id=done, dry_run=False)


def _refuse_contradictions(run: Run, restore: str | None) -> None:
    if (restore is None) == (run[FROM_BACKUP] is None):
        raise UsageError(
            "name a restore, whose map is used, or a backup with --backup, whose offsets are taken as they are",
            remedy="`logkeep receipts list` shows restores, `logkeep list` backups",
        )
    if restore is not None and (run[RENAME] or run[TOPICS] or run[EXCLUDE]):
        raise UsageError(
            "a restore knows which topics it brought back, and under which names",
            remedy="leave --rename, --topics and --exclude out; --groups chooses groups",
        )


def _backup(run: Run, place: SourceRef, text: str) -> tuple[Manifest, ClusterRecord]:
    manifest = read_manifest(place, read_source(place, run.clock()).completed(text))
    record = read_attachment(place, manifest, ROLE, ClusterRecord) if manifest.kind == "kafka" else None
    if record is None:
        raise Damaged("the backup has no record of a cluster", subject=f"backup {manifest.id}")
    return manifest, record


def _recovered(run: Run, place: SourceRef) -> Mapping[PositionKey, GroupPosition]:
    text = run[ERASED_FROM]
    return archived_positions(place, archived_logs(place, run, text)[1].values()) if text is not None else {}


def _as_they_are(run: Run, task: GroupsTask, record: ClusterRecord, manifest: Manifest) -> Routes:
    standing = not run.settings.typed(TOPICS)
    choice = RestoreSelection(include=run[TOPICS], exclude=run[EXCLUDE], renames=run[RENAME], standing=standing)
    return task.routes_as_they_are(choose(record, manifest.cut, choice))


def _foreseen(
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


def _asked(run: Run, foreseen: GroupsMoved) -> bool:
    """Show what is going to happen and ask. False when nobody had to be asked."""
    asks = run.console.interactive and not run[YES]
    if asks:
        run.console.note(_text(foreseen, run.console.err_look))
    back = " back" if foreseen.rollback else ""
    run.confirm(f"put {plural(foreseen.groups, 'group')}{back} in cluster {foreseen.cluster_id}?")
    return asks


def _refuse_change(foreseen: GroupsMoved, now: GroupsMoved) -> None:
    if now.positions != foreseen.positions:
        raise CommitConflict("the groups changed while you were asked; nothing was changed", subject=now.cluster_id)


def _options(run: Run, restore: str | None) -> dict[str, str]:
    groups: tuple[str, ...] = run[RESTORED_GROUPS]
    renames: tuple[str, ...] = run[RENAME]
    given = {
        "restore": restore or "",
        "backup": run[FROM_BACKUP] or "",
        "groups": " ".join(groups),
        "rename": " ".join(renames),
        "erased-from": run[ERASED_FROM] or "",
    }
    return {name: value for name, value in given.items() if value}


@verb(
    report=GroupsMoved,
    text=_text,
    options=(*_CLUSTER, ALL),
    arguments=(click.Argument(["restore"], metavar="RESTORE-ID"),),
    exits=(2, *_EXITS),
    exit_code=_code,
    changes=True,
    examples=("logkeep kafka groups rollback latest --dry-run", "logkeep kafka groups rollback 20261116021500 -y"),
)
def rollback(run: Run, restore: str) -> GroupsMoved:
    """Put groups back to where they stood before a restore moved them.

    Positions that were overwritten are set again, those that did not exist are removed, and so are groups that have
    nothing else. Groups that are being read by are refused. A rollback can be rolled back.
    """
    place = chosen_source(run)
    restores = restores_place(run, place)
    chosen = choose_restore(restores, restore)
    with Cluster(client_settings(run)) as cluster:
        task = GroupsTask(restores, cluster, run.clock, run.token)
        plan, backup = task.plan_rollback(chosen.id)
        foreseen = GroupsMoved(
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
            return foreseen
        if _asked(run, foreseen):
            again, _ = task.plan_rollback(chosen.id)
            _refuse_change(foreseen, msgspec.structs.replace(foreseen, positions=again.rows))
            plan = again
        done = task.rollback(plan, backup, {"rollback": str(chosen.id)})
        return msgspec.structs.replace(foreseen, id=done, dry_run=False)
