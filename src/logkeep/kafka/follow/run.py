"""Following a cluster: plan, copy, commit, and again, until somebody wishes to stop.

Every commit is a restorable point. The lease is held within a round and free between rounds. A round that failed for a
reason that passes is told and tried again, resuming what it had copied; any other error ends the run. Decisions are in
`follow_rules`, `overtaking` and `merge_plan`.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from logkeep.errors import Interrupted, LogkeepError
from logkeep.kafka.admin.offsets import At, list_offsets
from logkeep.kafka.admin.topics import ResourceKind, describe_configs
from logkeep.kafka.backup.run import KafkaBackup, KafkaBackupDone, KafkaBackupOptions
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.follow.retention_race import LogLook, Retention, Threat, near_s, retention_of, threats, total_lag
from logkeep.kafka.follow.rules import MERGE_LEAST, merging_due, next_look_s, pause_s, retry_cures
from logkeep.kafka.merge import optimizing
from logkeep.model.work import EngineFor
from logkeep.repository.chain.freshness import put_freshness
from logkeep.repository.upkeep.merge_plan import MergeRule
from logkeep.repository.upkeep.optimize import Optimized

_ANCHOR_S = 600.0
_KEYS = ("cleanup.policy", "retention.ms", "retention.bytes")
Looks = Mapping[TopicPartition, LogLook]


class Stopping(Protocol):
    """Somebody's wish to stop."""

    @property
    def requested(self) -> bool:
        """The round under way shall be the last."""

    def wait(self, seconds: float) -> None:
        """Sleep, at most until the wish."""

    def raising(self) -> AbstractContextManager[None]:
        """Inside, a second wish raises at once."""


@dataclass(frozen=True)
class KafkaFollowRound:
    """What became of one round."""

    number: int
    took_s: float = 0.0
    done: KafkaBackupDone | None = None
    lag_offsets: int | None = None
    """What the cluster had beyond the archive when the round ended; None when it could not be asked."""
    lag_bytes: int | None = None
    threats: tuple[Threat, ...] = ()
    merged: Optimized | None = None
    error: LogkeepError | None = None
    """Why it failed, or, with `done`, what could not be done after its commit."""
    again_in_s: float = 0.0


@dataclass
class KafkaFollower:
    """One run. `tell` gets every round as it ends."""

    backup: KafkaBackup
    wish: KafkaBackupOptions
    engine_for: EngineFor
    stop: Stopping
    interval_s: float
    tell: Callable[[KafkaFollowRound], None]
    monotonic: Callable[[], float] = time.monotonic
    _asked: bool = False
    _committed: int = 0
    _anchors: list[Looks] = field(default_factory=list)
    """Earlier looks, some minutes apart: the first is what rates are measured against."""

    def run(self) -> None:
        """Until a wish to stop. Raises what no retry cures, and the stop's own error for a second wish."""
        self.wish = replace(self.wish, resume=True)
        number = failures = 0
        while True:
            number += 1
            began_s = self.monotonic()
            with self.stop.raising():
                one = self._round(number, began_s)
            took_s = self.monotonic() - began_s
            failures = failures + 1 if one.done is None else 0
            again_s = pause_s(self.interval_s, took_s, failures)
            self.tell(replace(one, took_s=took_s, again_in_s=again_s))
            self.stop.wait(again_s)
            if self.stop.requested:
                return

    def _round(self, number: int, began_s: float) -> KafkaFollowRound:
        looked = self.backup.clock()
        try:
            self._refuse_the_impossible()
            done = self.backup.run_if_changed(self.wish, self.engine_for)
        except LogkeepError as error:
            if not retry_cures(error):
                raise
            return KafkaFollowRound(number, error=error)
        self._committed += done.changed
        return self._after(KafkaFollowRound(number, done=done), done, looked, began_s)

    def _refuse_the_impossible(self) -> None:
        """Once, before anything is written: a wrong password or another cluster leaves no trace, not even a lease."""
        if not self._asked:
            self.backup.prepare(self.wish)
            self._asked = True

    def _after(
        self, one: KafkaFollowRound, done: KafkaBackupDone, looked: datetime, began_s: float
    ) -> KafkaFollowRound:
        """What follows a commit cannot undo it: trouble is told, and the round counts."""
        try:
            one = self._measured(one, done, began_s)
            within_s = next_look_s(self.interval_s, self.monotonic() - began_s)
            put_freshness(self.backup.place, looked, done.entry.id, one.lag_offsets or 0, within_s)
            return replace(one, merged=self._merged())
        except Interrupted:
            raise
        except LogkeepError as error:
            return replace(one, error=error)

    def _measured(self, one: KafkaFollowRound, done: KafkaBackupDone, began_s: float) -> KafkaFollowRound:
        with Cluster(self.backup.settings) as cluster:
            looks = self._looks(cluster, done, began_s)
            behind = sorted({log.topic for log, look in looks.items() if look.lag_offsets})
            retention = _retention(cluster, behind)
        lag_offsets, lag_bytes = total_lag(looks.values())
        took_s = max(self.monotonic() - began_s, 1e-3)
        near = near_s(max(self.interval_s, took_s), lag_offsets, done.plan.records / took_s if done.changed else 0.0)
        found = threats(looks, self._anchors[0] if self._anchors else {}, retention, near)
        self._remember(looks)
        return replace(one, lag_offsets=lag_offsets, lag_bytes=lag_bytes, threats=found)

    def _looks(self, cluster: Cluster, done: KafkaBackupDone, began_s: float) -> dict[TopicPartition, LogLook]:
        archived = {TopicPartition(r.topic, r.partition): r for r in done.logs}
        ends = list_offsets(cluster, list(archived), At.LATEST)
        now_s = self.monotonic()
        return {
            log: LogLook(r.start, r.end, ends[log].offset, _bytes_per_offset(done, log), began_s, now_s)
            for log, r in archived.items()
        }

    def _remember(self, looks: Looks) -> None:
        """Keep the look of about ten minutes ago, and one to take its place later."""
        now_s = self.monotonic()
        if not self._anchors or all(now_s - look.seen_at_s >= _ANCHOR_S for look in self._anchors[-1].values()):
            self._anchors = [*self._anchors[-1:], looks]

    def _merged(self) -> Optimized | None:
        if self.stop.requested or not merging_due(self._committed):
            return None
        self._committed = 0
        task = optimizing(self.backup.place, self.backup.clock, self.backup.tokens, self.wish.lease_ttl)
        return task.run(MergeRule(self.wish.segment_bytes, MERGE_LEAST), self.engine_for)


def _retention(cluster: Cluster, topics: list[str]) -> dict[str, Retention]:
    found = describe_configs(cluster, ResourceKind.TOPIC, topics, keys=_KEYS) if topics else {}
    return {name: retention_of({c.name: c.value or "" for c in configs}) for name, configs in found.items()}


def _bytes_per_offset(done: KafkaBackupDone, log: TopicPartition) -> float:
    """Of what the broker holds, on average; 0 when sizes may not be asked."""
    bounds = done.facts.bounds[log]
    return done.facts.sizes.get(log, 0) / max(bounds.high_watermark - bounds.start, 1)
