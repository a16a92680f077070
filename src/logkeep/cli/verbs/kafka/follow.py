"""`logkeep kafka backup --follow`: rounds on the command line, told as they end, summed up at the end."""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.follow import FollowSummary, KafkaRound, TopicThreat, round_text
from logkeep.cli.verbs.kafka.backup import KafkaBackupReport
from logkeep.cli.wiring import WarmEngines
from logkeep.config.options import ALLOW_GAPS, INTERVAL
from logkeep.engine.stop import SignalStop
from logkeep.errors import BackupFailed
from logkeep.kafka.backup.run import KafkaBackup, KafkaBackupDone, KafkaBackupOptions
from logkeep.kafka.follow.run import KafkaFollower, KafkaFollowRound
from logkeep.model.findings import Finding, Severity

_KEPT = 100
"""Gaps and findings that the summary repeats: a run may go on for a year. Backups keep all of their own."""
Reported = Callable[[KafkaBackupDone], KafkaBackupReport]


def follow(run: Run, task: KafkaBackup, wish: KafkaBackupOptions, reported: Reported) -> KafkaBackupReport:
    """Follow until a signal comes; the report sums up all rounds."""
    with SignalStop(soft=True, notice="the run ends after this round; once more gives the round up") as stop:
        engines = WarmEngines(run, stop)
        told = _Telling(run, engines, task.place.source, reported)
        KafkaFollower(task, wish, engines, stop, run[INTERVAL].total_seconds(), told).run()
    return told.report(ended=True)


@dataclass
class _Telling:
    """Prints each round, updates metrics, and keeps what the summary needs: bounded, however long it runs."""

    run: Run
    engines: WarmEngines
    source: str
    reported: Reported
    last: KafkaBackupReport | None = None
    last_round: KafkaRound | None = None
    rounds: int = 0
    committed: int = 0
    idle: int = 0
    merged_objects: int = 0
    new_offsets: int = 0
    new_bytes: int = 0
    gaps: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    told: set[Finding] = field(default_factory=set)

    def __call__(self, one: KafkaFollowRound) -> None:
        report = self.reported(one.done) if one.done else None
        self.last_round = _shown(one, report)
        self._add(one, report)
        self.run.line(round_text(self.last_round), self.last_round)
        for finding in self._fresh(report):
            self.run.console.note(f"{finding.severity.upper():8}{finding.where}: {finding.what}")
        if isinstance(one.error, BackupFailed):
            self.engines.renew()
        if report is None:
            self.run.tell(None, one.error, one.took_s)
        else:
            summary = self._summary(ended=False)
            self.run.tell(msgspec.structs.replace(report, follow=summary), None, one.took_s)

    def _fresh(self, report: KafkaBackupReport | None) -> list[Finding]:
        """Findings that the round before did not have: told once, not every ten seconds."""
        now = set(report.findings) if report else self.told
        fresh, self.told = [f for f in (report.findings if report else ()) if f not in self.told], now
        return fresh

    def _add(self, one: KafkaFollowRound, report: KafkaBackupReport | None) -> None:
        self.rounds += 1
        if one.merged:
            self.merged_objects += one.merged.objects_before
            self.findings = _latest([*self.findings, *one.merged.findings])
        if one.done is None or report is None:
            return
        self.last = report
        self.committed += one.done.changed
        self.idle += not one.done.changed
        if one.done.changed:
            self.new_offsets += report.new_offsets
            self.new_bytes += report.new_bytes
            self.gaps = [*self.gaps, *report.gaps][-_KEPT:]
            self.findings = _latest([*self.findings, *report.findings])

    def _summary(self, *, ended: bool) -> FollowSummary:
        return FollowSummary(
            rounds=self.rounds,
            committed=self.committed,
            idle=self.idle,
            failed=self.rounds - self.committed - self.idle,
            merged_objects=self.merged_objects,
            last_round=self.last_round,
            ended=ended,
        )

    def report(self, *, ended: bool) -> KafkaBackupReport:
        base = self.last or _nothing(self.source, self.run[ALLOW_GAPS])
        return msgspec.structs.replace(
            base,
            new_offsets=self.new_offsets,
            new_bytes=self.new_bytes,
            gaps=tuple(self.gaps),
            findings=(*self.findings, *self._unfinished()),
            follow=self._summary(ended=ended),
        )

    def _unfinished(self) -> list[Finding]:
        last = self.last_round
        if last is None or last.id is not None:
            return []
        what = f"the last round failed, so what came after the newest backup is not archived: {last.message}"
        return [Finding(code="last-round-failed", severity=Severity.WARNING, where=self.source, what=what)]


def _latest(findings: list[Finding]) -> list[Finding]:
    """Each once, and warnings before notes when there are too many: the exit code depends on them."""
    once = list(dict.fromkeys(findings))
    serious = [f for f in once if f.severity is not Severity.NOTE][-_KEPT:]
    return [*serious, *[f for f in once if f.severity is Severity.NOTE][-_KEPT:]]


def _shown(one: KafkaFollowRound, report: KafkaBackupReport | None) -> KafkaRound:
    changed = one.done is not None and one.done.changed
    return KafkaRound(
        round=one.number,
        id=report.id if report else None,
        changed=changed,
        new_offsets=report.new_offsets if report and changed else 0,
        new_bytes=report.new_bytes if report and changed else 0,
        lag_offsets=one.lag_offsets,
        lag_bytes=one.lag_bytes,
        threats=tuple(TopicThreat(topic=t.topic, overtaken_in_seconds=round(t.left_s, 1)) for t in one.threats),
        gaps=report.gaps if report else (),
        findings=len(report.findings) if report else 0,
        merged_objects=one.merged.objects_before if one.merged else 0,
        seconds=round(one.took_s, 3),
        error=one.error.slug() if one.error else None,
        message=str(one.error) if one.error else None,
        again_in_seconds=round(one.again_in_s, 3),
    )


def _nothing(source: str, allow_gaps: bool) -> KafkaBackupReport:
    """No round succeeded."""
    return KafkaBackupReport(
        source=source,
        id=None,
        cluster_id="",
        topics=0,
        partitions=0,
        groups=0,
        open_transactions=0,
        units=0,
        new_offsets=0,
        new_bytes=0,
        stored_bytes=None,
        gaps=(),
        findings=(),
        allow_gaps=allow_gaps,
        dry_run=False,
    )
