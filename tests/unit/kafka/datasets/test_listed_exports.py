"""Runs of an export one after another, with records from a list: nothing is lost, mixed or forgotten."""

import errno
import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import StoreError, TargetUnsafe, UsageError
from logkeep.kafka.dataset_upkeep.dataset import open_existing
from logkeep.kafka.dataset_upkeep.prune import PrunedPartition, delete_segments
from logkeep.kafka.dataset_upkeep.segments import segments_of
from logkeep.kafka.dataset_upkeep.verify import read_back
from logkeep.kafka.datasets.documents import read_document
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.kafka.importing.survey_task import survey_partition
from logkeep.kafka.importing.values import DatasetSurveyUnit
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.kafka.record.documents import CommitRecord, GroupRecord
from logkeep.model.findings import Severity
from logkeep.model.ranges import Range
from logkeep.store.local.store import LocalStore
from tests.support.kafka.arrow_rows import ArrowRow
from tests.support.kafka.listed_exports import ID, ListedExports, ListedSource, exportable, exportable_logs, rows
from tests.support.kafka.v1_reader import groups, records

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


def test_a_backup_that_is_older_for_one_topic_counts_for_the_others(tmp_path: Path) -> None:
    def group(**positions: int) -> GroupRecord:
        commits = tuple(CommitRecord(topic, 0, offset, offset, -1, "") for topic, offset in sorted(positions.items()))
        return GroupRecord(name="g", kind="classic", state="Empty", protocol_type="consumer", commits=commits)

    exports, root, a, b = ListedExports(tmp_path / "d"), tmp_path / "d", DatasetLog("a", 0), DatasetLog("b", 0)
    newest = exportable_logs(exportable("a", 0, 0, 10, ID), groups=(group(a=9),))
    exports.run(ListedSource(newest, {a: rows(*range(10))}))
    oldest = exportable_logs(exportable("b", 0, 0, 4, ID), groups=(group(b=3),))
    exports.run(ListedSource(oldest, {b: rows(*range(4))}))
    quiet = exportable_logs(exportable("a", 0, 0, 8, ID), exportable("b", 0, 0, 4, ID), groups=(group(a=7, b=1),))
    assert exports.run(ListedSource(quiet, {a: rows(*range(8)), b: rows(*range(4))})).logs == ()
    assert (groups(root / "a", 0), groups(root / "b", 0)) == ({"g": 9}, {"g": 3})
    between = exportable_logs(exportable("a", 0, 0, 8, ID), exportable("b", 0, 0, 6, ID), groups=(group(a=7, b=6),))
    exports.run(ListedSource(between, {a: rows(*range(8)), b: rows(*range(6))}))
    assert (offsets(root, topic="a"), offsets(root, topic="b")) == (list(range(10)), list(range(6)))
    assert (groups(root / "a", 0), groups(root / "b", 0)) == ({"g": 9}, {"g": 6})
    document = read_document(exports.target)
    assert document is not None
    (noted,) = document.groups
    assert [(each.topic, each.offset) for each in noted.commits] == [("a", 9), ("b", 6)]


@pytest.mark.parametrize("form", ["kafka-backup-v1", "avro"])
def test_an_archived_log_that_lost_its_end_and_grew_again_is_refused(tmp_path: Path, form: str) -> None:
    exports = ListedExports(tmp_path / "d", form)
    exports.add(exportable("o", 0, 0, 5, ID), *range(5))
    with pytest.raises(TargetUnsafe, match="lost its end"):
        exports.add(exportable("o", 0, 0, 8, f"{ID}-1"), *range(8), value=b"other")
    assert exports.add(exportable("o", 0, 0, 6, ID), *range(6)).sum("records") == 1


@pytest.mark.parametrize("form", ["kafka-backup-v1", "avro", "parquet"])
def test_a_backup_of_another_history_than_the_cluster_had_is_refused(tmp_path: Path, form: str) -> None:
    """The log lost its end after the cluster was exported, and a backup has what grew again."""
    exports = ListedExports(tmp_path / "d", form)
    exports.add(exportable("o", 0, 0, 3), *range(3))
    document = read_document(exports.target)
    with pytest.raises(TargetUnsafe, match="another record at offset 2"):
        exports.add(exportable("o", 0, 0, 6, f"{ID}-2"), *range(6), value=b"other")
    assert read_document(exports.target) == document
    assert exports.add(exportable("o", 0, 0, 2, f"{ID}-2"), *range(2), value=b"other").logs == (), "it ends before"
    with pytest.raises(TargetUnsafe, match="another record at offset 2"):
        exports.add(exportable("o", 0, 0, 6, f"{ID}-2"), *range(6), value=b"other")
    assert exports.add(exportable("o", 0, 0, 6, f"{ID}-1"), *range(6)).sum("records") == 3
    with pytest.raises(TargetUnsafe, match="lost its end"):
        exports.add(exportable("o", 0, 0, 8, f"{ID}-2"), *range(8))
    assert exports.add(exportable("o", 0, 0, 7, f"{ID}-1"), *range(7)).sum("records") == 1


