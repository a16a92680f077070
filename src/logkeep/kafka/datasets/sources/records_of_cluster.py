"""Visible records of the logs of a cluster, as Arrow, read from their leaders up to the last stable offset."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np

from logkeep.errors import BackupFailed
from logkeep.formats.kafka.batches import CONTROL, Batches, BatchStretch
from logkeep.formats.kafka.record_view import View, chosen, readable
from logkeep.formats.kafka.transactions import committed_batches
from logkeep.kafka.client.fetch import AbortedTransaction, FetchLimits
from logkeep.kafka.client.retry import ProgressBackoff
from logkeep.kafka.datasets.values import LogToExport, ReadCounts
from logkeep.kafka.logs.brokers import Brokers, opened
from logkeep.kafka.logs.live import LiveLogs, LiveRange, Lost, read_ahead
from logkeep.kafka.logs.read_times import times_between
from logkeep.model.work import Progress

if TYPE_CHECKING:
    import pyarrow as pa

_LANES = 2


@dataclass(frozen=True)
class ClusterRecords:
    """How a task reads the logs of one cluster. Picklable."""

    brokers: Brokers
    committed: bool
    limits: FetchLimits = field(default_factory=FetchLimits)

    @contextmanager
    def opened(self) -> Iterator["OpenClusterRecords"]:
        backoff = ProgressBackoff(time.sleep, time.monotonic)
        with (
            opened(self.brokers) as brokers,
            closing(LiveLogs(brokers, -1, self.limits, backoff, _LANES)) as logs,
        ):
            yield OpenClusterRecords(self, brokers, logs, backoff)


@dataclass(frozen=True)
class _Reply:
    """Batches, and what their broker said of the log."""

    part: BatchStretch | Lost
    aborted: tuple[AbortedTransaction, ...]
    log_start: int


@dataclass(frozen=True)
class OpenClusterRecords:
    """Connections and state for reading the logs of one unit."""

    source: ClusterRecords
    brokers: Brokers
    logs: LiveLogs
    """Connections and their buffers serve all logs: to make them takes as long as to read some megabytes."""
    backoff: ProgressBackoff
    """How long `logs` retries."""

    def read(
        self, planned: LogToExport, start: int, counts: ReadCounts, progress: Progress
    ) -> Iterator["pa.RecordBatch"]:
        """The visible records of `[start, end)`. Raises errors of the cluster; BackupFailed if the log is another one
        now."""
        from logkeep.formats.datasets.arrow import arrow_records  # noqa: PLC0415 - the driver does not need it

        begin, at, view = self.brokers.now(), start, View(start, planned.end)
        with closing(read_ahead(self._replies(planned, start), "fetch")) as replies:
            for reply in replies:
                if isinstance(reply.part, Lost):
                    raise BackupFailed(reply.part.reason, subject=str(planned.log))
                if reply.log_start > at:
                    counts.lost.append((at, min(reply.log_start, planned.end)))
                stretch = view.touching(reply.part)
                at = max(at, reply.part.last + 1)
                size = int(stretch.batches.sizes.sum())
                counts.fetched_bytes += size
                counts.dense_offsets += dense_offsets(stretch.batches, max(start, planned.start), planned.end)
                for records in readable(
                    stretch.buffer, chosen(stretch.batches, self._visible_batches(stretch, reply)), view
                ):
                    yield arrow_records(records)
                progress(size)
        counts.times = times_between(begin, self.brokers.now())

    def _visible_batches(self, stretch: BatchStretch, reply: _Reply) -> "np.typing.NDArray[np.bool_]":
        if self.source.committed:
            return committed_batches(stretch.buffer, stretch.batches, reply.aborted)
        found: np.typing.NDArray[np.bool_] = stretch.batches.headers["attributes"] & CONTROL == 0
        return found

    def _replies(self, planned: LogToExport, start: int) -> Iterator[_Reply]:
        source = planned.source
        wanted = LiveRange(source.log.topic, UUID(source.history[:32]), source.log.partition, start, source.end)
        self.backoff.progress()  # to end the file of the last log may have taken minutes
        for part in self.logs.read(wanted, source.broker):
            yield _Reply(part, self.logs.aborted, self.logs.reported_start)


def dense_offsets(batches: Batches, start: int, end: int) -> int:
    """How many offsets of `[start, end)` are in batches that have a record, or a marker, at each of their offsets."""
    firsts, lasts = batches.base_offsets, batches.last_offsets
    whole = batches.headers["records"] == lasts - firsts + 1
    within = np.minimum(lasts + 1, end) - np.maximum(firsts, start)
    return int(np.maximum(within, 0)[whole].sum())
