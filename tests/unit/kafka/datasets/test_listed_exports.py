"""Runs of an export one after another, with records from a list: nothing is lost, mixed or forgotten."""

from pathlib import Path

import pytest

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.kafka.datasets.documents import read_document
from logkeep.kafka.datasets.formats import DatasetLog
from tests.support.kafka.listed_exports import ID, ListedExports, ListedSource, exportable, exportable_logs, rows
from tests.support.kafka.v1_reader import records

LOG, OTHER = DatasetLog("o", 0), DatasetLog("o", 1)


def offsets(root: Path, partition: int = 0, topic: str = "o") -> list[int]:
    return [each.offset for each in records(root / topic, partition)]


def test_a_topic_is_not_rewritten_without_all_its_partitions(tmp_path: Path) -> None:
    root = tmp_path / "d"
    exports, data = ListedExports(root), {LOG: rows(*range(5)), OTHER: rows(*range(5))}
    both = exportable_logs(exportable("o", 0, 0, 5), exportable("o", 1, 0, 5))
    exports.run(ListedSource(both, data))
    for partitions in (1, 2):  # the other one is in the dataset only, or in the source too
        part = exportable_logs(exportable("o", 0, 0, 5), partitions=partitions)
        with pytest.raises(UsageError, match="o/1 is not among the exported partitions"):
            exports.run(ListedSource(part, data), "o")
    assert offsets(root, 1) == [0, 1, 2, 3, 4]
    exports.run(ListedSource(both, data), "o")
    assert offsets(root, 0) == offsets(root, 1) == [0, 1, 2, 3, 4]


def test_a_topic_that_was_created_again_with_fewer_partitions_is_rewritten(tmp_path: Path) -> None:
    exports, old = ListedExports(tmp_path / "d"), "b" * 32
    before = exportable_logs(exportable("o", 0, 0, 2, old), exportable("o", 1, 0, 2, old))
    exports.run(ListedSource(before, {LOG: rows(0, 1), OTHER: rows(0, 1)}))
    exports.run(ListedSource(exportable_logs(exportable("o", 0, 0, 1)), {LOG: rows(0)}), "o")
    assert offsets(tmp_path / "d") == [0]


@pytest.mark.parametrize("form", ["kafka-backup-v1", "avro"])
def test_an_archived_log_that_lost_its_end_and_grew_again_is_refused(tmp_path: Path, form: str) -> None:
    exports = ListedExports(tmp_path / "d", form)
    exports.add(exportable("o", 0, 0, 5, ID), *range(5))
    with pytest.raises(TargetUnsafe, match="lost its end"):
        exports.add(exportable("o", 0, 0, 8, f"{ID}-1"), *range(8), value=b"other")
    assert exports.add(exportable("o", 0, 0, 6, ID), *range(6)).sum("records") == 1


def test_the_whole_name_of_a_history_is_noted_before_its_first_record(tmp_path: Path) -> None:
    """A dataset that a cluster began, continued from a backup by a run that fails."""
    exports = ListedExports(tmp_path / "d", segment_bytes=1)
    exports.add(exportable("o", 0, 0, 3), *range(3))
    found = exportable_logs(exportable("o", 0, 0, 6, f"{ID}-1"))
    with pytest.raises(TargetUnsafe, match="network"):
        exports.run(ListedSource(found, {LOG: rows(*range(6))}, {LOG: (4, TargetUnsafe("network"))}))
    with pytest.raises(TargetUnsafe, match="lost its end"):
        exports.add(exportable("o", 0, 0, 8, f"{ID}-2"), *range(8))
    document = read_document(exports.target)
    assert document is not None
    assert (document.noted[LOG].history, document.noted[LOG].archived) == (f"{ID}-1", True)
    exports.add(exportable("o", 0, 0, 7), *range(7))
    assert offsets(tmp_path / "d") == [*range(7)]
