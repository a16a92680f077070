"""`logkeep status`: the newest good backup of each source, its age and lag, what runs, what was interrupted."""

from collections.abc import Iterator
from datetime import datetime

from logkeep.cli.frame.execute import CommandOutcome, Run
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, amount, duration, plural
from logkeep.cli.verbs.restore_text import restore_line
from logkeep.cli.wiring import STORE_EXITS, chosen_sources, restores_place
from logkeep.config.options import MAX_AGE, MAX_LAG, MAX_STANDBY_AGE, RECEIPT_OPTIONS
from logkeep.reports.status import Objectives, SourceStatus, StatusReport, status_report
from logkeep.reports.stored_size import StoredSize


def status_text(report: StatusReport, look: TerminalStyle) -> str:
    if not report.sources:
        state = f"{look.state('FAIL')}  " if report.breached else ""
        return look.text(f"{state}no sources in {report.url}")
    several = len(report.sources) > 1
    total = [f"repository\n{look.pairs(_size_facts(report.size, look))}"] if several else []
    return "\n\n".join([*(_source_text(one, look) for one in report.sources), *total])


def _source_text(one: SourceStatus, look: TerminalStyle) -> str:
    state = look.state("FAIL") if one.breached else look.state("WARN") if _needs_attention(one) else look.state("OK")
    newest = "none"
    if one.newest_good is not None and one.newest_good_committed and one.age_seconds is not None:
        when = look.moment(datetime.fromisoformat(one.newest_good_committed))
        committed = f"{one.newest_good}, {when}"
        newest = f"{committed}, {duration(one.age_seconds)} ago" if one.last_look is None else committed
    facts = {
        "newest good backup": newest,
        **_check_facts(one, look),
        "objective": duration(one.objective_seconds) if one.objective_seconds is not None else "none (--max-age)",
        **({"most lag": plural(one.objective_lag_offsets, "offset")} if one.objective_lag_offsets is not None else {}),
        "backups": str(one.backups),
        "damaged": ", ".join(map(str, one.damaged)) or "none known",
        "interrupted": ", ".join(map(str, one.interrupted)) or "none",
        "running": one.running or "nothing",
        **_instance_facts(one),
        **_deletion_facts(one),
        "last verified": _verified_text(one, look),
        "last restore": restore_line(one.last_restore, look),
        **_size_facts(one.size, look),
    }
    return "\n".join([f"{state}  {one.source}", look.pairs(facts), *(look.line(f"WARN  {w}") for w in one.warnings)])


def _size_facts(found: StoredSize | None, look: TerminalStyle) -> dict[str, str]:
    if found is None:
        return {}
    stored = amount(found.objects, found.stored_bytes)
    garbage = "none marked"
    if found.garbage_marked_at:
        since = look.moment(datetime.fromisoformat(found.garbage_marked_at))
        marked = amount(found.garbage_objects, found.garbage_bytes)
        garbage = f"{marked}, marked since {since}; `logkeep prune` deletes it"
    return {"stored": stored if found.complete else f"at least {stored}", "garbage": garbage}


def _check_facts(one: SourceStatus, look: TerminalStyle) -> dict[str, str]:
    if one.last_look is None and one.objective_lag_offsets is not None:
        return {"last checked": "none (only a run with --follow reports it)"}
    if one.last_look is None or one.age_seconds is None:
        return {}
    when = look.moment(datetime.fromisoformat(one.last_look))
    lag = "no longer known" if one.lag_offsets is None else plural(one.lag_offsets, "offset")
    return {"last checked": f"{when}, {duration(one.age_seconds)} ago, lag {lag}"}


def _instance_facts(one: SourceStatus) -> dict[str, str]:
    shown = [f"{each.instance} {each.role}, seen {duration(each.age_seconds)} ago" for each in one.instances]
    return {"instances": "; ".join(shown)} if shown else {}


def _deletion_facts(one: SourceStatus) -> dict[str, str]:
    left = one.deletions_left_seconds
    if left is None:
        return {}
    text = f"proven by time for another {duration(left)}" if left > 0 else "no longer proven by time in the next backup"
    return {"deletions": text}


def _verified_text(one: SourceStatus, look: TerminalStyle) -> str:
    """`2026-11-15 10:30:00 +0100, level files`"""
    if one.last_verified_at is None:
        return "never"
    return f"{look.moment(datetime.fromisoformat(one.last_verified_at))}, level {one.last_verified_level}"


def _needs_attention(one: SourceStatus) -> bool:
    return bool(one.damaged or one.interrupted or one.warnings or (one.newest_good is None and not one.running))


def status_code(report: StatusReport) -> int:
    if report.breached:
        return 60
    return 2 if any(_needs_attention(one) for one in report.sources) else 0


def _metrics(outcome: CommandOutcome[StatusReport]) -> Iterator[MetricSample]:
    """The age of the newest backup. It does not depend on backup runs, which may have stopped."""
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
    text=status_text,
    options=(*RECEIPT_OPTIONS, MAX_AGE, MAX_LAG, MAX_STANDBY_AGE),
    exits=(2, 10, 60, *STORE_EXITS),
    exit_code=status_code,
    metrics=_metrics,
    examples=("logkeep status --max-age 26h", "logkeep status --max-age 5m --max-lag 100000"),
)
def status(run: Run) -> StatusReport:
    """Report whether each source has a recent good backup, what runs and what was interrupted.

    With --max-age it ends with 60 when the newest good backup is older, or there is none, or the repository has no
    source: use this code for alerts. The age counts from the last round of `backup --follow` that found nothing newer.
    With --max-lag a larger lag in the last round, or an unknown one, ends with 60 too; with --max-standby-age, no
    passive instance of `kafka backup --standby` that has reported within that time. The size counts at most 100,000
    objects of a source. Garbage is what `prune` or `delete` has marked; `prune --dry-run` counts all of it.
    """
    objectives = Objectives(run[MAX_AGE], run[MAX_LAG], run[MAX_STANDBY_AGE])
    places = list(chosen_sources(run))
    return status_report(places, run.clock(), objectives, lambda place: restores_place(run, place), run.repo())