@pytest.mark.parametrize("form", ["kafka-backup-v1", "avro", "parquet"])
def test_a_backup_without_a_record_at_the_end_of_the_dataset_is_refused(tmp_path: Path, form: str) -> None:
    """A marker took the offset of the last record; or a gap of the backup has it, or a cleaner removed it."""
    exports, grown = ListedExports(tmp_path / "d", form), (0, 1, 2, 4, 5)
    exports.add(exportable("o", 0, 0, 4), *range(4))
    archived = exportable("o", 0, 0, 6, f"{ID}-1")
    with pytest.raises(TargetUnsafe, match="no record at offset 3"):
        exports.add(archived, *grown)
    compacted = exportable_logs(archived)
    topics = tuple(msgspec.structs.replace(t, configs={"cleanup.policy": "compact"}) for t in compacted.topics)
    done = exports.run(ListedSource(replace(compacted, topics=topics), {LOG: rows(*grown)}))
    assert done.sum("records") == 2
    other = ListedExports(tmp_path / "other", form)
    other.add(exportable("o", 0, 0, 4), *range(4))
    assert other.add(replace(archived, lost=(Range(3, 4),)), *grown).sum("records") == 2


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


def _after_a_gap(exports: ListedExports, fails_at: int) -> None:
    """A run that begins behind a gap, and fails."""
    behind = exportable_logs(exportable("o", 0, 10, 15))
    source = ListedSource(behind, {LOG: rows(*range(10, 15))}, {LOG: (fails_at, TargetUnsafe("network"))})
    with pytest.raises(TargetUnsafe, match="network"):
        exports.run(source)


def test_a_gap_of_a_failed_run_is_reported_by_the_next_one(tmp_path: Path) -> None:
    exports = ListedExports(tmp_path / "d", segment_bytes=1)
    exports.add(exportable("o", 0, 0, 5), *range(5))
    _after_a_gap(exports, 13)
    _after_a_gap(exports, 14)
    assert _surveyed(tmp_path / "d") == (0, 14, [(5, 10)])
    done = exports.add(exportable("o", 0, 10, 15), *range(10, 15))
    assert done.holes == ("o/0 [5, 10): the source has these offsets no longer",)
    assert exports.add(exportable("o", 0, 10, 16), *range(10, 16)).holes == ()
    document = read_document(exports.target)
    assert document is not None
    assert (document.noted[LOG].lost, document.noted[LOG].pending) == (((5, 10),), ())


def test_a_gap_without_a_record_behind_it_does_not_count(tmp_path: Path) -> None:
    """A backup may still have what the cluster has no longer."""
    exports = ListedExports(tmp_path / "d", segment_bytes=1)
    exports.add(exportable("o", 0, 0, 5), *range(5))
    _after_a_gap(exports, 10)
    assert _surveyed(tmp_path / "d") == (0, 5, [])
    assert exports.add(exportable("o", 0, 0, 15, ID), *range(15)).holes == ()
    assert offsets(tmp_path / "d") == [*range(15)]


def test_an_import_counts_lost_offsets_also_behind_the_document_and_not_what_was_pruned(tmp_path: Path) -> None:
    exports = ListedExports(tmp_path / "d", segment_bytes=1)
    exports.add(exportable("o", 0, 0, 5), *range(5))
    exports.add(exportable("o", 0, 10, 12), *range(10, 12))
    longer = exportable_logs(exportable("o", 0, 10, 15))
    with pytest.raises(TargetUnsafe, match="network"):
        exports.run(ListedSource(longer, {LOG: rows(*range(10, 15))}, {LOG: (14, TargetUnsafe("network"))}))
    assert _surveyed(tmp_path / "d") == (0, 14, [(5, 10)])
    segments = segments_of(open_existing(exports.target))[LOG]
    for _ in delete_segments(
        exports.target, read_document(exports.target), [PrunedPartition("o", 0, segments[:6], 1, "")]
    ):
        pass
    assert _surveyed(tmp_path / "d") == (11, 14, [])


