"""Two runs that write one dataset in a bucket at the same time: one of them ends with 50, and no record is lost."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from logkeep.errors import Locked
from logkeep.kafka.datasets.formats import DatasetOptions
from logkeep.kafka.datasets.kafka_backup_v1 import KafkaBackupV1
from logkeep.kafka.datasets.values import LogToExport, ReadCounts
from logkeep.kafka.importing.reader import ReadNotes
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.model.work import Progress
from logkeep.store.memory import MemoryStore
from tests.support.kafka.arrow_rows import record_batch
from tests.support.kafka.listed_exports import ListedExports, ListedSource, exportable, exportable_logs, rows

LOG = DatasetLog("o", 0)


@dataclass(frozen=True)
class Overtaken(ListedSource):
    """A whole run of another process comes between the last record that is read and the end of the task."""

    other: ListedExports = field(default_factory=lambda: ListedExports(MemoryStore()))

    def read(
        self, planned: LogToExport, start: int, counts: ReadCounts, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        yield from super().read(planned, start, counts, progress)
        self.other.add(exportable("o", 0, 0, 12), *range(12))


def offsets(store: MemoryStore) -> list[int]:
    (partition,) = open_dataset(store).partitions
    return [each for batch in partition.records(ReadNotes()) for each in batch.column("offset").to_pylist()]


@pytest.mark.parametrize("form", ["kafka-backup-v1", "avro", "parquet"])
@pytest.mark.parametrize("other_bytes", [1, 1000])
@pytest.mark.parametrize("own_bytes", [1, 1000])
def test_the_slower_run_ends_and_the_records_of_the_other_stay(form: str, other_bytes: int, own_bytes: int) -> None:
    store = MemoryStore()
    ListedExports(store, form).add(exportable("o", 0, 0, 2), 0, 1)
    other = ListedExports(store, form, segment_bytes=other_bytes)
    slow = Overtaken(exportable_logs(exportable("o", 0, 0, 4)), {LOG: rows(*range(4))}, other=other)
    with pytest.raises(Locked, match="another run writes this dataset"):
        ListedExports(store, form, segment_bytes=own_bytes).run(slow)
    assert offsets(store) == [*range(12)]
    ListedExports(store, form).add(exportable("o", 0, 0, 14), *range(14))
    assert offsets(store) == [*range(14)]


def test_a_partition_index_is_replaced_only_as_it_was_read() -> None:
    store = MemoryStore()
    exports, form = ListedExports(store), KafkaBackupV1()
    exports.add(exportable("o", 0, 0, 2), 0, 1)
    writer = form.writer(exports.target, LOG, DatasetOptions(1))
    exports.add(exportable("o", 0, 0, 4), *range(4))
    writer.write(record_batch(rows(4)))
    with pytest.raises(Locked):
        writer.finish()
    writer.abort()
    exports.add(exportable("o", 0, 0, 6), *range(6))
    assert offsets(store) == [*range(6)]
