"""`backup --follow` on the command line: prints each round, updates metrics and sums up, for every kind of source."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.terminal.finding_text import finding_texts
from logkeep.cli.terminal.text import count, plural
from logkeep.cli.wiring import WarmEngines
from logkeep.config.options import BACKUP_ID
from logkeep.engine.stop import SignalStop
from logkeep.errors import BackupFailed, UsageError
from logkeep.model.findings import Finding, Severity

if TYPE_CHECKING:
    from logkeep.repository.follow import FollowedSource, FollowRound, Stopping

_KEPT = 100
"""Gaps and findings that the summary repeats: a run may last for a year. Each backup keeps all of its own."""


class FollowCounts(msgspec.Struct, frozen=True, kw_only=True):
    rounds: int
    committed: int
    idle: int
    failed: int
    merged_objects: int


class _BackupReport(Protocol):
    """What the summary needs to know of the report of one backup."""

    @property
    def id(self) -> int | None: ...
    @property
    def new_bytes(self) -> int: ...
    @property
    def findings(self) -> tuple[Finding, ...]: ...


DoneT = TypeVar("DoneT")
ReportT = TypeVar("ReportT", bound=_BackupReport)
RoundT = TypeVar("RoundT", bound=msgspec.Struct)
SourceT = TypeVar("SourceT", bound="FollowedSource[Any]")


class FollowReporter(ABC, Generic[DoneT, ReportT, RoundT]):
    """Prints each round and keeps what the summary needs: of bounded size, however long the run lasts.

    A kind brings the report of a backup, the document of a round and its line of text.
    """

    summed: ClassVar[tuple[str, ...]]
    """Fields of the report that the summary adds up over all rounds."""

    def __init__(self, run: Run, engines: WarmEngines, source: str) -> None:
        self.run, self.engines, self.source = run, engines, source
        self.rounds: Counter[str] = Counter()
        self.sums: Counter[str] = Counter()
        self.merged_objects = 0
        self.last: ReportT | None = None
        self.last_round: RoundT | None = None
        self.findings: list[Finding] = []
        self._printed: set[Finding] = set()
        self.unfinished: tuple[Finding, ...] = ()

    @abstractmethod
    def report_of(self, done: DoneT) -> ReportT:
        """The report of one backup."""

    @abstractmethod
    def nothing(self) -> ReportT:
        """The report of a run without any successful round."""

    @abstractmethod
    def document(self, one: "FollowRound[DoneT]", report: ReportT | None, shared: dict[str, Any]) -> RoundT:
        """The round for --json. `shared` has the fields that are the same for every kind."""

    @abstractmethod
    def text(self, one: RoundT) -> str:
        """The round in one line."""

    @abstractmethod
    def summary(self, base: ReportT, counts: dict[str, int], findings: tuple[Finding, ...], ended: bool) -> ReportT:
        """The report of all rounds so far, from that of the last."""

    def add(self, one: "FollowRound[DoneT]", report: ReportT | None) -> None:
        """Count one more round."""

    def __call__(self, one: "FollowRound[DoneT]") -> None:
        report = self.report_of(one.done) if one.done is not None else None
        self.last_round = self.document(one, report, _shared_fields(one, report))
        self._add(one, report)
        self.run.line(self.text, self.last_round)
        self._print_new_findings(one, report)
        if isinstance(one.error, BackupFailed):
            self.engines.renew()
        if one.failed:
            self.run.update_metrics(None, one.error, one.took_s)
        else:
            self.run.update_metrics(self.report(ended=False), None, one.took_s)  # type: ignore[arg-type]  # reports are structs

    def _print_new_findings(self, one: "FollowRound[DoneT]", report: ReportT | None) -> None:
        """Each when it appears, not again every ten seconds."""
        found = [*(one.merged.findings if one.merged else ()), *(report.findings if report else ())]
        for text in finding_texts([f for f in found if f not in self._printed]):
            self.run.console.note(text)
        if report is not None:
            self._printed = set(found)

    def _add(self, one: "FollowRound[DoneT]", report: ReportT | None) -> None:
        self.rounds["failed" if one.failed else "committed" if one.changed else "idle"] += 1
        self.merged_objects += one.merged.objects_before if one.merged else 0
        found = [*self.findings, *(one.merged.findings if one.merged else ())]
        if report is not None:
            self.last = report
        if report is not None and one.changed:
            self.sums.update({name: getattr(report, name) for name in self.summed})
            found += report.findings
        self.findings = _limit_findings(found)
        self.unfinished = _last_failed(self.source, one)
        self.add(one, report)

    def report(self, *, ended: bool) -> ReportT:
        """All rounds so far."""
        counts = {name: self.rounds[name] for name in ("committed", "idle", "failed")}
        counts |= {"rounds": self.rounds.total(), "merged_objects": self.merged_objects}
        base = self.last if self.last is not None else self.nothing()
        base = msgspec.structs.replace(base, **{name: self.sums[name] for name in self.summed})  # type: ignore[type-var]
        return self.summary(base, counts, (*self.findings, *self.unfinished), ended)


def refuse_single_backup(run: Run) -> None:
    """Raises UsageError for options that are about one backup."""
    if run.dry_run or run[BACKUP_ID] is not None:
        other = "--dry-run" if run.dry_run else "--id"
        raise UsageError(
            f"--follow makes one backup after the other, and {other} is about a single one", remedy="leave one out"
        )


def follow(
    run: Run,
    interval_s: float,
    begin: "Callable[[WarmEngines], tuple[SourceT, FollowReporter[DoneT, ReportT, RoundT]]]",
    within: "Callable[[SourceT, Stopping, Callable[[Stopping], None]], None] | None" = None,
) -> ReportT:
    """Until a signal arrives; a second one aborts the round. The report sums up all rounds.

    `within` gets the source, the user's stop and a function that makes rounds until its stop is requested.
    """
    from logkeep.repository.follow import Follower  # noqa: PLC0415 - loads Arrow, which --help can spare

    with SignalStop(soft=True, notice="the run ends after this round; press Ctrl-C again to abort it") as stop:
        engines = WarmEngines(run, stop, "copy")
        source, reporter = begin(engines)

        def rounds(until: "Stopping") -> None:
            Follower(source, until, interval_s, reporter, run.clock).run()

        if within is None:
            rounds(stop)
        else:
            within(source, stop, rounds)
    return reporter.report(ended=True)


def summary_text(counts: FollowCounts, new: str) -> str:
    return (
        f"followed for {plural(counts.rounds, 'round')}: {plural(counts.committed, 'backup')}, "
        f"{count(counts.idle)} without anything new, {count(counts.failed)} failed · {new}"
    )


def _shared_fields(one: "FollowRound[Any]", report: _BackupReport | None) -> dict[str, Any]:
    return {
        "round": one.number,
        "id": report.id if report else None,
        "new_bytes": report.new_bytes if report and one.changed else 0,
        "findings": len(report.findings) if report else 0,
        "merged_objects": one.merged.objects_before if one.merged else 0,
        "seconds": round(one.took_s, 3),
        "error": one.error.slug() if one.error else None,
        "message": str(one.error) if one.error else None,
        "again_in_seconds": round(one.again_in_s, 3),
    }


def _limit_findings(findings: list[Finding]) -> list[Finding]:
    """Each once, and warnings before notes when there are too many: the exit code depends on them."""
    once = list(dict.fromkeys(findings))
    serious = [f for f in once if f.severity is not Severity.NOTE][-_KEPT:]
    return [*serious, *[f for f in once if f.severity is Severity.NOTE][-_KEPT:]]


def _last_failed(source: str, one: "FollowRound[Any]") -> tuple[Finding, ...]:
    if not one.failed:
        return ()
    what = f"the last round failed, so what came after the newest backup is not archived: {one.error}"
    return (Finding(code="last-round-failed", severity=Severity.WARNING, where=source, what=what),)
