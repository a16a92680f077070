"""`logkeep status`: can I sleep? The newest good backup, its age, what it lacks, what runs, what was left behind."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from logkeep.cli.frame.execute import CommandOutcome, Run
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, count, duration
from logkeep.cli.verbs.backup_rows import backup_row, health_of, seen
from logkeep.cli.verbs.last_restore import LastRestore, last_of_all, last_of_each, restore_line
from logkeep.cli.wiring import STORE_EXITS, chosen_sources
from logkeep.config.options import MAX_AGE, MAX_LAG, REPO, SOURCE, STATE_DIR
from logkeep.errors import Damaged, FormatTooNew, UnsafeName
from logkeep.repository.backups.states import Completed, Failed
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.freshness import Freshness, read_freshness
from logkeep.repository.chain.lease import LeaseState

_CLOCK_TOLERANCE = timedelta(minutes=3)


@dataclass(frozen=True)
class Objectives:
    max_age: timedelta | None = None
    max_lag: int | None = None

    @property
    def any(self) -> bool:
        return self.max_age is not None or self.max_lag is not None

    def breached(self, age: timedelta | None, lag_offsets: int | None) -> bool:
        """What is not known breaks an objective: nobody can vouch for it."""
        unknown = age is None or age < -_CLOCK_TOLERANCE
        too_old = self.max_age is not None and (unknown or (age is not None and age > self.max_age))
        return too_old or (self.max_lag is not None and (lag_offsets is None or lag_offsets > self.max_lag))


class SourceStatus(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    newest_good: int | None
    newest_good_committed: str | None
    age_seconds: float | None
    """Since the newest good backup was committed, or since a run that follows the source saw that it lacks nothing."""
    objective_seconds: float | None
    breached: bool
    """The newest good backup is older than the objective or lacks more than it, or there is none."""
    backups: int
    damaged: tuple[int, ...]
    interrupted: tuple[int, ...]
    """Backups whose owner is gone: the next run records them as failed, or resumes them."""
    running: str | None
    last_verified: str | None
    warnings: tuple[str, ...]
    last_look: str | None = None
    """When a run that follows the source last compared it with the newest good backup."""
    lag_offsets: int | None = None
    """Offsets that the source had beyond the newest good backup at that look; null when no look at it is known."""
    objective_lag_offsets: int | None = None
    last_restore: LastRestore | None = None
    """The restore or drill of any backup that ended last."""


class StatusReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    sources: tuple[SourceStatus, ...]
    breached: bool
    """Any source breaches the objective, or there is an objective and no source at all."""


def _text(report: StatusReport, look: TerminalStyle) -> str:
    if not report.sources:
        state = f"{look.state('FAIL')}  " if report.breached else ""
        return look.text(f"{state}no sources in {report.url}")
    return "\n\n".join(_source_text(one, look) for one in report.sources)


def _source_text(one: SourceStatus, look: TerminalStyle) -> str:
    state = look.state("FAIL") if one.breached else look.state("WARN") if _odd(one) else look.state("OK")
    newest = "none"
    if one.newest_good is not None and one.newest_good_committed and one.age_seconds is not None:
        when = look.moment(datetime.fromisoformat(one.newest_good_committed))
        committed = f"{one.newest_good}, {when}"
        newest = f"{committed}, {duration(one.age_seconds)} ago" if one.last_look is None else committed
    facts = {
        "newest good backup": newest,
        **_look_facts(one, look),
        "objective": duration(one.objective_seconds) if one.objective_seconds is not None else "none (--max-age)",
        **(
            {"most lag": f"{count(one.objective_lag_offsets)} offsets"} if one.objective_lag_offsets is not None else {}
        ),
        "backups": str(one.backups),
        "damaged": ", ".join(map(str, one.damaged)) or "none known",
        "interrupted": ", ".join(map(str, one.interrupted)) or "none",
        "running": one.running or "nothing",
        "last verified": _verified(one.last_verified, look),
        "last restore": restore_line(one.last_restore, look),
    }
    return "\n".join([f"{state}  {one.source}", look.pairs(facts), *(look.line(f"WARN  {w}") for w in one.warnings)])


def _look_facts(one: SourceStatus, look: TerminalStyle) -> dict[str, str]:
    if one.last_look is None and one.objective_lag_offsets is not None:
        return {"last look": "none known (a run with --follow makes them)"}
    if one.last_look is None or one.age_seconds is None:
        return {}
    when = look.moment(datetime.fromisoformat(one.last_look))
    lag = "not known any more" if one.lag_offsets is None else f"{count(one.lag_offsets)} offsets"
    return {"last look": f"{when}, {duration(one.age_seconds)} ago, lag {lag}"}


def _verified(text: str | None, look: TerminalStyle) -> str:
    """`2026-11-15 10:30:00 +0100, level files`"""
    if text is None:
        return "never"
    when, level = text.split()
    moment = datetime.strptime(when, "%Y%m%dT%H%M%S%fZ").replace(tzinfo=UTC)
    return f"{look.moment(moment)}, level {level}"


def _odd(one: SourceStatus) -> bool:
    return bool(one.damaged or one.interrupted or one.warnings)


def _exit_code(report: StatusReport) -> int:
    if report.breached:
        return 60
    return 2 if any(_odd(one) for one in report.sources) else 0


def _metrics(outcome: CommandOutcome[StatusReport]) -> Iterator[MetricSample]:
    """The age of what is there, told by whoever looks: it does not depend on the runs that may have stopped."""
    for one in outcome.report.sources if outcome.report else ():
        if one.newest_good_committed is not None:
            ended = datetime.fromisoformat(one.newest_good_committed).timestamp()
            if one.last_look is not None:
                ended = datetime.fromisoformat(one.last_look).timestamp()
            yield sample("logkeep_backup_last_success_timestamp_seconds", ended, source=one.source)
        if one.lag_offsets is not None:
            yield sample("logkeep_backup_lag_offsets", one.lag_offsets, source=one.source)


@verb(
    report=StatusReport,
    text=_text,
    options=(REPO, SOURCE, STATE_DIR, MAX_AGE, MAX_LAG),
    exits=(2, 10, 60, *STORE_EXITS),
    exit_code=_exit_code,
    metrics=_metrics,
    examples=("logkeep status --max-age 26h", "logkeep status --max-age 5m --max-lag 100000"),
)
def status(run: Run) -> StatusReport:
    """Tell whether each source has a good backup that is young enough, what runs and what was left behind.

    With --max-age an older newest good backup, or none, or a repository without any source, ends with 60: the code to
    page on. The age counts from the last look of a run that follows the source (`backup --follow`) when that
    found nothing newer. With --max-lag a last look that lacked more offsets, or none, ends with 60 too.
    """
    places, objectives = list(chosen_sources(run)), Objectives(run[MAX_AGE], run[MAX_LAG])
    sources = tuple(_status_or_trouble(run, place, objectives) for place in places)
    return StatusReport(
        url=places[0].store.url if places else run.repo(),
        sources=sources,
        breached=any(one.breached for one in sources) or (objectives.any and not sources),
    )


def _status_or_trouble(run: Run, place: SourceRef, objectives: Objectives) -> SourceStatus:
    """A source that cannot be read must not hide the others, and has no good backup that anybody could vouch for."""
    try:
        found = _status(place, run.clock(), objectives)
        return msgspec.structs.replace(found, last_restore=last_of_all(last_of_each(run, place).values()))
    except (Damaged, UnsafeName, FormatTooNew) as error:
        return SourceStatus(
            source=place.source,
            newest_good=None,
            newest_good_committed=None,
            age_seconds=None,
            objective_seconds=_seconds(objectives.max_age),
            breached=objectives.any,
            backups=0,
            damaged=(),
            interrupted=(),
            running=None,
            last_verified=None,
            warnings=(f"{error}; {error.remedy}",),
            objective_lag_offsets=objectives.max_lag,
        )


def _seconds(span: timedelta | None) -> float | None:
    return span.total_seconds() if span is not None else None


def _status(place: SourceRef, now: datetime, objectives: Objectives) -> SourceStatus:
    view, health = seen(place, now), health_of(place)
    states = view.states()
    rows = [backup_row(place.source, s, health) for s in states if isinstance(s, Completed)]
    good = [r for r in rows if r.health != "damaged" and r.committed]
    newest = good[-1] if good else None
    look = last_look(read_freshness(place), newest.id if newest else None, now)
    since = look.looked if look else newest.committed if newest else None
    age = now - datetime.fromisoformat(since) if since else None
    lag = look.lag_offsets if look and age is not None and age.total_seconds() <= look.next_within_s else None
    held = view.lease if view.lease_state is LeaseState.HELD else None
    return SourceStatus(
        source=place.source,
        newest_good=newest.id if newest else None,
        newest_good_committed=newest.committed if newest else None,
        age_seconds=_seconds(age),
        objective_seconds=_seconds(objectives.max_age),
        breached=objectives.breached(age, lag),
        backups=len(rows),
        damaged=tuple(r.id for r in rows if r.health == "damaged"),
        interrupted=tuple(s.id for s in states if isinstance(s, Failed) and not s.recorded),
        running=f"{held.operation} by {held.owner}, since {held.acquired}" if held else None,
        last_verified=max((r.verified for r in rows if r.verified), default=None),
        warnings=(*view.warnings, *_future(newest.id if newest else None, age), *_stale(look, lag)),
        last_look=look.looked if look else None,
        lag_offsets=lag,
        objective_lag_offsets=objectives.max_lag,
    )


def last_look(found: Freshness | None, newest_good: int | None, now: datetime) -> Freshness | None:
    """The look, if it was at the newest good backup. One from the future tells of a wrong clock and of nothing else."""
    if found is None or found.backup != newest_good:
        return None
    return found if datetime.fromisoformat(found.looked) <= now + _CLOCK_TOLERANCE else None


def _stale(look: Freshness | None, lag: int | None) -> tuple[str, ...]:
    if look is None or lag is not None:
        return ()
    return ("the run that followed this source has not looked at it for long: its lag is not known",)


def _future(newest: int | None, age: timedelta | None) -> tuple[str, ...]:
    if age is None or age > -_CLOCK_TOLERANCE:
        return ()
    return (f"backup {newest} is dated in the future: the clock of this machine or of the one that took it is wrong",)
