"""One cluster in the follow loop: plan, copy, commit; then the lag and the topics whose retention is too fast.

A round resumes what a failed round had copied. The last archived batch of every log is compared in the first round,
after a round that failed, and when a broker was restarted; in other rounds, that of logs with another leader epoch or a
smaller end. Logs that are copied are compared before every commit. The loop is `repository.follow`; estimates are in
`retention_race`.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from logkeep.errors import (
    BackupFailed,
    ClusterUnreachable,
    InvalidAnswer,
    Locked,
    LogkeepError,
    OldMessageFormat,
    ProtocolMismatch,
    StoreFull,
    TopicMissing,
)
from logkeep.kafka.admin.offsets import At, list_offsets
from logkeep.kafka.admin.topics import ResourceKind, describe_configs
from logkeep.kafka.backup.continuity.past_check import SeenLog, SeenLogs
from logkeep.kafka.backup.deletion_passes import SUSPICIOUS
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.run import KafkaBackup
from logkeep.kafka.backup.values import KafkaBackupDone, KafkaBackupOptions
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.topology import TopicPartition, is_internal
from logkeep.kafka.follow.broker_watch import BrokerWatch
from logkeep.kafka.follow.retention_race import LogReading, Retention, Threat, near_s, retention_of, threats, total_lag
from logkeep.kafka.merge import optimizing
from logkeep.kafka.record.deletion_times import cleanup_rule, least_left_s
from logkeep.kafka.record.documents import ArchivedReach, reached_by
from logkeep.model.findings import Finding
from logkeep.model.work import EngineFor
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.follow import MERGE_LEAST, RetryPause, SourceState
from logkeep.repository.upkeep.merge_plan import MergeRule
from logkeep.repository.upkeep.optimize import Optimized

_ANCHOR_S = 600.0
_SUSPECTED_S = 3600.0
"""A log with suspicious deletions is compared again after this time, not in every round: that reads all of it."""
_KEYS = ("cleanup.policy", "retention.ms", "retention.bytes")
Readings = Mapping[TopicPartition, LogReading]


@dataclass(frozen=True)
class Lag:
    """What the cluster had beyond the archive when a round ended."""

    offsets: int
    size_bytes: int
    threats: tuple[Threat, ...]
    deletions_left_s: float | None = None
    """How long a next round can still prove by time that it read every deletion; None: no compacted topic has times."""


@dataclass
class FollowedCluster:
    """The `FollowedSource` of a Kafka cluster."""

    backup: KafkaBackup
    options: KafkaBackupOptions
    engine_for: EngineFor
    interval_s: float
    monotonic: Callable[[], float] = time.monotonic
    before_round: Callable[[], None] = lambda: None
    """Called before every round; raises LeaseLost when this process may not make rounds any more."""
    after_round: Callable[[KafkaBackupDone], None] = lambda _: None
    """Called after every round that ended well; raises nothing."""
    lag: Lag | None = None
    """The lag after the latest round; None when the cluster did not answer."""
    _checked: bool = False
    _seen: SeenLogs = field(default_factory=dict)
    """The logs in the last round that ended well."""
    _later: Mapping[TopicPartition, ArchivedReach] = field(default_factory=dict)
    """The logs of the last round, if it stored nothing: the times of its cuts are in no record yet."""
    _suspected: dict[str, tuple[float, Finding]] = field(default_factory=dict)
    """Logs with suspicious deletions: when they were compared, and what was found."""
    _anchors: list[Readings] = field(default_factory=list)
    """Earlier readings, some minutes apart: rates are measured against the first."""

    @cached_property
    def watch(self) -> BrokerWatch:
        return BrokerWatch(self.backup.settings)

    def close(self) -> None:
        self.watch.close()

    @property
    def retry_pause(self) -> RetryPause:
        return RetryPause()

    @property
    def place(self) -> SourceRef:
        return self.backup.place

    def round(self) -> KafkaBackupDone:
        """Commits nothing when nothing changed; the result then names the newest backup.

        After the first contact a listener with another protocol, or an answer that cannot be read, counts as a broker
        that does not answer: what a restarting broker or a proxy sends for a while must not end a run of months.
        """
        try:
            return self._round()
        except (ProtocolMismatch, InvalidAnswer) as error:
            if not self._checked:
                raise
            raise ClusterUnreachable(error.what, subject=error.subject, remedy=error.remedy) from error

    def _round(self) -> KafkaBackupDone:
        self.lag = None
        self.before_round()
        self.options = replace(self.options, resume=True)
        seen, self._seen = self._seen if self.watch.unbroken() else {}, {}
        if not self._checked:
            # Once, before anything is written: a wrong password or another cluster leaves no trace, not even a lease.
            self.backup.prepare(self.options)
            self._checked = True
        suspected = self._suspected_now()
        done = self.backup.run_if_changed(self.options, self.engine_for, seen, self._later, suspected)
        self._remember_suspects(done.findings, suspected)
        self._seen = _seen(done.facts)
        self._later = {} if done.changed else reached_by(done.logs)
        self.after_round(done)
        return done

    def _suspected_now(self) -> dict[str, Finding]:
        now_s = self.monotonic()
        return {log: found for log, (at_s, found) in self._suspected.items() if now_s - at_s < _SUSPECTED_S}

    def _remember_suspects(self, findings: Iterable[Finding], known: Mapping[str, Finding]) -> None:
        now_s = self.monotonic()
        for each in findings:
            if each.code == SUSPICIOUS and each.where not in known:
                self._suspected[each.where] = now_s, each

    def changed(self, done: KafkaBackupDone) -> bool:
        return done.changed

    def state(self, done: KafkaBackupDone | None, took_s: float) -> SourceState:
        """The newest backup and its lag after a round. Also sets `lag`."""
        assert done is not None  # noqa: S101  `round` always returns one
        began_s = self.monotonic() - took_s
        with Cluster(self.backup.settings) as cluster:
            readings = self._read(cluster, done, began_s)
            late = sorted({log.topic for log, reading in readings.items() if reading.lag_offsets})
            retention = _retention(cluster, late)
        lag_offsets, lag_bytes = total_lag(readings.values())
        took_s = max(self.monotonic() - began_s, 1e-3)
        near = near_s(max(self.interval_s, took_s), lag_offsets, done.plan.records / took_s if done.changed else 0.0)
        found = threats(readings, self._anchors[0] if self._anchors else {}, retention, near)
        self._remember(readings)
        self.lag = Lag(lag_offsets, lag_bytes, found, _deletions_left_s(done, took_s))
        return SourceState(done.entry.id, lag_offsets, max(600, int(10 * max(self.interval_s, took_s))))

    def _read(self, cluster: Cluster, done: KafkaBackupDone, began_s: float) -> dict[TopicPartition, LogReading]:
        archived = {TopicPartition(r.topic, r.partition): r for r in done.logs}
        ends = list_offsets(cluster, list(archived), At.LATEST)
        now_s = self.monotonic()
        return {
            log: LogReading(r.start, r.end, ends[log].offset, _bytes_per_offset(done, log), began_s, now_s)
            for log, r in archived.items()
        }

    def _remember(self, readings: Readings) -> None:
        """Keep the readings of about ten minutes ago, and one set to replace them later."""
        now_s = self.monotonic()
        if not self._anchors or all(now_s - each.read_at_s >= _ANCHOR_S for each in self._anchors[-1].values()):
            self._anchors = [*self._anchors[-1:], readings]

    def merge(self) -> Optimized | None:
        task = optimizing(self.place, self.backup.clock, self.backup.tokens, self.options.lease_ttl)
        return task.run(MergeRule(self.options.segment_bytes, MERGE_LEAST), self.engine_for)

    def retry_cures(self, error: LogkeepError) -> bool:
        """Whether the next round may succeed without any action of the user.

        A broker or a store that does not answer, another run's lease, a full disk that is being freed, a failed task, a
        topic deleted between two requests: yes. A password, a certificate, a permission, another cluster under this
        name, damage, a topic in an old format: no.
        """
        if isinstance(error, OldMessageFormat):
            return False
        return error.retry_helps or isinstance(error, Locked | StoreFull | BackupFailed | TopicMissing)


def _seen(facts: Facts) -> dict[TopicPartition, SeenLog]:
    epochs = {TopicPartition(t.name, p.index): p.leader_epoch for t in facts.topics for p in t.partitions}
    return {log: SeenLog(epoch, facts.bounds[log].high_watermark) for log, epoch in epochs.items()}


def _deletions_left_s(done: KafkaBackupDone, took_s: float) -> float | None:
    facts = done.facts
    rules = {name: cleanup_rule(each.own, each.inherited) for name, each in facts.configs.items()}
    compacted = {t.name for t in facts.topics if rules[t.name].compacts and not is_internal(t.name, t.internal)}
    now_ms = facts.cut.ms + int(took_s * 1000) if facts.cut is not None else 0
    return least_left_s(done.logs, compacted, now_ms)


def _retention(cluster: Cluster, topics: list[str]) -> dict[str, Retention]:
    found = describe_configs(cluster, ResourceKind.TOPIC, topics, keys=_KEYS) if topics else {}
    return {name: retention_of({c.name: c.value or "" for c in configs}) for name, configs in found.items()}


def _bytes_per_offset(done: KafkaBackupDone, log: TopicPartition) -> float:
    """The average of what the broker holds; 0 when the broker does not report sizes."""
    bounds = done.facts.bounds[log]
    return done.facts.sizes.get(log, 0) / max(bounds.high_watermark - bounds.start, 1)
