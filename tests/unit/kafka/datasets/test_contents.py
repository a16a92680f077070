"""`dataset info` of Avro and Parquet: offsets and groups as they are noted, and nothing that may be wrong."""

from pathlib import Path

import pytest

from logkeep.kafka.dataset_upkeep.contents import contents_of
from logkeep.kafka.dataset_upkeep.dataset import open_existing
from logkeep.kafka.record.documents import CommitRecord, GroupRecord
from tests.support.kafka.listed_exports import ListedExports, ListedSource, exportable, exportable_logs, rows


def offsets(exports: ListedExports) -> list[tuple[int | None, int | None, int]]:
    return [(each.first, each.last, each.files) for each in contents_of(open_existing(exports.target))]


@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_the_last_offset_is_the_noted_one_while_the_last_file_is_there(form: str, tmp_path: Path) -> None:
    exports = ListedExports(tmp_path / "d", form, segment_bytes=1)
    exports.add(exportable("o", 0, 0, 5), 0, 1, 4)
    exports.add(exportable("o", 0, 0, 9), 0, 1, 4, 5, 8)
    assert offsets(exports) == [(0, 8, 5)]
    *_, newest = (info.name for info in exports.target.names("topics/"))
    exports.target.remove(newest)
    assert offsets(exports) == [(0, None, 4)]


@pytest.mark.parametrize("form", ["avro", "parquet", "kafka-backup-v1"])
def test_groups_with_a_position_are_counted(form: str, tmp_path: Path) -> None:
    exports, log = ListedExports(tmp_path / "d", form), exportable("o", 0, 0, 5)
    commit = CommitRecord("o", 0, 3, 3, -1, "")
    groups = [
        GroupRecord(name, "consumer", "Empty", "consumer", found) for name, found in (("g", (commit,)), ("n", ()))
    ]
    exports.run(ListedSource(exportable_logs(log, groups=groups), {log.log: rows(0, 1, 4)}))
    assert open_existing(exports.target).groups() == {"g"}
