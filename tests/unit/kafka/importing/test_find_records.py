"""`show --from`: which partitions it searches, and which lost offsets it names among those that it read."""

from pathlib import Path
from typing import Any

import pytest

from logkeep.formats.kafka.partitioner import partition_of_key
from logkeep.kafka.importing.find_records import FoundInDataset, find_in_dataset
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.kafka.scan.find import RecordQuestion
from logkeep.kafka.scan.search import RecordSearch
from logkeep.store.local.store import LocalStore
from tests.support.kafka.listed_exports import ListedExports, ListedSource, exportable, exportable_logs, rows

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


def three_partitions(directory: Path, form: str, *lost: int) -> ListedExports:
    """Two records in each of three partitions, all with the key `k`; some partitions without any file."""
    exports = ListedExports(directory, form)
    logs = [exportable("o", number, 0, 2) for number in range(3)]
    exports.run(ListedSource(exportable_logs(*logs), {each.log: rows(0, 1) for each in logs}))
    for path in sorted(directory.rglob("*"), reverse=True):
        if any(f"partition_{n:03}" in path.name or f"partition={n}" in path.parts for n in lost) and path.is_file():
            path.unlink()
    return exports


def asked_of(exports: ListedExports, **asked: Any) -> FoundInDataset:
    return find_in_dataset(open_dataset(exports.target.store), RecordQuestion("o", **asked), "here")


def shown(exports: ListedExports, **asked: Any) -> tuple[list[int], list[tuple[int, int]]]:
    """Offsets of the records, and ranges of lost ones."""
    found, lost = asked_of(exports, **asked)
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
def test_the_wanted_offset_may_be_in_a_missing_file(form: str, tmp_path: Path) -> None:
    exports = written(tmp_path, form, 2, 3)
    assert shown(exports, partition=0, offset=2, exactly=True) == ([], [(2, 4)])
    assert shown(exports, partition=0, offset=3, exactly=True) == (
        [],
        [(3, 4) if form != "kafka-backup-v1" else (2, 4)],
    )
    assert shown(exports, partition=0, offset=2, limit=1) == ([4], [(2, 4)])


@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_the_wanted_offset_may_be_inside_of_a_missing_file(form: str, tmp_path: Path) -> None:
    exports = ListedExports(tmp_path, form, segment_bytes=10_000)
    for end in (3, 6, 9):
        exports.add(exportable("o", 0, 0, end), *range(end))
    assert shown(exports, partition=0, offset=4, exactly=True) == ([4], [])
    (path,) = tmp_path.rglob(f"*-{3:020}.*")
    path.unlink()
    assert shown(exports, partition=0, offset=4, exactly=True) == ([], [(4, 6)])
    assert shown(exports, partition=0, offset=6, exactly=True) == ([6], [])
    assert shown(exports, partition=0, offset=2, limit=2) == ([2, 6], [(3, 6)])


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


@pytest.mark.parametrize("form", FORMATS)
def test_a_partition_without_any_file_is_lost(form: str, tmp_path: Path) -> None:
    exports = three_partitions(tmp_path, form, 1)
    found, lost = asked_of(exports)
    assert [(r.partition, r.offset) for r in found.records] == [(0, 0), (0, 1), (2, 0), (2, 1)]
    assert [(partition, gap.start, gap.end) for partition, gap in lost] == [(1, 0, 2)]
    assert shown(exports, partition=1) == ([], [(0, 2)])
    assert shown(exports, partition=1, offset=1, exactly=True) == ([], [(1, 2)])
    assert shown(exports, partition=2) == ([0, 1], [])


@pytest.mark.parametrize("form", FORMATS)
def test_a_key_is_looked_for_where_its_hash_puts_it(form: str, tmp_path: Path) -> None:
    own = partition_of_key(b"k", 3)
    exports = three_partitions(tmp_path, form)
    found, _ = asked_of(exports, search=RecordSearch(key=b"k"))
    assert (found.searched, found.hashed_to, found.assumed) == ((own,), own, 0)
    assert {record.partition for record in found.records} == {own}
    found, _ = asked_of(exports, search=RecordSearch(key=b"k"), limit=1, last=True)
    assert [record.partition for record in found.records] == [own]
    found, _ = asked_of(exports, search=RecordSearch(key=b"other"))
    assert (found.records, set(found.searched), found.searched[0]) == ((), {0, 1, 2}, partition_of_key(b"other", 3))
    found, lost = asked_of(three_partitions(tmp_path / "lost", form, own), search=RecordSearch(key=b"k"))
    assert (found.searched[0], len(found.records), [partition for partition, _ in lost]) == (own, 4, [own])


def test_the_number_of_partitions_is_assumed_where_nothing_says_it(tmp_path: Path) -> None:
    exports = three_partitions(tmp_path, "avro")
    (tmp_path / ".logkeep" / "dataset.json").unlink()
    found, _ = asked_of(exports, search=RecordSearch(key=b"k"))
    assert (found.searched, found.assumed) == ((partition_of_key(b"k", 3),), 3)
    assert asked_of(exports, search=RecordSearch(key=b"k"), partition=0).found.hashed_to is None


def test_no_earlier_segment_of_a_dataset_of_logkeep_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`show` of one offset cost a request for each segment before it."""
    exports = ListedExports(tmp_path, segment_bytes=1)
    exports.add(exportable("o", 0, 0, 40), *range(40))
    reads, get_range = list[str](), LocalStore.get_range

    def counted(store: LocalStore, name: str, start: int, length: int) -> bytes:
        reads.append(name)
        return get_range(store, name, start, length)

    monkeypatch.setattr(LocalStore, "get_range", counted)
    assert shown(exports, offset=38, exactly=True) == ([38], [])
    assert len(reads) == 4, reads
