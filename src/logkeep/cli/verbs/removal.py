"""`logkeep delete` and `logkeep prune`: by name, and by policy."""

import click
import msgspec

from logkeep.cli.look import Look, count, size
from logkeep.cli.opening import STORE_EXITS, chosen_source
from logkeep.cli.rows import health_of
from logkeep.cli.run import Run
from logkeep.cli.verb import verb
from logkeep.config.options import (
    DELETE_DAMAGED,
    GC_AGE,
    GC_INTERVAL,
    KEEP_COUNT,
    KEEP_DAILY,
    KEEP_DAYS,
    KEEP_HOURLY,
    KEEP_LAST,
    KEEP_MIN_COUNT,
    KEEP_MONTHLY,
    KEEP_TAG,
    KEEP_WEEKLY,
    KEEP_WITHIN,
    KEEP_YEARLY,
    LEASE_TTL,
    REPO,
    SOURCE,
)
from logkeep.model.ids import BackupId, choose_id
from logkeep.repository.garbage import GarbageRules, collect, plan_garbage, store_time
from logkeep.repository.holds import held_ids, reader_holds
from logkeep.repository.prune import Situation, plan_delete, plan_prune
from logkeep.repository.prune import delete as delete_backups
from logkeep.repository.retention import Policy
from logkeep.repository.writing import Writing, writing


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    keep: bool
    reasons: tuple[str, ...]


class RemovalReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was, or would be, deleted. Freed bytes follow in two phases: marked now, deleted by a later run."""

    source: str
    decisions: tuple[Decision, ...]
    deleted: tuple[int, ...]
    marked_objects: int
    swept_objects: int
    swept_bytes: int
    waiting_objects: int
    """Garbage that is not old enough yet."""
    denied: tuple[str, ...]
    """Objects that the store would not let us delete."""
    dry_run: bool


def _text(report: RemovalReport, look: Look) -> str:
    would = "would " if report.dry_run else ""
    rows = [(str(d.id), "keep" if d.keep else "remove", ", ".join(d.reasons)) for d in report.decisions]
    lines = [look.table(("ID", "VERDICT", "WHY"), rows, right="ID"), ""] if rows else []
    done, marked, swept = ("delete", "would mark", "would sweep") if report.dry_run else ("deleted", "marked", "swept")
    lines.append(f"{would}{done} {len(report.deleted)} of {len(report.decisions)} backups of {report.source}")
    lines.append(
        look.text(
            f"garbage: {marked} {count(report.marked_objects)}, {swept} {count(report.swept_objects)} objects"
            f" ({size(report.swept_bytes)}), {count(report.waiting_objects)} wait for their time"
        )
    )
    lines += [look.text(f"WARN  not allowed to delete {name}") for name in report.denied[:20]]
    return "\n".join(lines)


_OPTIONS = (REPO, SOURCE, GC_AGE, GC_INTERVAL, LEASE_TTL)
_EXITS = (2, 10, 50, *STORE_EXITS)


def _code(report: RemovalReport) -> int:
    return 2 if report.denied else 0


@verb(
    report=RemovalReport,
    text=_text,
    options=_OPTIONS,
    arguments=(click.Argument(["backups"], metavar="ID...", nargs=-1, required=True),),
    exits=_EXITS,
    exit_code=_code,
    changes=True,
    examples=("logkeep delete 20261114020000 --dry-run",),
)
def delete(run: Run, backups: tuple[str, ...]) -> RemovalReport:
    """Delete backups by id.

    The last good backup of a source, held backups and those that are being read are never deleted. What other backups
    still need stays; the rest becomes garbage and is removed in two phases.
    """
    place = chosen_source(run)
    with writing(place, "delete", run.clock, run.token, run[LEASE_TTL]) as session:
        situation = _situation(session)
        known = [BackupId(e.id) for e in session.folded.completed]
        chosen = [choose_id(text, known) for text in backups]
        wanted = {e.id for e in plan_delete(situation, chosen)}
        decisions = tuple(
            Decision(id=e.id, keep=e.id not in wanted, reasons=("named",) if e.id in wanted else ("not named",))
            for e in session.folded.completed
        )
        return _remove(run, session, decisions, "delete")


@verb(
    report=RemovalReport,
    text=_text,
    options=(
        *_OPTIONS,
        KEEP_LAST,
        KEEP_HOURLY,
        KEEP_DAILY,
        KEEP_WEEKLY,
        KEEP_MONTHLY,
        KEEP_YEARLY,
        KEEP_WITHIN,
        KEEP_TAG,
        KEEP_DAYS,
        KEEP_COUNT,
        KEEP_MIN_COUNT,
        DELETE_DAMAGED,
    ),
    exits=_EXITS,
    exit_code=_code,
    changes=True,
    examples=("logkeep prune --keep-daily 7 --keep-weekly 5 --keep-monthly 12 --dry-run",),
)
def prune(run: Run) -> RemovalReport:
    """Delete the backups that the policy does not keep, and free space.

    Rules add up: a backup stays when any of them wants it, and every verdict is printed with its reason. Without a
    rule nothing is deleted. The newest good backup always stays, and damaged ones never count as good. Space is freed
    in two phases: what is garbage is marked now and deleted by a later run.
    """
    place = chosen_source(run)
    with writing(place, "prune", run.clock, run.token, run[LEASE_TTL]) as session:
        verdicts = plan_prune(_situation(session), _policy(run), run.clock())
        decisions = tuple(Decision(id=v.id, keep=v.keep, reasons=v.reasons) for v in verdicts)
        return _remove(run, session, decisions, "policy")


def _policy(run: Run) -> Policy:
    return Policy(
        keep_last=run[KEEP_LAST],
        keep_hourly=run[KEEP_HOURLY],
        keep_daily=run[KEEP_DAILY],
        keep_weekly=run[KEEP_WEEKLY],
        keep_monthly=run[KEEP_MONTHLY],
        keep_yearly=run[KEEP_YEARLY],
        keep_within=run[KEEP_WITHIN],
        keep_tags=run[KEEP_TAG],
        keep_days=run[KEEP_DAYS],
        keep_count=run[KEEP_COUNT],
        keep_min_count=run[KEEP_MIN_COUNT],
        delete_damaged=run[DELETE_DAMAGED],
    )


def _situation(session: Writing) -> Situation:
    health = {BackupId(i): v for i, v in health_of(session.place).items()}
    readers = held_ids(reader_holds(session.place), store_time(session))
    return Situation(session.folded, health, readers)


def _remove(run: Run, session: Writing, decisions: tuple[Decision, ...], reason: str) -> RemovalReport:
    """Ask, delete, collect; on a dry run only look what would happen."""
    gone = tuple(d.id for d in decisions if not d.keep)
    rules = GarbageRules(run[GC_AGE], run[GC_INTERVAL])
    if gone:
        run.confirm(f"delete {len(gone)} of {len(decisions)} backups of {session.place.source}?")
    plan = plan_garbage(session, rules, gone if run.dry_run else ())
    report = RemovalReport(
        source=session.place.source, decisions=decisions, deleted=gone, marked_objects=len(plan.to_mark),
        swept_objects=len(plan.to_sweep), swept_bytes=plan.sweep_bytes, waiting_objects=plan.waiting, denied=(),
        dry_run=run.dry_run,
    )  # fmt: skip
    if run.dry_run:
        return report
    delete_backups(session, gone, reason)
    swept = collect(session, rules)
    left = plan_garbage(session, rules)
    return msgspec.structs.replace(
        report,
        marked_objects=swept.marked,
        swept_objects=swept.deleted,
        swept_bytes=swept.deleted_bytes,
        waiting_objects=left.waiting + len(left.to_mark) + len(left.to_sweep),
        denied=swept.denied,
    )
