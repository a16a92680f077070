"""Exports of backups made by hand, without a broker: continued, counted, buried records, gaps of older backups."""

import json
import os
import shutil
from pathlib import Path

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import FormatTooNew, Locked, TargetUnsafe, UsageError
from logkeep.kafka.dataset_upkeep.verify import read_back
from logkeep.kafka.datasets.dataset_lock import lock_dataset
from logkeep.kafka.datasets.formats import DatasetOptions
from logkeep.kafka.datasets.run import DatasetExport, ExportOptions
from logkeep.kafka.datasets.sources.export_sources import BackupSource
from logkeep.kafka.datasets.sources.selection import ExportSelection
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.record.dataset_version import DOCUMENT
from logkeep.kafka.record.deletion_times import UNPROVEN
from logkeep.kafka.scan.open_backup import open_backup
from logkeep.kafka.scan.values import ScanIsolation
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.prune import delete
from logkeep.store.memory import MemoryStore
from tests.support.kafka.compacted_backups import CompactedSource
from tests.support.kafka.dataset_exports import Datasets
from tests.support.kafka.v1_reader import groups, records, segments
from tests.support.kafka.whole_backups import new_place


@pytest.fixture
def source(tmp_path: Path) -> CompactedSource:
    made = CompactedSource(new_place(tmp_path / "repository"), partitions=2, groups={"g": 3})
    made.write([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")])
    made.transaction([(b"c", b"aborted")], 7, commits=False)
    made.transaction([(b"c", b"4")], 8, commits=True)
    return made


@pytest.fixture
def dataset(tmp_path: Path) -> Datasets:
    return Datasets(tmp_path / "dataset", segment_bytes=1)


def test_what_is_exported_and_continued(source: CompactedSource, dataset: Datasets) -> None:
    source.back_up()
    first = dataset.of_backup(source.place)
    assert (first.sum("records"), dataset.offsets("state"), first.findings) == (4, [0, 1, 2, 5], ())
    assert [start for _, start in segments(dataset.root / "state", 0)] == [0, 1, 2, 5]
    assert (dataset.offsets("state", 1), groups(dataset.root / "state", 0)) == ([], {"g": 3})
    # the log ends with a marker: nothing visible follows the last record, and nothing is read for that
    idle = dataset.of_backup(source.place)
    assert (idle.logs, idle.prepared.plan.offsets) == ((), 0)
    source.write([(b"d", None)])
    source.back_up()
    assert (dataset.of_backup(source.place).sum("records"), dataset.offsets("state")) == (1, [0, 1, 2, 5, 7])


def test_an_older_backup_has_nothing_new(source: CompactedSource, dataset: Datasets) -> None:
    old = source.back_up()
    source.write([(b"d", b"5")])
    source.groups, source.configs = {"g": 5}, {**source.configs, "retention.ms": "7"}
    source.back_up()
    dataset.of_backup(source.place)
    before, document = dataset.files("state"), (dataset.root / DOCUMENT).read_bytes()
    assert groups(dataset.root / "state", 0) == {"g": 5}
    assert dataset.of_backup(source.place, backup=str(old)).logs == ()
    assert dataset.files("state") == before
    assert (dataset.root / DOCUMENT).read_bytes() == document
    assert dataset.of_backup(source.place).logs == ()


def test_an_older_backup_without_aborted_records_that_came_since_sets_no_group_back(
    source: CompactedSource, dataset: Datasets
) -> None:
    old = source.back_up()
    source.transaction([(b"x", b"aborted")], 9, commits=False)
    source.groups = {"g": 5}
    source.back_up()
    dataset.of_backup(source.place)
    document = (dataset.root / DOCUMENT).read_bytes()
    assert dataset.of_backup(source.place, backup=str(old)).logs == ()
    assert groups(dataset.root / "state", 0) == {"g": 5}
    assert (dataset.root / DOCUMENT).read_bytes() == document


def test_a_topic_that_is_written_anew_from_an_older_backup_gets_its_groups(
    source: CompactedSource, dataset: Datasets
) -> None:
    old = source.back_up()
    source.write([(b"d", b"5")])
    source.groups = {"g": 5}
    source.back_up()
    dataset.of_backup(source.place)
    dataset.of_backup(source.place, backup=str(old), rewrite=("state",))
    assert (dataset.offsets("state"), groups(dataset.root / "state", 0)) == ([0, 1, 2, 5], {"g": 3})


def test_aborted_records_with_isolation_all(source: CompactedSource, tmp_path: Path) -> None:
    source.back_up()
    dataset = Datasets(tmp_path / "all", isolation="all")
    dataset.of_backup(source.place)
    assert dataset.offsets("state") == [0, 1, 2, 3, 5]


def test_burials_since_the_last_export_are_findings_until_a_rewrite(source: CompactedSource, dataset: Datasets) -> None:
    source.back_up()
    dataset.of_backup(source.place)
    source.write([(b"e", b"6"), (b"f", b"7")])
    source.back_up(bury_offsets=[1, 7])  # 1 is in the dataset, 7 is not
    (finding,) = dataset.of_backup(source.place).findings
    assert (finding.code, "buried 1 record " in finding.what) == ("deletions-unproven", True)
    assert dataset.offsets("state") == [0, 1, 2, 5, 8]
    assert len(dataset.of_backup(source.place).findings) == 1
    assert dataset.of_backup(source.place, rewrite=("state",)).findings == ()
    assert dataset.offsets("state") == [0, 2, 5, 8]
    assert dataset.of_backup(source.place).findings == ()
    assert groups(dataset.root / "state", 0) == {"g": 3}


def test_a_fold_may_have_dropped_deletions_that_the_dataset_lacks(tmp_path: Path, dataset: Datasets) -> None:
    source = CompactedSource(
        new_place(tmp_path / "repository"), configs={"cleanup.policy": "compact", "delete.retention.ms": "1000"}
    )
    source.write([(b"deleted", b"1"), (b"kept", b"1")])
    first = source.back_up()
    dataset.of_backup(source.place)
    source.write([(b"deleted", None), (b"last", b"1")])
    source.write([(b"last", b"2")])
    source.back_up()
    with writing(source.place, "delete", utc_now, random_token) as session:
        delete(session, [first], "test")
    assert source.fold(drop_tombstones=True)[0].committed
    (finding,) = dataset.of_backup(source.place).findings
    assert (finding.code, "folded to offset 5, the dataset had it up to 2" in finding.what) == (UNPROVEN, True)
    assert dataset.offsets("state") == [0, 1, 4]
    assert dataset.of_backup(source.place, rewrite=("state",)).findings == ()
    assert dataset.offsets("state") == [1, 4]
    assert dataset.of_backup(source.place).findings == ()


def test_an_unproven_span_of_a_backup_is_a_finding(source: CompactedSource, dataset: Datasets) -> None:
    source.proven = False
    source.back_up()
    found = dataset.of_backup(source.place).findings
    assert {f.code for f in found} <= {"deletions-unproven"}


def test_a_torn_dataset_is_continued_from_its_own_last_record(source: CompactedSource, dataset: Datasets) -> None:
    """What the document says does not count once the dataset ends earlier."""
    source.back_up()
    dataset.of_backup(source.place)
    whole = dataset.files("state")
    for name in ("_index", "_records"):
        path = dataset.root / "state" / f"segment_partition_000_from_offset_0000000005{name}"
        os.truncate(path, 3)
    index = dataset.root / "state" / "index_partition_000"
    os.truncate(index, index.stat().st_size - 3)
    assert dataset.of_backup(source.place).sum("records") == 1
    assert dataset.files("state") == whole


def test_files_that_somebody_deleted_are_a_finding(source: CompactedSource, dataset: Datasets) -> None:
    source.back_up()
    dataset.of_backup(source.place)
    whole = dataset.files("state")
    shutil.rmtree(dataset.root / "state")
    again = dataset.of_backup(source.place)
    assert [(f.code, f.where) for f in again.findings] == [("files-removed", "state/0")]
    assert "up to offset 5, and it had none" in again.findings[0].what
    assert dataset.files("state") == whole
    assert dataset.of_backup(source.place).findings == ()


def test_what_a_killed_run_did_not_list_is_listed_although_nothing_is_new(
    source: CompactedSource, dataset: Datasets
) -> None:
    """Other readers follow the partition index alone."""
    source.back_up()
    dataset.of_backup(source.place)
    whole = dataset.files("state")
    index = dataset.root / "state" / "index_partition_000"
    os.truncate(index, index.stat().st_size - 56)
    assert dataset.offsets("state") == [0, 1, 2]
    assert dataset.of_backup(source.place).sum("records") == 0
    assert dataset.files("state") == whole
    with (dataset.root / "state" / "segment_partition_000_from_offset_0000000005_records").open("ab") as torn:
        torn.write(b"torn")
    dataset.of_backup(source.place)
    assert dataset.files("state") == whole


def test_two_runs_at_once(source: CompactedSource, dataset: Datasets) -> None:
    source.back_up()
    dataset.of_backup(source.place)
    with lock_dataset(dataset.task().target), pytest.raises(Locked):
        dataset.of_backup(source.place)


def test_documents_decide_what_is_continued(source: CompactedSource, dataset: Datasets) -> None:
    source.back_up()
    dataset.of_backup(source.place)
    path = dataset.root / DOCUMENT
    document = json.loads(path.read_bytes())
    for change, error in [({"version": 9}, FormatTooNew), ({"cluster_id": "other"}, TargetUnsafe)]:
        path.write_text(json.dumps(document | change))
        with pytest.raises(error):
            dataset.of_backup(source.place)
    path.unlink()
    with pytest.raises(TargetUnsafe, match="not empty"):
        dataset.of_backup(source.place)


def test_an_empty_directory_is_a_target(source: CompactedSource, dataset: Datasets) -> None:
    source.back_up()
    dataset.root.mkdir()
    assert dataset.of_backup(source.place).sum("records") == 4


def test_a_bucket_is_continued_and_has_whole_objects(source: CompactedSource, tmp_path: Path) -> None:
    source.back_up()
    store = MemoryStore()
    options = ExportOptions("kafka-backup-v1", "committed", DatasetOptions(1 << 20))
    for expected in (4, 1, 0):
        with open_backup(source.place, "latest", "export", utc_now, random_token) as view:
            wanted = BackupSource.of(view, ExportSelection(), ScanIsolation.COMMITTED)
            done = DatasetExport(DatasetTarget(store), options, read_back).run(wanted, lambda _: InlineEngine())
        assert done.sum("records") == expected
        if expected == 4:
            source.write([(b"d", b"5")])
            source.back_up()
    for info in store.list("state/"):
        path = tmp_path / "read" / info.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.get(info.name, 1 << 20))
    assert [each.offset for each in records(tmp_path / "read" / "state", 0)] == [0, 1, 2, 5, 7]


def test_chosen_partitions_only(source: CompactedSource, dataset: Datasets) -> None:
    source.back_up()
    with open_backup(source.place, "latest", "export", utc_now, random_token) as view:
        for partitions in (("9",), ("other:0",), ("x",)):
            with pytest.raises(UsageError):
                BackupSource.of(view, ExportSelection(partitions=partitions), ScanIsolation.COMMITTED)
        with pytest.raises(UsageError, match="no topic matches"):
            BackupSource.of(view, ExportSelection(("nothing",)), ScanIsolation.COMMITTED)
        wanted = BackupSource.of(view, ExportSelection(partitions=("state:1",)), ScanIsolation.COMMITTED)
        dataset.task().run(wanted, lambda _: InlineEngine())
    assert sorted(path.name for path in (dataset.root / "state").iterdir()) == [
        "consumer_offsets_partition_001",
        "index_partition_001",
    ]
