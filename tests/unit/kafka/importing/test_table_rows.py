"""What the tables of a dataset lack is known without reading a record."""

import random
from pathlib import Path

import pytest

from logkeep.kafka.importing.reader import DatasetReader
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.kafka.importing.table_rows import dataset_tables, missing_files
from logkeep.kafka.importing.writer_notes import with_lost_partitions
from logkeep.store.local.store import LocalStore
from tests.support.datasets.oso_files import write_archive
from tests.support.datasets.v1_files import HandRecord
from tests.support.kafka.listed_exports import ListedExports, exportable

FORMATS = ("kafka-backup-v1", "avro", "parquet")


def opened(directory: Path) -> DatasetReader:
    return with_lost_partitions(open_dataset(LocalStore(directory)))


def found(directory: Path) -> list[tuple[str, str, str]]:
    return [(f.code, f.where, f.what.partition(" are ")[0]) for f in missing_files(opened(directory))]


def without(directory: Path, *starts: int) -> None:
    """Delete the files that begin with these offsets."""
    names = [name for start in starts for name in (f"_{start:010}_", f"-{start:020}.")]
    for path in directory.rglob("*"):
        if any(name in path.name for name in names):
            path.unlink()


@pytest.mark.parametrize("form", FORMATS)
def test_missing_files_of_a_partition(form: str, tmp_path: Path) -> None:
    ListedExports(tmp_path, form, segment_bytes=1).add(exportable("o", 0, 0, 6), *range(6))
    assert found(tmp_path) == []
    without(tmp_path, 2, 5)
    assert found(tmp_path) == [("gap", "o/0", "offsets [2, 3)"), ("gap", "o/0", "offsets [5, 6)")]
    without(tmp_path, 0)
    assert [code for code, _, _ in found(tmp_path)] == [
        "gap", "gap", "segments-expired" if form == "kafka-backup-v1" else "start-missing",
    ]  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_whole_partitions_and_topics_are_lost(form: str, tmp_path: Path) -> None:
    exports = ListedExports(tmp_path, form)
    for topic, number in (("o", 0), ("o", 1), ("gone", 0)):
        exports.add(exportable(topic, number, 0, 3), 0, 1, 2)
    for path in tmp_path.rglob("*"):
        lost = "gone" in path.parts or "partition=1" in path.parts or "partition_001" in path.name
        if path.is_file() and lost:
            path.unlink()
    assert sorted(found(tmp_path)) == [("gap", "gone/0", "offsets [0, 3)"), ("gap", "o/1", "offsets [0, 3)")]
    assert sorted(dataset_tables(opened(tmp_path))) == ["gone", "o", "records"]


@pytest.mark.parametrize("form", FORMATS)
def test_what_the_source_had_removed(form: str, tmp_path: Path) -> None:
    exports = ListedExports(tmp_path, form)
    exports.add(exportable("o", 0, 0, 2), 0, 1)
    exports.add(exportable("o", 0, 5, 7), 5, 6)
    assert found(tmp_path) == [("gap", "o/0", "offsets [2, 5)")]


@pytest.mark.parametrize("form", FORMATS)
def test_every_record_of_a_missing_file_is_in_a_gap_and_no_other(form: str, tmp_path: Path) -> None:
    """But those before the first file that is there: `prune` deletes such files."""
    for seed in range(20):
        rng, directory = random.Random(seed), tmp_path / str(seed)
        exports, files, base = ListedExports(directory, form, segment_bytes=1 << 20), list[list[int]](), 0
        for _ in range(5):
            files.append(sorted(rng.sample(range(base, base + 9), rng.randint(1, 4))))
            base = files[-1][-1] + 1
        if form == "kafka-backup-v1":  # it has one file for all of the runs unless a record crosses the limit
            exports, files = ListedExports(directory, form, segment_bytes=1), [[o] for some in files for o in some]
        for some in files:
            exports.add(exportable("o", 0, 0, some[-1] + 1), *some)
        lost = [some for some in files if rng.random() < 0.4]
        without(directory, *(some[0] for some in lost))
        there = [some for some in files if some not in lost]
        first = there[0][0] if there else -1
        gone = {o for some in lost for o in some if o > first}
        spans = [
            range(*map(int, f.what.partition("[")[2].partition(")")[0].split(", ")))
            for f in missing_files(opened(directory))
            if f.code == "gap"
        ]
        named = {o for span in spans for o in span}
        assert gone <= named, (seed, lost, spans)
        assert not named & {o for some in there for o in some}, (seed, lost, spans)


def test_an_archive_of_oso_says_it_in_its_manifest(tmp_path: Path) -> None:
    records = [HandRecord(o, b"k", b"v") for o in range(9)]
    folder = write_archive(tmp_path, {("t", 0): [records[:3], records[3:6], records[6:]]}, gaps={("t", 0): [(9, 12)]})
    for start in (0, 3):
        (folder / f"topics/t/partition=0/segment-{start:020}.bin.zst").unlink()
    assert [(code, what) for code, _, what in found(tmp_path) if code == "gap"] == [("gap", "offsets [9, 12)")]
    assert [code for code, _, _ in found(tmp_path)] == ["gap", "segments-expired"]
    write_archive(tmp_path, {("t", 0): [records[:3], records[3:6], records[6:]]})
    (folder / f"topics/t/partition=0/segment-{3:020}.bin.zst").unlink()
    assert found(tmp_path) == [("gap", "t/0", "offsets [3, 6)")]
