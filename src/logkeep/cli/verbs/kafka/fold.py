"""`logkeep kafka fold`: only the latest record of each key stays in archived compacted topics."""

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, count, plural, size
from logkeep.cli.verbs.kafka.declarations import FOLD
from logkeep.cli.wiring import chosen_engine, chosen_source
from logkeep.config.options import DROP_TOMBSTONES, EXCLUDE, LEASE_TTL, TOPICS, YES
from logkeep.kafka.fold.plan import FoldOptions
from logkeep.kafka.fold.run import FoldedResult, LogFolding, PreparedFold
from logkeep.kinds import KAFKA, require_kind

_SHOWN = 20


class FoldedLogReport(msgspec.Struct, frozen=True, kw_only=True):
    """One log."""

    topic: str
    partition: int
    history: str
    folded: bool
    """Whether its records were replaced; in a dry run, whether it would be read."""
    cuts: int
    """Kept backups that hold it."""
    records_before: int | None
    records_after: int | None
    """Null if they were not counted: in a dry run, or because the log was not folded."""
    bytes_before: int
    bytes_after: int | None
    unkeyed: int
    """Records without a key: all of them stay."""
    reason: str
    """Why it was not folded."""
    problem: str
    """What is damaged, or wrong with what was written: nothing was replaced."""
    where: str


class FoldReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    logs: tuple[FoldedLogReport, ...]
    dropped_tombstones: bool
    dry_run: bool


def _text(report: FoldReport, look: TerminalStyle) -> str:
    done = [log for log in report.logs if log.folded]
    lines = [_summary(report, done)]
    lines += [f"DAMAGE  {log.where}: {log.problem}" for log in report.logs if log.problem]
    others = [log for log in report.logs if log.reason]
    lines += [f"NOT FOLDED  {log.topic}/{log.partition}: {log.reason}" for log in others[:_SHOWN]]
    if len(others) > _SHOWN:
        lines.append(f"… and {plural(len(others) - _SHOWN, 'more log')}; --json has them")
    return look.text("\n".join(lines))


def _summary(report: FoldReport, done: list[FoldedLogReport]) -> str:
    if not done:
        return f"nothing to fold in {report.source}"
    stored = sum(log.bytes_before for log in done)
    if report.dry_run:
        return f"would read {plural(len(done), 'log')} of {report.source}, {size(stored)}, and fold them"
    records = sum(log.records_before or 0 for log in done), sum(log.records_after or 0 for log in done)
    left = sum(log.bytes_after or 0 for log in done)
    became = f"{plural(records[0], 'record')} became {count(records[1])}"
    return (
        f"folded {plural(len(done), 'log')} of {report.source}: {became},"
        f" {size(stored)} became {size(left)}; `logkeep prune` removes the old objects"
    )


@verb(
    FOLD,
    report=FoldReport,
    text=_text,
    exit_code=lambda report: 10 if any(log.problem for log in report.logs) else 0,
)
def fold(run: Run) -> FoldReport:
    place = chosen_source(run)
    require_kind(place, KAFKA)
    options = FoldOptions(run[TOPICS], run[EXCLUDE], run[DROP_TOMBSTONES], configured=not run.settings.typed(TOPICS))
    task = LogFolding(place, run.clock, run.token, run[LEASE_TTL])
    if run.dry_run:
        done = task.prepare(options).foreseen()
    else:
        prepared = None if run[YES] else _confirmed(run, task, options)
        done = task.run(options, lambda size_bytes: chosen_engine(run, size_bytes, work="fold"), prepared)
    return FoldReport(
        source=place.source,
        logs=tuple(_log(each, dry_run=run.dry_run) for each in done),
        dropped_tombstones=run[DROP_TOMBSTONES],
        dry_run=run.dry_run,
    )


def _confirmed(run: Run, task: LogFolding, options: FoldOptions) -> PreparedFold:
    """Ask if there is anything to fold: values between two kept backups cannot be restored afterwards."""
    prepared = task.prepare(options)
    if prepared.plan.logs:
        run.console.note("values that no kept backup has as the latest of their key are dropped from the archive")
        run.confirm(f"fold {plural(len(prepared.plan.logs), 'log')} of {task.place.source}?")
    return prepared


def _log(result: FoldedResult, *, dry_run: bool) -> FoldedLogReport:
    before = result.outcome.before if result.outcome else None
    after = result.outcome.after if result.outcome and result.committed else None
    planned = result.planned
    return FoldedLogReport(
        topic=result.log.name,
        partition=result.log.partition,
        history=result.log.history,
        folded=result.committed or (dry_run and planned is not None),
        cuts=len(planned.barriers.cuts) if planned else 0,
        records_before=before.records if before else None,
        records_after=after.records if after else None,
        bytes_before=sum(row.stored_bytes for row in planned.rows) if planned else 0,
        bytes_after=after.stored_bytes if after else None,
        unkeyed=result.outcome.unkeyed if result.outcome else 0,
        reason=result.reason,
        problem=result.problem,
        where=result.where,
    )
