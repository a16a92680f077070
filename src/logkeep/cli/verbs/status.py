"""`logkeep status`: can I sleep? The newest good backup, its age, what runs, what was left behind."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from logkeep.cli.look import Look, duration
from logkeep.cli.metrics import Sample, sample
from logkeep.cli.opening import STORE_EXITS, chosen_sources
from logkeep.cli.rows import backup_row, health_of, seen
from logkeep.cli.run import Outcome, Run
from logkeep.cli.verb import verb
from logkeep.config.options import MAX_AGE, REPO, SOURCE
from logkeep.errors import Damaged, FormatTooNew, UnsafeName
from logkeep.repository.chain import Place
from logkeep.repository.lease import Standing
from logkeep.repository.states import Completed, Failed

_CLOCK_TOLERANCE = timedelta(minutes=3)


class SourceStatus(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    newest_good: int | None
    newest_good_committed: str | None
    age_seconds: float | None
    objective_seconds: float | None
    breached: bool
    """The newest good backup is older than the objective, or there is none."""
    backups: int
    damaged: tuple[int, ...]
    interrupted: tuple[int, ...]
    """Backups whose owner is gone: the next run records them as failed, or resumes them."""
    running: str | None
    last_verified: str | None
    warnings: tuple[str, ...]


class StatusReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    sources: tuple[SourceStatus, ...]
    breached: bool
    """Any source breaches the objective, or there is an objective and no source at all."""


def _text(report: StatusReport, look: Look) -> str:
    if not report.sources:
        state = f"{look.state('FAIL')}  " if report.breached else ""
        return look.text(f"{state}no sources in {report.url}")
    return "\n\n".join(_source_text(one, look) for one in report.sources)


def _source_text(one: SourceStatus, look: Look) -> str:
    state = look.state("FAIL") if one.breached else look.state("WARN") if _odd(one) else look.state("OK")
    newest = "none"
    if one.newest_good is not None and one.newest_good_committed and one.age_seconds is not None:
        when = look.moment(datetime.fromisoformat(one.newest_good_committed))
        newest = f"{one.newest_good}, {when}, {duration(one.age_seconds)} ago"
    facts = {
        "newest good backup": newest,
        "objective": duration(one.objective_seconds) if one.objective_seconds is not None else "none (--max-age)",
        "backups": str(one.backups),
        "damaged": ", ".join(map(str, one.damaged)) or "none known",
        "interrupted": ", ".join(map(str, one.interrupted)) or "none",
        "running": one.running or "nothing",
        "last verified": _verified(one.last_verified, look),
    }
    return "\n".join([f"{state}  {one.source}", look.pairs(facts), *(look.line(f"WARN  {w}") for w in one.warnings)])


def _verified(text: str | None, look: Look) -> str:
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


def _metrics(outcome: Outcome[StatusReport]) -> Iterator[Sample]:
    """The age of what is there, told by whoever looks: it does not depend on the runs that may have stopped."""
    for one in outcome.report.sources if outcome.report else ():
        if one.newest_good_committed is not None:
            ended = datetime.fromisoformat(one.newest_good_committed).timestamp()
            yield sample("logkeep_backup_last_success_timestamp_seconds", ended, source=one.source)


@verb(
    report=StatusReport,
    text=_text,
    options=(REPO, SOURCE, MAX_AGE),
    exits=(2, 10, 60, *STORE_EXITS),
    exit_code=_exit_code,
    metrics=_metrics,
    examples=("logkeep status --max-age 26h",),
)
def status(run: Run) -> StatusReport:
    """Tell whether each source has a good backup that is young enough, what runs and what was left behind.

    With --max-age an older newest good backup, or none, or a repository without any source, ends with 60: the code to
    page on.
    """
    places = list(chosen_sources(run))
    sources = tuple(_status_or_trouble(place, run.clock(), run[MAX_AGE]) for place in places)
    return StatusReport(
        url=places[0].store.url if places else run.repo(),
        sources=sources,
        breached=any(one.breached for one in sources) or (run[MAX_AGE] is not None and not sources),
    )


def _status_or_trouble(place: Place, now: datetime, objective: timedelta | None) -> SourceStatus:
    """A source that cannot be read must not hide the others, and has no good backup that anybody could vouch for."""
    try:
        return _status(place, now, objective)
    except (Damaged, UnsafeName, FormatTooNew) as error:
        return SourceStatus(
            source=place.source,
            newest_good=None,
            newest_good_committed=None,
            age_seconds=None,
            objective_seconds=objective.total_seconds() if objective is not None else None,
            breached=objective is not None,
            backups=0,
            damaged=(),
            interrupted=(),
            running=None,
            last_verified=None,
            warnings=(f"{error}; {error.remedy}",),
        )


def _status(place: Place, now: datetime, objective: timedelta | None) -> SourceStatus:
    view, health = seen(place, now), health_of(place)
    states = view.states()
    rows = [backup_row(place.source, s, health) for s in states if isinstance(s, Completed)]
    good = [r for r in rows if r.health != "damaged" and r.committed]
    newest = good[-1] if good else None
    age = now - datetime.fromisoformat(newest.committed) if newest and newest.committed else None
    held = view.lease if view.lease_standing is Standing.HELD else None
    return SourceStatus(
        source=place.source,
        newest_good=newest.id if newest else None,
        newest_good_committed=newest.committed if newest else None,
        age_seconds=age.total_seconds() if age is not None else None,
        objective_seconds=objective.total_seconds() if objective is not None else None,
        breached=objective is not None and (age is None or age > objective),
        backups=len(rows),
        damaged=tuple(r.id for r in rows if r.health == "damaged"),
        interrupted=tuple(s.id for s in states if isinstance(s, Failed) and not s.recorded),
        running=f"{held.operation} by {held.owner}, since {held.acquired}" if held else None,
        last_verified=max((r.verified for r in rows if r.verified), default=None),
        warnings=(*view.warnings, *_future(newest.id if newest else None, age)),
    )


def _future(newest: int | None, age: timedelta | None) -> tuple[str, ...]:
    if age is None or age > -_CLOCK_TOLERANCE:
        return ()
    return (f"backup {newest} is dated in the future: the clock of this machine or of the one that took it is wrong",)
