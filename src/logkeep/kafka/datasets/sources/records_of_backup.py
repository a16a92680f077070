"""Visible records of the logs of a backup, as Arrow, up to the last stable offset at its cut."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from logkeep.kafka.datasets.values import LogToExport, ReadCounts
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.kafka.scan.plan import narrowed
from logkeep.kafka.scan.values import ScanCounters, ScanRange
from logkeep.model.work import Progress

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class BackupRecords:
    """How a task reads logs of one backup. Picklable."""

    ranges: Mapping[DatasetLog, ScanRange]

    @contextmanager
    def opened(self) -> Iterator["BackupRecords"]:
        """Itself: nothing has to be opened."""
        yield self

    def only(self, logs: tuple[LogToExport, ...]) -> "BackupRecords":
        return BackupRecords({each.log: self.ranges[each.log] for each in logs if each.log in self.ranges})

    def read(
        self, planned: LogToExport, start: int, counts: ReadCounts, progress: Progress
    ) -> Iterator["pa.RecordBatch"]:
        """The visible records of `[start, planned.end)`. Raises Damaged or another StoreError."""
        from logkeep.kafka.scan.read import read_range  # noqa: PLC0415 - the driver does not need it

        whole = self.ranges.get(planned.log)
        if whole is None or start >= planned.end:
            return
        wanted = narrowed(msgspec.structs.replace(whole, start=max(start, whole.start), end=planned.end))
        counters, done = ScanCounters(), 0
        for batch in read_range(wanted, counters):
            yield batch
            progress(counters.stored_bytes - done)
            done = counters.stored_bytes
        counts.fetched_bytes += counters.stored_bytes
