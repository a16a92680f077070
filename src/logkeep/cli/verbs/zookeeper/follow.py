"""`logkeep zookeeper backup --follow`: what an ensemble brings to the follow loop and its lines."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.follow import FollowReporter, follow, refuse_single_backup
from logkeep.cli.verbs.repository.optimize import merger
from logkeep.cli.verbs.zookeeper.backup_report import (
    ZooKeeperBackupReport,
    ZooKeeperFollowSummary,
    ZooKeeperRound,
    done_report,
    round_text,
)
from logkeep.cli.wiring import WarmEngines
from logkeep.config.options import ZK_INTERVAL, ZK_SEGMENT_BYTES
from logkeep.errors import Damaged
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.kinds import ZOOKEEPER
from logkeep.model.findings import Finding, Severity
from logkeep.model.work import EngineFor
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.follow import MERGE_LEAST, FollowRound
from logkeep.repository.upkeep.merge_plan import MergeRule
from logkeep.repository.upkeep.optimize import Optimized
from logkeep.zookeeper.backup.findings import PARTIAL
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import AskWord, ZooKeeperBackupDone, ZooKeeperBackupOptions
from logkeep.zookeeper.follow import FollowedEnsemble
from logkeep.zookeeper.repo.sink import ArchiveSink


def follow_ensemble(
    run: Run,
    place: SourceRef,
    options: ZooKeeperBackupOptions,
    archiving: Callable[[], AbstractContextManager[ArchiveSink]],
    settings_for: Callable[[EngineFor], RoundSettings],
    ask_word: AskWord,
) -> ZooKeeperBackupReport:
    """Until a signal arrives; the report sums up all rounds."""
    refuse_single_backup(run)
    interval_s = run[ZK_INTERVAL].total_seconds()

    def begin(engines: WarmEngines) -> "tuple[FollowedEnsemble, _ZooKeeperReporter]":
        def merge() -> Optimized:
            return merger(run, place, ZOOKEEPER).run(MergeRule(run[ZK_SEGMENT_BYTES], MERGE_LEAST), engines)

        ensemble = FollowedEnsemble(place, archiving, options, settings_for(engines), ask_word, interval_s, merge)
        return ensemble, _ZooKeeperReporter(run, engines, place)

    return follow(run, interval_s, begin)


class _ZooKeeperReporter(FollowReporter[ZooKeeperBackupDone, ZooKeeperBackupReport, ZooKeeperRound]):
    summed = ("new_snapshots", "new_logs", "new_bytes")

    def __init__(self, run: Run, engines: WarmEngines, place: SourceRef) -> None:
        super().__init__(run, engines, place.source)
        self._place = place
        self._worst = 0
        """The exit code of the worst round; rounds that failed and were repeated do not count."""

    def report_of(self, done: ZooKeeperBackupDone) -> ZooKeeperBackupReport:
        return done_report(self._place, done, None)

    def document(
        self, one: FollowRound[ZooKeeperBackupDone], _report: ZooKeeperBackupReport | None, shared: dict[str, Any]
    ) -> ZooKeeperRound:
        zxid = hex_zxid(one.done.gathered.backup_zxid) if one.done else None
        return ZooKeeperRound(**shared, backup_zxid=zxid, behind_seconds=round(one.behind_s, 3))

    def text(self, one: ZooKeeperRound) -> str:
        return round_text(one)

    def add(self, one: FollowRound[ZooKeeperBackupDone], report: ZooKeeperBackupReport | None) -> None:
        self._worst = max(self._worst, round_code(one, report))

    def summary(
        self, base: ZooKeeperBackupReport, counts: dict[str, int], findings: tuple[Finding, ...], ended: bool
    ) -> ZooKeeperBackupReport:
        return msgspec.structs.replace(
            base,
            findings=findings,
            exit_code=max(self._worst, PARTIAL if self.unfinished else 0),
            follow=ZooKeeperFollowSummary(**counts, last_round=self.last_round, ended=ended),
        )

    def nothing(self) -> ZooKeeperBackupReport:
        return ZooKeeperBackupReport(
            source=self.source, id=None, history="", members=(), backup_zxid=None, new_snapshots=0, new_logs=0,
            new_bytes=0, stored_bytes=None, findings=(), exit_code=0, dry_run=False,
        )  # fmt: skip


def round_code(one: FollowRound[ZooKeeperBackupDone], report: ZooKeeperBackupReport | None) -> int:
    """The exit code of one round: that of its backup, or of damage that a merge found."""
    merged = one.merged.findings if one.merged is not None else ()
    damaged = any(finding.severity is Severity.DAMAGE for finding in merged)
    return max(report.exit_code if report else 0, Damaged.exit_code if damaged else 0)
