"""`logkeep zookeeper backup --follow`: rounds on the command line, told as they end, summed up at the end."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.zookeeper.backup import ZooKeeperBackupReport, ask_word, done_report, opened_sink, rounds
from logkeep.cli.verbs.zookeeper.optimize import optimizing
from logkeep.cli.verbs.zookeeper.rounds import RoundsSummary, ZooKeeperRound, round_text
from logkeep.cli.wiring import WarmEngines
from logkeep.config.options import BACKUP_ID, ZK_INTERVAL, ZK_SEGMENT_BYTES
from logkeep.engine.stop import SignalStop
from logkeep.errors import BackupFailed, Damaged, UsageError
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding, Severity
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.upkeep.merge_plan import MergeRule
from logkeep.zookeeper.backup.findings import PARTIAL
from logkeep.zookeeper.backup.run import ZooKeeperBackupOptions
from logkeep.zookeeper.follow import MERGE_LEAST, ZooKeeperFollowRound
from logkeep.zookeeper.follow import follow as follow_members

_KEPT = 100
"""Findings that the summary repeats: a run may go on for a year. Backups keep all of their own."""


def follow(run: Run, place: SourceRef, wish: ZooKeeperBackupOptions) -> ZooKeeperBackupReport:
    """Until a signal comes; the report sums up all rounds."""
    if run.dry_run or run[BACKUP_ID] is not None:
        other = "--dry-run" if run.dry_run else "--id"
        raise UsageError(f"--follow makes one backup after the other, and {other} is about one", remedy="leave one out")
    with SignalStop(soft=True, notice="the run ends after this round; once more gives the round up") as stop:
        engines = WarmEngines(run, stop)
        told = _Telling(run, engines, place)
        follow_members(
            lambda: opened_sink(run, place),
            wish,
            rounds(engines),
            ask_word,
            stop,
            interval_s=run[ZK_INTERVAL].total_seconds(),
            tell=told,
            merge=lambda: optimizing(run, place).run(MergeRule(run[ZK_SEGMENT_BYTES], MERGE_LEAST), engines),
        )
    return told.report(ended=True)


@dataclass
class _Telling:
    """Prints each round, updates metrics, and keeps what the summary needs: bounded, however long it runs."""

    run: Run
    engines: WarmEngines
    place: SourceRef
    last: ZooKeeperBackupReport | None = None
    last_round: ZooKeeperRound | None = None
    rounds: int = 0
    committed: int = 0
    failed: int = 0
    merged: int = 0
    snapshots: int = 0
    logs: int = 0
    new_bytes: int = 0
    findings: list[Finding] = field(default_factory=list)
    worst: int = 0
    """The exit code of the round that went worst; those that failed and were tried again do not count."""

    def __call__(self, one: ZooKeeperFollowRound) -> None:
        report = done_report(self.place, one.done, None) if one.done else None
        self.last_round = _shown(one, report)
        self._add(one, report)
        self.run.line(round_text(self.last_round), self.last_round)
        if isinstance(one.error, BackupFailed):
            self.engines.renew()
        failed = one.error if one.done is None else None
        self.run.tell(None if failed else self.report(ended=False), failed, one.took_s)

    def _add(self, one: ZooKeeperFollowRound, report: ZooKeeperBackupReport | None) -> None:
        self.rounds += 1
        self.worst = max(self.worst, round_code(one, report))
        self.failed += one.error is not None and one.done is None
        if one.merged is not None:
            self.merged += one.merged.objects_before
            self._note(one.merged.findings)
        if report is None:
            return
        self.last = report
        self.committed += 1
        self.snapshots += report.new_snapshots
        self.logs += report.new_logs
        self.new_bytes += report.new_bytes
        self._note(report.findings)

    def _note(self, findings: Sequence[Finding]) -> None:
        for finding in (f for f in findings if f not in self.findings):
            self.run.console.note(f"{finding.severity.upper():8}{finding.where}: {finding.what}")
        self.findings = list(dict.fromkeys([*self.findings, *findings]))[-_KEPT:]

    def report(self, *, ended: bool) -> ZooKeeperBackupReport:
        base = self.last or _nothing(self.place.source)
        left = self._unfinished()
        return msgspec.structs.replace(
            base,
            new_snapshots=self.snapshots,
            new_logs=self.logs,
            new_bytes=self.new_bytes,
            findings=(*self.findings, *left),
            exit_code=max(self.worst, PARTIAL if left else 0),
            follow=RoundsSummary(
                rounds=self.rounds,
                committed=self.committed,
                idle=self.rounds - self.committed - self.failed,
                failed=self.failed,
                merged_objects=self.merged,
                last_round=self.last_round,
                ended=ended,
            ),
        )

    def _unfinished(self) -> list[Finding]:
        last = self.last_round
        if last is None or last.error is None or last.id is not None:
            return []
        what = f"the last round failed, so what came after the newest backup is not archived: {last.message}"
        return [Finding(code="last-round-failed", severity=Severity.WARNING, where=self.place.source, what=what)]


def round_code(one: ZooKeeperFollowRound, report: ZooKeeperBackupReport | None) -> int:
    """What a round is worth: its backup, and what a merge found on the way."""
    merged = one.merged.findings if one.merged is not None else ()
    damaged = any(finding.severity is Severity.DAMAGE for finding in merged)
    return max(report.exit_code if report else 0, Damaged.exit_code if damaged else 0)


def _shown(one: ZooKeeperFollowRound, report: ZooKeeperBackupReport | None) -> ZooKeeperRound:
    return ZooKeeperRound(
        round=one.number,
        id=report.id if report else None,
        backup_zxid=hex_zxid(one.done.gathered.backup_zxid) if one.done else None,
        new_bytes=report.new_bytes if report else 0,
        behind_seconds=round(one.behind_s, 3),
        findings=len(report.findings) if report else 0,
        merged_objects=one.merged.objects_before if one.merged else 0,
        seconds=round(one.took_s, 3),
        error=one.error.slug() if one.error else None,
        message=str(one.error) if one.error else None,
        again_in_seconds=round(one.again_in_s, 3),
    )


def _nothing(source: str) -> ZooKeeperBackupReport:
    """No round committed anything."""
    return ZooKeeperBackupReport(
        source=source,
        id=None,
        history="",
        members=(),
        backup_zxid=None,
        new_snapshots=0,
        new_logs=0,
        new_bytes=0,
        stored_bytes=None,
        findings=(),
        exit_code=0,
        dry_run=False,
    )
