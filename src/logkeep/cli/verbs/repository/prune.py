"""`logkeep delete` and `logkeep prune`: delete backups by id, and by retention policy."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import plural
from logkeep.cli.verbs.declarations import DELETE, PRUNE
from logkeep.cli.verbs.repository.removal_report import (
    BackupTrim,
    Decision,
    RemovalReport,
    TopicDecision,
    freed_later_of,
    removal_text,
)
from logkeep.cli.wiring import chosen_source
from logkeep.config.options import (
    DELETE_DAMAGED,
    GC_AGE,
    GC_INTERVAL,
    GRACE,
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
    LESS_THAN_SOURCE,
    SOURCE_RETENTION,
    TOPIC_RETENTION,
    YES,
)
from logkeep.errors import CommitConflict, UsageError
from logkeep.kafka.retention.rules import AS_THE_SOURCE, SourceRetention
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
from logkeep.repository.upkeep.prune import PruneSituation, fail_ongoing, ongoing_ids, plan_delete, plan_prune
from logkeep.repository.upkeep.prune import delete as delete_backups
from logkeep.repository.upkeep.retention import Policy
from logkeep.repository.upkeep.trim import MeasuredTrim, commit_trim, measure_trim

if TYPE_CHECKING:
    from logkeep.kafka.retention.plan import TopicTrim

Choose = Callable[[PruneSituation], tuple[Decision, ...]]
"""Decides which backups stay."""


@dataclass(frozen=True)
class PlannedTrim:
    """What is trimmed from backups that stay, by topic and by backup."""

    topics: "tuple[TopicTrim, ...]" = ()
    measured: MeasuredTrim = field(default_factory=MeasuredTrim)
    kept_by: Mapping[int, str] = field(default_factory=dict)

    @property
    def decisions(self) -> tuple[TopicDecision, ...]:
        return tuple(TopicDecision(**asdict(topic)) for topic in self.topics)

    @property
    def backups(self) -> tuple[BackupTrim, ...]:
        return tuple(BackupTrim(**msgspec.structs.asdict(each)) for each in self.measured.backups)


Trims = Callable[[PruneSituation, Collection[int]], PlannedTrim]
"""Decides what is trimmed from the backups that stay without these."""


def _code(report: RemovalReport) -> int:
    return 2 if report.denied else 0


@verb(DELETE, report=RemovalReport, text=removal_text, exit_code=_code)
def delete(run: Run, backups: tuple[str, ...]) -> RemovalReport:
    failed = _fail_ongoing(run, backups)
    backups = tuple(text for text in backups if text not in {str(i) for i in failed})

    def choose(situation: PruneSituation) -> tuple[Decision, ...]:
        known = [BackupId(e.id) for e in situation.folded.completed]
        wanted = {e.id for e in plan_delete(situation, [choose_id(text, known) for text in backups])}
        return tuple(
            Decision(id=i, keep=i not in wanted, reasons=("named" if i in wanted else "not named",)) for i in known
        )

    return msgspec.structs.replace(_remove(run, "delete", choose), failed=failed)


def _fail_ongoing(run: Run, backups: tuple[str, ...]) -> tuple[int, ...]:
    """Of the named backups those that processes of the source are copying now: they fail first."""
    place = chosen_source(run)
    found = [i for i in ongoing_ids(place, read_chain(place).last_id, run.clock()) if str(i) in backups]
    if not found or run.dry_run:
        return tuple(found)
    run.confirm(f"fail backup {', '.join(map(str, found))} of {place.source}, which is ongoing?")
    with writing(place, "delete", run.clock, run.token, run[LEASE_TTL]) as session:
        still = ongoing_ids(place, session.folded.last_id, run.clock())
        fail_ongoing(session, [i for i in found if i in still])
    return tuple(i for i in found if i in still)


@verb(PRUNE, report=RemovalReport, text=removal_text, exit_code=_code)
def prune(run: Run) -> RemovalReport:

    def choose(situation: PruneSituation) -> tuple[Decision, ...]:
        verdicts = plan_prune(situation, _policy(run), run.clock())
        return tuple(Decision(id=v.id, keep=v.keep, reasons=v.reasons) for v in verdicts)

    return _remove(run, "prune", choose, _plan_trims)


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


def _source_retention(run: Run) -> SourceRetention | None:
    """What the user said about topics; None: nothing."""
    rules = (*run[TOPIC_RETENTION], *((AS_THE_SOURCE,) if run[SOURCE_RETENTION] else ()))
    if not rules and run.settings.typed(LESS_THAN_SOURCE):
        raise UsageError("--less-than-source has no effect without --topic-retention")
    return SourceRetention(rules, run[GRACE], run[LESS_THAN_SOURCE]) if rules else None


def _plan_trims(run: Run, place: SourceRef) -> Trims | None:
    """How topics are trimmed; None if that is not wanted, or only by a file that serves other sources too."""
    wanted, now, trims = _source_retention(run), run.clock(), kind_of(place).trims
    if wanted is None:
        return None
    if trims is None:
        if run.settings.typed(SOURCE_RETENTION) or run.settings.typed(TOPIC_RETENTION):
            raise UsageError(
                "only backups of a Kafka cluster have topics",
                subject=f"source {place.source}",
                remedy="leave --source-retention and --topic-retention out",
            )
        return None

    def plan(situation: PruneSituation, removed: Collection[int]) -> PlannedTrim:
        kept, tags = situation.folded.without(removed), run[KEEP_TAG]
        kept_by = situation.kept_by(tags)
        found = trims(place, kept, wanted, situation.newest_good(), kept_by, now)
        return PlannedTrim(found.topics, measure_trim(place, kept, found.before, found.floors), kept_by)

    return plan


def _remove(
    run: Run, operation: str, choose: Choose, plan_trims: Callable[[Run, SourceRef], Trims | None] = lambda *_: None
) -> RemovalReport:
    """Show the plan and ask, then decide again under the lease and carry it out."""
    place = chosen_source(run)
    trims = plan_trims(run, place)
    if run[YES] and not run.dry_run:
        return _carry_out(run, place, operation, choose, trims, None)
    planned = _preview(run, place, choose, trims)
    if run.dry_run:
        return planned
    if planned.deleted or planned.trimmed:
        _show(run, planned)
        of = plural(len(planned.decisions), "backup")
        more = f" and trim {len(planned.trimmed)}" if planned.trimmed else ""
        run.confirm(f"delete {len(planned.deleted)} of {of} of {place.source}{more}?")
    return _carry_out(run, place, operation, choose, trims, planned)


def _show(run: Run, planned: RemovalReport) -> None:
    """Before the question; without a terminal there is no question."""
    if run.console.interactive:
        run.show(removal_text, planned)


def _preview(run: Run, place: SourceRef, choose: Choose, trims: Trims | None) -> RemovalReport:
    """The plan. Only reads, without a lease: it works on a read-only store."""
    folded, now, rules = read_chain(place), run.clock(), GarbageRules(run[GC_AGE], run[GC_INTERVAL])
    lease = read_lease(place)
    if lease is not None:
        check_head(folded, lease[0].head, layout.commits(place.source))
    situation = _situation(place, folded, now)
    decisions = choose(situation)
    removed = _removed_ids(decisions)
    trim = trims(situation, removed) if trims else PlannedTrim()
    plan = preview_garbage(place, folded, rules, now, lambda found: trim.measured.applied(found.without(removed)))
    swept = set(plan.to_sweep)
    return RemovalReport(
        source=place.source, decisions=decisions, deleted=removed, marked_objects=len(plan.to_mark),
        swept_objects=len(swept), swept_bytes=sum(o.size for o in swept),
        waiting_objects=plan.waiting + len(set(plan.to_mark) - swept), denied=(),
        unreachable=kind_of(place).unreachable_without(place, folded, removed) if removed else (), dry_run=True,
        freed_later=freed_later_of(plan.waits, rules), topics=trim.decisions, trimmed=trim.backups,
    )  # fmt: skip


def _carry_out(
    run: Run, place: SourceRef, operation: str, choose: Choose, trims: Trims | None, agreed: RemovalReport | None
) -> RemovalReport:
    rules = GarbageRules(run[GC_AGE], run[GC_INTERVAL])
    with writing(place, operation, run.clock, run.token, run[LEASE_TTL]) as session:
        situation = _situation(place, session.folded, store_time(session))
        decisions = choose(situation)
        removed = _removed_ids(decisions)
        trim = trims(situation, removed) if trims else PlannedTrim()
        if agreed is not None and (removed, trim.backups) != (agreed.deleted, agreed.trimmed):
            raise CommitConflict(
                "the backups changed during the confirmation; nothing was deleted", subject=place.source
            )
        unreachable = kind_of(place).unreachable_without(place, session.folded, removed) if removed else ()
        delete_backups(session, removed, operation)
        commit_trim(session, trim.measured, trim.kept_by, "retention of the source")
        swept = collect(session, rules)
        left = plan_garbage(session, rules)
    return RemovalReport(
        source=place.source, decisions=decisions, deleted=removed, marked_objects=swept.marked,
        swept_objects=swept.deleted, swept_bytes=swept.deleted_bytes,
        waiting_objects=left.waiting + len(left.to_mark) + len(left.to_sweep), denied=swept.denied,
        unreachable=unreachable, dry_run=False, freed_later=freed_later_of(left.waits, rules),
        topics=trim.decisions, trimmed=trim.backups,
    )  # fmt: skip


def _removed_ids(decisions: tuple[Decision, ...]) -> tuple[int, ...]:
    return tuple(d.id for d in decisions if not d.keep)
