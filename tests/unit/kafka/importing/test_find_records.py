"""`show --from` names the offsets that a dataset lost, among those that it read."""

from pathlib import Path
from typing import Any

import pytest

from logkeep.kafka.importing.find_records import find_in_dataset
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.kafka.scan.find import RecordQuestion
from tests.support.kafka.listed_exports import ListedExports, exportable

FORMATS = ("kafka-backup-v1", "avro", "parquet")


def written(directory: Path, form: str, *lost: int) -> ListedExports:
    """Five records, each in a file, without the files of some of them."""
    exports = ListedExports(directory, form, segment_bytes=1)
    exports.add(exportable("o", 0, 0, 5), 0, 1, 2, 3, 4)
    names = [name for start in lost for name in (f"_{start:010}_", f"-{start:020}.")]
    for path in directory.rglob("*"):
        if any(name in path.name for name in names):
            path.unlink()
    return exports


def shown(exports: ListedExports, **asked: Any) -> tuple[list[int], list[tuple[int, int]]]:
    """Offsets of the records, and ranges of lost ones."""
    question = RecordQuestion("o", **asked)
    found, lost = find_in_dataset(open_dataset(exports.target.store), question, "here")
    return [record.offset for record in found.records], [(gap.start, gap.end) for _, gap in lost]


@pytest.mark.parametrize("form", FORMATS)
def test_a_missing_file_is_named(form: str, tmp_path: Path) -> None:
    assert shown(written(tmp_path, form)) == ([0, 1, 2, 3, 4], [])
    exports = written(tmp_path / "damaged", form, 2)
    assert shown(exports) == ([0, 1, 3, 4], [(2, 3)])
    assert shown(exports, last=True, limit=1) == ([4], [(2, 3)])


@pytest.mark.parametrize("form", FORMATS)
def test_only_the_offsets_that_were_read_count(form: str, tmp_path: Path) -> None:
    exports = written(tmp_path, form, 2)
    assert shown(exports, limit=1) == ([0], [])
    assert shown(exports, partition=0, offset=3) == ([3, 4], [])
    assert shown(exports, partition=0, offset=1) == ([1, 3, 4], [(2, 3)])
    assert shown(exports, partition=0, offset=3, exactly=True) == ([3], [])


@pytest.mark.parametrize("form", FORMATS)
def test_records_at_the_end_are_missing(form: str, tmp_path: Path) -> None:
    exports = written(tmp_path, form, 3, 4)
    assert shown(exports) == ([0, 1, 2], [(3, 5)])
    gap = (3, 5) if form == "kafka-backup-v1" else (4, 5)  # an index names the whole gap
    assert shown(exports, partition=0, offset=4) == ([], [gap])


@pytest.mark.parametrize("form", FORMATS)
def test_what_the_source_had_removed_is_named(form: str, tmp_path: Path) -> None:
    exports = ListedExports(tmp_path, form)
    exports.add(exportable("o", 0, 0, 2), 0, 1)
    exports.add(exportable("o", 0, 5, 7), 5, 6)
    assert shown(exports) == ([0, 1, 5, 6], [(2, 5)])
    assert shown(exports, partition=0, offset=3) == ([5, 6], [(2, 5)])
    assert shown(exports, partition=0, offset=5) == ([5, 6], [])
