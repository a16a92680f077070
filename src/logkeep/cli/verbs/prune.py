"""`logkeep delete` and `logkeep prune`: delete backups by id, and by retention policy."""

from collections.abc import Callable
from datetime import datetime

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import plural
from logkeep.cli.verbs.declarations import DELETE, PRUNE
from logkeep.cli.verbs.removal_report import Decision, RemovalReport, freed_later_of, removal_text
from logkeep.cli.wiring import chosen_source
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
    YES,
)
from logkeep.errors import CommitConflict
from logkeep.kinds import kind_of
from logkeep.model.ids import BackupId, choose_id
from logkeep.reports.backups import health_of
from logkeep.repository.backups.holds import held_ids, reader_holds
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.lease import check_head, read_lease
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import GarbageRules, collect, plan_garbage, preview_garbage, store_time
from logkeep.repository.upkeep.prune import PruneSituation, plan_delete, plan_prune
from logkeep.repository.upkeep.prune import delete as delete_backups
from logkeep.repository.upkeep.retention import Policy

Choose = Callable[[PruneSituation], tuple[Decision, ...]]
"""Decides which backups stay."""


def _code(report: RemovalReport) -> int:
    return 2 if report.denied else 0


@verb(DELETE, report=RemovalReport, text=removal_text, exit_code=_code)
def delete(run: Run, backups: tuple[str, ...]) -> RemovalReport:

    def choose(situation: PruneSituation) -> tuple[Decision, ...]:
        known = [BackupId(e.id) for e in situation.folded.completed]
        wanted = {e.id for e in plan_delete(situation, [choose_id(text, known) for text in backups])}
        return tuple(
            Decision(id=i, keep=i not in wanted, reasons=("named" if i in wanted else "not named",)) for i in known
        )

    return _remove(run, "delete", choose)


@verb(PRUNE, report=RemovalReport, text=removal_text, exit_code=_code)
def prune(run: Run) -> RemovalReport:

    def choose(situation: PruneSituation) -> tuple[Decision, ...]:
        verdicts = plan_prune(situation, _policy(run), run.clock())
        return tuple(Decision(id=v.id, keep=v.keep, reasons=v.reasons) for v in verdicts)

    return _remove(run, "prune", choose)


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


def _situation(place: SourceRef, folded: Folded, store_now: datetime) -> PruneSituation:
    health = {BackupId(i): v for i, v in health_of(place).items()}
    return PruneSituation(folded, health, held_ids(reader_holds(place), store_now))


def _remove(run: Run, operation: str, choose: Choose) -> RemovalReport:
    """Show the plan and ask, then decide again under the lease and carry it out."""
    place = chosen_source(run)
    if run[YES] and not run.dry_run:
        return _carry_out(run, place, operation, choose, None)
    planned = _preview(run, place, choose)
    if run.dry_run:
        return planned
    if planned.deleted:
        _show(run, planned)
        of = plural(len(planned.decisions), "backup")
        run.confirm(f"delete {len(planned.deleted)} of {of} of {place.source}?")
    return _carry_out(run, place, operation, choose, planned.deleted)


def _show(run: Run, planned: RemovalReport) -> None:
    """Before the question; without a terminal there is no question."""
    if run.console.interactive:
        run.show(removal_text, planned)


def _preview(run: Run, place: SourceRef, choose: Choose) -> RemovalReport:
    """The plan. Only reads, without a lease: it works on a read-only store."""
    folded, now, rules = read_chain(place), run.clock(), GarbageRules(run[GC_AGE], run[GC_INTERVAL])
    lease = read_lease(place)
    if lease is not None:
        check_head(folded, lease[0].head, layout.commits(place.source))
    decisions = choose(_situation(place, folded, now))
    removed = _removed_ids(decisions)
    plan = preview_garbage(place, folded, rules, now, removed)
    swept = set(plan.to_sweep)
    return RemovalReport(
        source=place.source, decisions=decisions, deleted=removed, marked_objects=len(plan.to_mark),
        swept_objects=len(swept), swept_bytes=sum(o.size for o in swept),
        waiting_objects=plan.waiting + len(set(plan.to_mark) - swept), denied=(),
        unreachable=kind_of(place).unreachable_without(place, folded, removed) if removed else (), dry_run=True,
        freed_later=freed_later_of(plan.waits, rules),
    )  # fmt: skip


def _carry_out(
    run: Run, place: SourceRef, operation: str, choose: Choose, agreed: tuple[int, ...] | None
) -> RemovalReport:
    rules = GarbageRules(run[GC_AGE], run[GC_INTERVAL])
    with writing(place, operation, run.clock, run.token, run[LEASE_TTL]) as session:
        decisions = choose(_situation(place, session.folded, store_time(session)))
        removed = _removed_ids(decisions)
        if agreed is not None and removed != agreed:
            raise CommitConflict(
                "the backups changed during the confirmation; nothing was deleted", subject=place.source
            )
        unreachable = kind_of(place).unreachable_without(place, session.folded, removed) if removed else ()
        delete_backups(session, removed, operation)
        swept = collect(session, rules)
        left = plan_garbage(session, rules)
    return RemovalReport(
        source=place.source, decisions=decisions, deleted=removed, marked_objects=swept.marked,
        swept_objects=swept.deleted, swept_bytes=swept.deleted_bytes,
        waiting_objects=left.waiting + len(left.to_mark) + len(left.to_sweep), denied=swept.denied,
        unreachable=unreachable, dry_run=False, freed_later=freed_later_of(left.waits, rules),
    )  # fmt: skip


def _removed_ids(decisions: tuple[Decision, ...]) -> tuple[int, ...]:
    return tuple(d.id for d in decisions if not d.keep)
