"""Reads and checks every partition of a dataset: for `verify`, and for rewritten topics."""

from collections.abc import Iterator

from logkeep.kafka.dataset_upkeep.dataset import ExistingDataset, open_existing
from logkeep.kafka.dataset_upkeep.verify import CheckedPartition, check_partition, check_v1
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.record.dataset_document import DatasetLog


def checked_partitions(dataset: ExistingDataset) -> Iterator[CheckedPartition]:
    for (topic, number), files in dataset.v1.items():
        yield check_v1(dataset.target.store, topic, number, files)
    noted = dataset.document.noted if dataset.document is not None else {}
    for each in dataset.reader.partitions if dataset.reader is not None else ():
        note = noted.get(DatasetLog(each.topic, each.partition))
        yield check_partition(each, note.starts if note is not None else ())


def read_back(target: DatasetTarget) -> Iterator[CheckedPartition]:
    """Open a dataset and check all of its partitions. Raises what `open_existing` raises."""
    yield from checked_partitions(open_existing(target))
