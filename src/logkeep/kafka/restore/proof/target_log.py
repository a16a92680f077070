"""A restored partition read back for its proof: its batches, which of them are records, and its log start."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from uuid import UUID

import numpy as np

from logkeep.errors import ClusterNotReady, NotAuthorised, TopicMissing
from logkeep.formats.compare.first_difference import Deviation
from logkeep.formats.compare.record_compare import Flags, LogSide
from logkeep.formats.kafka import record_kernels as kernels
from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL, Batches, BatchStretch, Longs
from logkeep.formats.kafka.record_view import View, chosen
from logkeep.formats.kafka.records import RecordColumns, decode
from logkeep.formats.kafka.transactions import COMMIT, Settling
from logkeep.kafka.admin.offsets import At, list_offsets
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.retry import RESTART, Pause, ProgressBackoff
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.brokers import Brokers
from logkeep.kafka.logs.live import LiveLogs, LiveRange, Lost, cause_text, read_ahead
from logkeep.kafka.logs.lost_offset import Cause, LogPosition
from logkeep.kafka.restore.facts.units import Offsets, ReplayLog
from logkeep.model.work import Progress

_IN_TURN = 2
"""Connections: one receives while the bytes of the other are compared."""


class Refuted(Exception):
    """The target cannot be what was restored."""

    def __init__(self, deviation: Deviation) -> None:
        super().__init__(deviation.what)
        self.deviation = deviation


class TargetLog:
    """Offsets `[start, end)` of the partition that a log was restored to."""

    def __init__(
        self,
        log: ReplayLog,
        brokers: Brokers,
        end: int,
        progress: Progress,
        pause: Pause,
        known_start: int | None = None,
    ) -> None:
        self._log, self._brokers, self._progress, self._pause = log, brokers, progress, pause
        self._known_start = known_start
        self._kept = log.offsets is Offsets.PRESERVE
        self.start, self.end = log.first.start if self._kept else log.base, end
        self.name = f"the target {log.target}"
        self.fetched_bytes = 0
        self._logs: LiveLogs | None = None

    def side(self, stack: ExitStack, start: int = -1) -> LogSide:
        """The target's records from an offset on. The stack closes the reader. Raises Refuted while it is read."""
        start = max(start, self.start)
        view = View(start, self.end)
        return LogSide(self._stretches(stack, start), view, self._counted, self.name)

    def begins(self) -> int:
        """The log start. Raises Refuted when the topic was deleted or recreated.

        If the log was fetched, the start in the last reply counts: the start may have moved up since it was read first,
        and a fetch still returns the deleted part of the first batch.
        """
        reported = self._logs.reported_start if self._logs is not None else -1
        if reported >= 0:
            return reported
        if self._known_start is not None:
            return self._known_start
        topic_id = UUID(self._log.topic_id)
        facts = self._brokers.facts(self._log.topic, self._log.partition, LogPosition(topic_id, self.start))
        if facts.topic_id != topic_id:
            raise self._lost(cause_text(Cause.RECREATED if facts.topic_id else Cause.DELETED))
        return facts.log_start

    def _counted(self, batches: Batches) -> Flags:
        """Batches with records. With kept offsets, transactions fill holes; otherwise a restore writes none."""
        no_record = CONTROL | TRANSACTIONAL if self._kept else CONTROL
        counted: Flags = (batches.headers["attributes"] & no_record) == 0
        return counted

    def _stretches(self, stack: ExitStack, start: int) -> Iterator[BatchStretch]:
        log, topic_id = self._log, UUID(self._log.topic_id)
        if start >= self.end:
            return
        leader = self._brokers.leader(log.topic, topic_id, log.partition).broker
        logs = LiveLogs(self._brokers, leader, FetchLimits(), ProgressBackoff(self._pause, limit=RESTART), _IN_TURN)
        stack.enter_context(closing(logs))
        self._logs = logs
        wanted = LiveRange(log.topic, topic_id, log.partition, start, self.end)
        reading = read_ahead(logs.read(wanted, leader), "target")
        stack.callback(reading.close)
        settling = Settling()
        for part in reading:
            if isinstance(part, Lost):
                raise self._lost(part.reason)
            self.fetched_bytes += len(part.buffer)
            self._progress(len(part.buffer))
            if self._kept:
                ours = part.touching(start, self.end)
                _check_markers(ours)
                settling.take(ours.buffer, ours.batches)
            yield part
        for still in settling.settled().open[:1]:
            raise Refuted(Deviation(still.first_offset, "a transaction of another client begins here and does not end"))

    def _lost(self, reason: str) -> Refuted:
        return Refuted(Deviation(self.start, f"the target cannot be read to offset {self.end}: {reason}"))


def log_starts(cluster: Cluster, logs: Sequence[ReplayLog]) -> dict[TopicPartition, int]:
    """The log starts of targets, in one request for each leader. Those that are not known now are left out."""
    there = {t.name: t.id.hex for t in cluster.metadata().topics}
    ours = [log.key for log in logs if there.get(log.topic) == log.topic_id]
    try:
        found = list_offsets(cluster, ours, At.EARLIEST) if ours else {}
    except (NotAuthorised, TopicMissing, ClusterNotReady):
        return {}  # one of them fails the request for all: each is asked by itself
    return {log: each.offset for log, each in found.items()}


def _check_markers(stretch: BatchStretch) -> None:
    """All our transactions are aborted; a committed one is another client's, and its records are visible."""
    control = (stretch.batches.headers["attributes"] & CONTROL) != 0
    for part in decode(stretch.buffer, chosen(stretch.batches, control)) if control.any() else ():
        if isinstance(part, RecordColumns):
            committed = part.offsets[_kinds(part) == COMMIT]
            if len(committed):
                raise Refuted(Deviation(int(committed[0]), "a transaction of another client was committed here"))


def _kinds(markers: RecordColumns) -> Longs:
    """The type of each marker; -1 for one without a key."""
    at, size = markers.spans[:, kernels.KEY_AT], markers.spans[:, kernels.KEY_SIZE]
    there = size >= 4
    kinds = np.full(len(markers), -1, np.int64)
    kinds[there] = markers.data[at[there] + 2].astype(np.int64) << 8 | markers.data[at[there] + 3]
    return kinds
