"""Datasets that a run writes, prunes or replaces while another command lists and reads them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logkeep.errors import Interrupted, LogkeepError, ObjectMissing, StoreUnreachable
from logkeep.kafka.dataset_upkeep.dataset import open_existing
from logkeep.kafka.dataset_upkeep.verify import checked_partitions, missing_records
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.kafka.importing.survey_task import survey_partition
from logkeep.kafka.importing.values import DatasetSurveyUnit, PartitionSurvey
from logkeep.kafka.record.dataset_document import DatasetDocument, DatasetLog, NotedLog, noted_in_both
from logkeep.store.base import ObjectInfo, Store
from logkeep.store.memory import MemoryStore
from logkeep.store.wrapper import DelegatingStore
from tests.support.cli.in_process import Here
from tests.support.datasets.oso_files import write_archive
from tests.support.datasets.v1_files import HandRecord
from tests.support.kafka.listed_exports import ListedExports, ListedSource, exportable, exportable_logs, rows

FORMS = ("kafka-backup-v1", "avro", "parquet")
LOG = DatasetLog("o", 0)


class ChangedAfterListing(DelegatingStore):
    """Something happens right after the whole dataset was listed."""

    def __init__(self, inner: Store, act: Callable[[], object]) -> None:
        super().__init__(inner)
        self._waiting = [act]

    def list(self, prefix: str, after: str = "", foreign: list[str] | None = None) -> Iterator[ObjectInfo]:
        found = [*self.inner.list(prefix, after, foreign)]
        if not prefix and self._waiting:
            self._waiting.pop()()
        yield from found


def begun(store: Store, form: str, count: int = 5) -> ListedExports:
    """Each record in a file."""
    exports = ListedExports(store, form, segment_bytes=1)
    exports.add(exportable("o", 0, 0, count), *range(count))
    return exports


def verified(store: Store) -> tuple[list[str], int]:
    dataset = open_existing(DatasetTarget(store))
    checked = list(checked_partitions(dataset))
    noted = dataset.document.logs if dataset.document is not None else ()
    findings = [*missing_records(noted, checked), *(f for each in checked for f in each.findings)]
    return [each.code for each in findings], sum(each.records for each in checked)


def surveyed(store: Store) -> PartitionSurvey:
    reader = open_dataset(store)
    (partition,) = reader.partitions
    return survey_partition(DatasetSurveyUnit(partition, None, reader.notes.get(LOG)), lambda _: None)


@pytest.mark.parametrize("form", FORMS)
def test_a_run_that_ends_after_the_listing_is_no_gap(form: str) -> None:
    """An import committed the gap, and took the records never."""
    store = MemoryStore()
    begun(store, form)
    assert verified(ChangedAfterListing(store, lambda: begun(store, form, 8))) == ([], 5)
    found = surveyed(ChangedAfterListing(store, lambda: begun(store, form, 12)))
    assert (found.records, found.start, found.end, found.gaps, found.doubts) == (8, 0, 8, (), ())


def test_a_segment_that_is_begun_in_an_empty_partition_after_the_listing() -> None:
    store = MemoryStore()
    begun(store, "kafka-backup-v1", 0)
    assert verified(ChangedAfterListing(store, lambda: begun(store, "kafka-backup-v1", 3))) == ([], 0)


@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_a_topic_that_is_written_anew_before_the_listing_has_no_gap(form: str) -> None:
    class RewrittenBeforeListing(ChangedAfterListing):
        def list(self, prefix: str, after: str = "", foreign: list[str] | None = None) -> Iterator[ObjectInfo]:
            if not prefix and self._waiting:
                self._waiting.pop()()
            yield from self.inner.list(prefix, after, foreign)

    store = MemoryStore()
    exports = begun(store, form)
    anew = ListedSource(exportable_logs(exportable("o", 0, 0, 5)), {LOG: rows(1, 3)})
    assert verified(RewrittenBeforeListing(store, lambda: exports.run(anew, "o"))) == ([], 2)


@pytest.mark.parametrize("number", [0, 1])
def test_a_segment_of_another_tool_that_follows_the_listing_is_read(tmp_path: Path, number: int) -> None:
    segments = [[HandRecord(5)], [HandRecord(6)], [HandRecord(7)]]
    folder = write_archive(tmp_path, {("o", 0): segments}, "none")
    (late,) = folder.glob("topics/o/partition=0/*0007*")
    data, store = late.read_bytes(), MemoryStore()
    late.unlink()
    for path in folder.rglob("*"):
        if path.is_file():
            store.put_new(str(path.relative_to(folder)), path.read_bytes())
    name = str(late.relative_to(folder))
    changed = ChangedAfterListing(store, lambda: store.put_new(name, data) if number else None)
    found = surveyed(changed)
    assert (found.records, [(g.start, g.end) for g in found.gaps]) == ((3, []) if number else (2, [(7, 8)]))


def note(last: int, covered: int = -1, *starts: int, topic: str = "o") -> NotedLog:
    return NotedLog(topic=topic, partition=0, history="h", last=last, covered=covered, starts=starts)


def document(*logs: NotedLog) -> DatasetDocument:
    return DatasetDocument(format="avro", isolation="committed", cluster_id="c", logs=logs)


def test_what_two_readings_of_a_document_agree_on() -> None:
    before = document(note(4, 6, 0, 3), note(1, 1, 0, topic="gone"))
    after = document(note(9, 12, 0, 3, 7), note(1, 1, 0, topic="new"))
    assert noted_in_both(before, after) == document(note(4, 6, 0, 3))
    assert noted_in_both(after, before) == document(note(4, 6, 0, 3))
    assert noted_in_both(before, before) is before
    assert noted_in_both(None, after) == document()
    assert noted_in_both(before, None) is None


class Failing(DelegatingStore):
    """Once it fails, files with records cannot be read."""

    error: LogkeepError | None = None

    def get_range(self, name: str, start: int, length: int) -> bytes:
        if self.error is not None and "/partition=" in name:
            raise self.error
        return self.inner.get_range(name, start, length)


@pytest.mark.parametrize("form", ["avro", "parquet"])
@pytest.mark.parametrize("error", [StoreUnreachable("no answer"), Interrupted()])
def test_a_store_that_does_not_answer_is_no_damage(form: str, error: LogkeepError) -> None:
    store = Failing(MemoryStore())
    begun(store, form)
    store.error = error
    with pytest.raises(type(error)):
        verified(store)


@pytest.mark.parametrize(("vanishes", "code"), [(True, 50), (False, 10)])
def test_a_file_that_is_pruned_while_verify_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vanishes: bool, code: int
) -> None:
    inner = MemoryStore()
    begun(inner, "avro")
    (name,) = (info.name for info in inner.list("") if f"{1:020}" in info.name)

    class Pruned(DelegatingStore):
        def get_range(self, asked: str, start: int, length: int) -> bytes:
            if asked == name:
                if vanishes:
                    inner.delete(name)
                raise ObjectMissing("it is gone", subject=name)
            return self.inner.get_range(asked, start, length)

    monkeypatch.setattr("logkeep.cli.verbs.kafka.datasets.existing_dataset.opened_store", lambda *_: Pruned(inner))
    Here(tmp_path).run("kafka", "dataset", "verify", "s3://bucket/dataset", code=code)


class NotListed(DelegatingStore):
    """A listing of a directory may lack a file that is made meanwhile, and have one that is made later."""

    def __init__(self, inner: Store, part: str) -> None:
        super().__init__(inner)
        self._part = part

    def list(self, prefix: str, after: str = "", foreign: list[str] | None = None) -> Iterator[ObjectInfo]:
        yield from (info for info in self.inner.list(prefix, after, foreign) if self._part not in info.name)


def test_nothing_is_read_behind_a_segment_that_was_begun_during_the_listing() -> None:
    """Else an import took the records behind it, and its own ones never."""
    store = MemoryStore()
    begun(store, "kafka-backup-v1")
    store.delete(".logkeep/dataset.json")
    found = surveyed(NotListed(store, f"_{3:010}_"))
    assert (found.records, found.end, found.gaps) == (3, 3, ())


def test_a_file_without_a_byte_that_no_index_lists_is_no_gap() -> None:
    store = MemoryStore()
    begun(store, "kafka-backup-v1")
    store.put_new(f"o/segment_partition_000_from_offset_{5:010}_records", b"")
    assert verified(store) == ([], 5)
    assert surveyed(store).gaps == ()
