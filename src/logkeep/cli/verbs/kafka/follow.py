"""`logkeep kafka backup --follow`: what a cluster brings to the follow loop and its lines."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.follow import FollowReporter, follow
from logkeep.cli.verbs.kafka.backup_report import (
    KafkaBackupReport,
    KafkaFollowSummary,
    KafkaRound,
    TopicThreat,
    round_text,
)
from logkeep.cli.wiring import WarmEngines
from logkeep.config.options import ALLOW_GAPS, INSTANCE_ROLE, INTERVAL, LEASE_TTL, STANDBY
from logkeep.kafka.backup.run import KafkaBackup
from logkeep.kafka.backup.values import KafkaBackupDone, KafkaBackupOptions
from logkeep.kafka.follow.run import FollowedCluster
from logkeep.model.findings import Finding
from logkeep.model.ids import source_name
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.roles import InstanceRole, RoleSeat
from logkeep.repository.follow import FollowRound, Stopping
from logkeep.repository.standby import Standby

_KEPT_GAPS = 100


def follow_cluster(
    run: Run,
    task: KafkaBackup,
    options: KafkaBackupOptions,
    report_of: Callable[[KafkaBackupDone], KafkaBackupReport],
    after_round: Callable[[KafkaBackupDone], None],
    instance: str,
) -> KafkaBackupReport:
    """Until a signal arrives; the report sums up all rounds."""
    interval_s = run[INTERVAL].total_seconds()

    def begin(engines: WarmEngines) -> "tuple[FollowedCluster, _KafkaReporter]":
        cluster = FollowedCluster(task, options, engines, interval_s, after_round=after_round)
        resources.callback(cluster.close)
        return cluster, _KafkaReporter(run, engines, cluster, report_of)

    with ExitStack() as resources:
        if run[STANDBY]:
            return follow(run, interval_s, begin, lambda *some: _stand_by(run, instance, *some))
        return follow(run, interval_s, begin)


def _stand_by(
    run: Run, name: str, cluster: FollowedCluster, stop: Stopping, rounds: Callable[[Stopping], None]
) -> None:
    """Rounds only while this instance is active."""
    ttl_s = run[LEASE_TTL].total_seconds()
    owner, role = this_process(run.token()), InstanceRole(run[INSTANCE_ROLE])
    seat = RoleSeat(cluster.place, source_name(name), owner, ttl_s, run.clock, time.monotonic, wanted=role)
    cluster.before_round = seat.confirm

    def changed(now: InstanceRole) -> None:
        run.console.note(f"instance {name} is {now}")

    poll_s = min(max(cluster.interval_s, 0.1), ttl_s / 3)
    Standby(seat, stop, poll_s, rounds, changed, cluster.retry_cures).run()


class _KafkaReporter(FollowReporter[KafkaBackupDone, KafkaBackupReport, KafkaRound]):
    summed = ("new_offsets", "new_bytes")

    def __init__(
        self,
        run: Run,
        engines: WarmEngines,
        cluster: FollowedCluster,
        report_of: Callable[[KafkaBackupDone], KafkaBackupReport],
    ) -> None:
        super().__init__(run, engines, cluster.place.source)
        self._cluster, self._report_of = cluster, report_of
        self._gaps: list[str] = []

    def report_of(self, done: KafkaBackupDone) -> KafkaBackupReport:
        return self._report_of(done)

    def document(
        self, one: FollowRound[KafkaBackupDone], report: KafkaBackupReport | None, shared: dict[str, Any]
    ) -> KafkaRound:
        lag = self._cluster.lag
        threats = lag.threats if lag else ()
        left_s = lag.deletions_left_s if lag else None
        return KafkaRound(
            **shared,
            changed=one.changed,
            new_offsets=report.new_offsets if report and one.changed else 0,
            lag_offsets=lag.offsets if lag else None,
            lag_bytes=lag.size_bytes if lag else None,
            threats=tuple(TopicThreat(topic=t.topic, overtaken_in_seconds=round(t.left_s, 1)) for t in threats),
            gaps=report.gaps if report else (),
            deletions_left_seconds=None if left_s is None else round(left_s, 1),
            catch_up=report.catch_up if report else None,
        )

    def text(self, one: KafkaRound) -> str:
        return round_text(one)

    def add(self, one: FollowRound[KafkaBackupDone], report: KafkaBackupReport | None) -> None:
        if report is not None and one.changed:
            self._gaps = [*self._gaps, *report.gaps][-_KEPT_GAPS:]

    def summary(
        self, base: KafkaBackupReport, counts: dict[str, int], findings: tuple[Finding, ...], ended: bool
    ) -> KafkaBackupReport:
        summary = KafkaFollowSummary(**counts, last_round=self.last_round, ended=ended)
        return msgspec.structs.replace(base, gaps=tuple(self._gaps), findings=findings, follow=summary)

    def nothing(self) -> KafkaBackupReport:
        return KafkaBackupReport(
            source=self.source, id=None, cluster_id="", topics=0, partitions=0, groups=0, open_transactions=0,
            units=0, new_offsets=0, new_bytes=0, stored_bytes=None, gaps=(), findings=(),
            allow_gaps=self.run[ALLOW_GAPS], dry_run=False,
        )  # fmt: skip