def _broken_once(value: bytes | None = b"v") -> ListedSource:
    """Two logs of one task: the first one is complete when the connection breaks, and the task is repeated."""
    commits = (CommitRecord("a", 0, 5, 5, -1, ""), CommitRecord("b", 0, 4, 4, -1, ""))
    committed = [GroupRecord("g", "classic", "Empty", "consumer", commits)]
    found = exportable_logs(exportable("a", 0, 0, 5), exportable("b", 0, 0, 5), groups=committed)
    one, two = DatasetLog("a", 0), DatasetLog("b", 0)
    data = {one: rows(*range(5), value=value), two: rows(*range(5))}
    return ListedSource(found, data, {two: (3, OSError("the connection broke"))})


def test_a_repeated_attempt_knows_what_the_dataset_ends_with(tmp_path: Path) -> None:
    exports = ListedExports(tmp_path / "d")
    done = exports.run(_broken_once())
    assert [(each.topic, each.last) for each in done.logs] == [("a", 4), ("b", 4)]
    assert (groups(tmp_path / "d" / "a", 0), groups(tmp_path / "d" / "b", 0)) == ({"g": 5}, {"g": 4})
    document = read_document(exports.target)
    assert document is not None
    assert [(each.topic, each.last) for each in document.logs] == [("a", 4), ("b", 4)]
    assert not done.findings, "this format has a place for everything"


def test_what_an_earlier_attempt_could_not_hold_is_not_passed_over(tmp_path: Path) -> None:
    done = ListedExports(tmp_path / "d", "avro", 1 << 20, "seed001").run(_broken_once(value=None))
    assert [(each.where, each.severity) for each in done.findings] == [("a/0", Severity.WARNING)]
    assert "not counted" in done.findings[0].what


def test_an_import_says_what_the_schema_of_a_dataset_has_no_place_for(tmp_path: Path) -> None:
    unknown = {}
    for schema in ("faithful", "seed001"):
        exports = ListedExports(tmp_path / schema, "avro", 1 << 20, schema)
        exports.add(exportable("o", 0, 0, 2), 0, 1)
        unknown[schema] = open_dataset(exports.target.store).label.unknown
    assert unknown["seed001"] == (
        *unknown["faithful"],
        "whether an empty value was null",
        "order, repeats and null values of headers",
        "types of timestamps",
    )


@pytest.mark.parametrize(
    ("form", "schema"), [("kafka-backup-v1", ""), ("avro", ""), ("avro", "seed001"), ("parquet", "")]
)
def test_a_live_log_that_lost_its_end_and_grew_again_is_refused(tmp_path: Path, form: str, schema: str) -> None:
    """Headers and a tombstone, which not every schema holds, do not make a record another one."""
    exports = ListedExports(tmp_path / "d", form, 1 << 20, schema)
    own: list[ArrowRow] = [(n, n, n % 2, None, None, [(b"h", None), (b"h", b"1"), (b"\xff", b"")]) for n in range(6)]
    exports.run(ListedSource(exportable_logs(exportable("o", 0, 0, 5)), {LOG: own[:5]}))
    with pytest.raises(TargetUnsafe, match="another record at offset 4"):
        exports.add(exportable("o", 0, 0, 8), *range(8), value=b"other")
    grown = ListedSource(exportable_logs(exportable("o", 0, 0, 6)), {LOG: own})
    assert exports.run(grown).sum("records") == 1
    assert exports.add(exportable("o", 0, 6, 8), 6, 7).sum("records") == 2, "the last record is gone: nothing is known"


def _surveyed(root: Path) -> tuple[int, int, list[tuple[int, int]]]:
    """What an import finds: start, end and gaps."""
    reader = open_dataset(LocalStore(root))
    (partition,) = reader.partitions
    unit = DatasetSurveyUnit(partition, None, reader.notes.get(DatasetLog(partition.topic, partition.partition)))
    found = survey_partition(unit, lambda _: None)
    return found.start, found.end, [(gap.start, gap.end) for gap in found.gaps]


def test_a_file_system_without_locks_is_an_error_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as NFS without its lock daemon."""

    def refused(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("logkeep.kafka.datasets.dataset_lock.fcntl.flock", refused)
    with pytest.raises(StoreError, match="no locks"):
        ListedExports(tmp_path / "d").add(exportable("o", 0, 0, 1), 0)


def test_a_topic_that_is_deleted_between_two_rounds_gets_its_groups_again(tmp_path: Path) -> None:
    exports = ListedExports(tmp_path / "d")
    task, source = exports.task(), ListedSource(exportable_logs(exportable("o", 0, 0, 3)), {LOG: rows(0, 1, 2)})
    task.run(source, lambda _: InlineEngine())
    shutil.rmtree(tmp_path / "d" / "o")
    task.run(source, lambda _: InlineEngine())
    (found,) = read_back(exports.target)
    assert (found.records, found.findings) == (3, ())
