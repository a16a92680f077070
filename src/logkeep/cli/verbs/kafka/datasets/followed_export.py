"""`--follow` of a dataset, from a cluster or from a repository: rounds, a line for each, and their sum."""

from collections import Counter
from collections.abc import Callable

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.terminal.text import duration, plural, size
from logkeep.cli.verbs.kafka.datasets.report import DatasetReport, dataset_report
from logkeep.cli.wiring import WarmEngines
from logkeep.config.options import ALLOW_GAPS, INTERVAL, REWRITE
from logkeep.engine.stop import SignalStop
from logkeep.errors import UsageError
from logkeep.kafka.datasets.follow import DatasetFollower, DatasetRound
from logkeep.kafka.datasets.run import (
    LABEL,
    NOT_HELD,
    REMOVED,
    DatasetExport,
    ExportDone,
    not_held_counts,
    not_held_findings,
)
from logkeep.model.findings import Finding
from logkeep.model.work import EngineFor


class DatasetRoundReport(msgspec.Struct, frozen=True, kw_only=True):
    """One round of --follow: the document of a line."""

    round: int
    records: int
    written_bytes: int
    new_offsets: int
    gaps: tuple[str, ...]
    findings: int
    seconds: float
    error: str | None
    message: str | None
    again_in_seconds: float


def followed_export(run: Run, task: DatasetExport, one_round: Callable[[EngineFor], ExportDone]) -> DatasetReport:
    """Until a signal arrives; the report sums up all rounds."""
    if run.dry_run or run[REWRITE]:
        other = "--dry-run" if run.dry_run else "--rewrite"
        raise UsageError(f"--follow makes many rounds, and {other} is about a single one", remedy="leave one out")
    sums: Counter[str] = Counter()
    last: list[DatasetReport] = []
    found = RoundFindings()

    def reported(one: DatasetRound) -> None:
        report = dataset_report(one.done, task.target.url, allow_gaps=run[ALLOW_GAPS]) if one.done else None
        if one.done is not None and report is not None:
            last[:] = [_joined(last[0] if last else report, report)]
            found.add(one.done)
            sums.update({name: getattr(report, name) for name in _SUMMED})
        run.line(_round_text, _round_report(one, report))

    notice = "the run ends after this round; press Ctrl-C again to abort it"
    with SignalStop(soft=True, notice=notice) as stop:
        engines = WarmEngines(run, stop, LABEL)
        DatasetFollower(lambda: one_round(engines), stop, run[INTERVAL].total_seconds(), reported).run()
    if not last:
        raise UsageError("no round was complete", remedy="see the lines above")
    return msgspec.structs.replace(last[0], findings=found.all(), **{name: sums[name] for name in _SUMMED})


_SUMMED = ("new_offsets", "records", "files", "written_bytes", "read_bytes")


_MOST = 100
"""Gaps, and findings about single rounds, that the end of a run repeats: the newest ones."""


def _joined(before: DatasetReport, now: DatasetReport) -> DatasetReport:
    gaps = tuple(dict.fromkeys((*before.gaps, *now.gaps)))
    return msgspec.structs.replace(now, gaps=gaps[-_MOST:])


class RoundFindings:
    """Of all rounds: the counts of what the format cannot hold, what happened in one round, and what lasts."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._events: dict[Finding, None] = {}
        self._lasting: tuple[Finding, ...] = ()

    def add(self, done: ExportDone) -> None:
        counts = not_held_counts(done.logs)
        counted, self._counts = not_held_findings(counts), self._counts + counts
        events = [each for each in done.findings if each.code in {NOT_HELD, REMOVED}]
        self._events |= dict.fromkeys(each for each in events if each not in counted)
        self._events = dict.fromkeys([*self._events][-_MOST:])
        self._lasting = tuple(each for each in done.findings if each not in events)

    def all(self) -> tuple[Finding, ...]:
        return (*self._lasting, *not_held_findings(self._counts), *self._events)


def _round_report(one: DatasetRound, report: DatasetReport | None) -> DatasetRoundReport:
    return DatasetRoundReport(
        round=one.number,
        records=report.records if report else 0,
        written_bytes=report.written_bytes if report else 0,
        new_offsets=report.new_offsets if report else 0,
        gaps=report.gaps if report else (),
        findings=len(report.findings) if report else 0,
        seconds=round(one.took_s, 3),
        error=one.error.slug() if one.error else None,
        message=str(one.error) if one.error else None,
        again_in_seconds=round(one.again_in_s, 3),
    )


def _round_text(one: DatasetRoundReport) -> str:
    if one.error is not None:
        return f"round {one.round}: failed, again in {duration(one.again_in_seconds)}: {one.message}"
    work = f"{plural(one.records, 'record')}, {size(one.written_bytes)}" if one.new_offsets else "nothing new"
    parts = [f"round {one.round}: {work}", *(f"GAP {gap}" for gap in one.gaps)]
    parts += [plural(one.findings, "finding")] if one.findings else []
    return "; ".join(parts)
