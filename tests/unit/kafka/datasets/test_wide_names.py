"""Partitions above 999 and offsets above 10^10 in made logs: wider names, from export to every command of upkeep."""

from pathlib import Path

import pytest

from logkeep.kafka.dataset_upkeep.contents import contents_of
from logkeep.kafka.dataset_upkeep.dataset import open_existing
from logkeep.kafka.dataset_upkeep.prune import PrunedPartition, delete_segments
from logkeep.kafka.dataset_upkeep.reindex import reindex_partition
from logkeep.kafka.dataset_upkeep.segments import segments_of
from logkeep.kafka.dataset_upkeep.verify import read_back
from logkeep.kafka.datasets.format_table import FORMAT_NAMES
from logkeep.kafka.importing.reader import ReadNotes
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.store.memory import MemoryStore
from tests.support.kafka.listed_exports import ID, ListedExports, ListedSource, exportable, exportable_logs, rows

LOGS = {
    DatasetLog("o", 7): 0,
    DatasetLog("o", 999): 5,
    DatasetLog("o", 1000): 10**10 - 3,
    DatasetLog("o", 12345): 2**62,
}
"""The start of each; of one the offsets get a digit more on the way."""


def _source(count: int) -> ListedSource:
    logs = [exportable(log.topic, log.partition, start, start + count, ID) for log, start in LOGS.items()]
    return ListedSource(exportable_logs(*logs), {log: rows(*range(s, s + count)) for log, s in LOGS.items()})


@pytest.mark.parametrize("place", ["directory", "objects"])
@pytest.mark.parametrize("form", FORMAT_NAMES)
def test_wide_names(form: str, place: str, tmp_path: Path) -> None:
    exports = ListedExports(tmp_path / "d" if place == "directory" else MemoryStore(), form, segment_bytes=1)
    for count, added in ((4, 16), (9, 20), (9, 0)):
        assert exports.run(_source(count)).sum("records") == added
    target = exports.target
    found = {
        DatasetLog(each.topic, each.partition): [o for b in each.records(ReadNotes()) for o in b["offset"].to_pylist()]
        for each in open_dataset(target.store).partitions
    }
    assert found == {log: list(range(start, start + 9)) for log, start in LOGS.items()}
    dataset = open_existing(target)
    assert {(c.partition, c.first, c.files) for c in contents_of(dataset)} == {
        (log.partition, start, 9) for log, start in LOGS.items()
    }
    assert not [f for each in read_back(target) for f in each.findings]
    for log, files in dataset.v1.items():
        assert not any(each.written for each in reindex_partition(target, *log, files, dry_run=True))
    gone = [PrunedPartition(*log, segments[:-2], 2, "") for log, segments in segments_of(dataset).items()]
    assert len(list(delete_segments(target, dataset.document, gone))) >= 28
    left = list(read_back(target))
    assert not [f for each in left for f in each.findings]
    assert {(each.first, each.last) for each in left} == {(start + 7, start + 8) for start in LOGS.values()}
    assert exports.run(_source(10)).sum("records") == 4
