"""Files of Avro and Parquet datasets are noted: verify sees that one is missing in the middle, and nothing else."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import Damaged, LogkeepError, TargetUnsafe, UsageError
from logkeep.kafka.dataset_upkeep.dataset import open_existing
from logkeep.kafka.dataset_upkeep.prune import PrunedPartition, delete_segments
from logkeep.kafka.dataset_upkeep.segments import segments_of
from logkeep.kafka.dataset_upkeep.verify import GAP, checked_partitions, exit_code, missing_records, read_back
from logkeep.kafka.datasets import rewrite
from logkeep.kafka.datasets.documents import put_document, read_document
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.kafka.importing.run import ImportOptions, KafkaImport
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.kafka.record.dataset_version import DOCUMENT
from logkeep.kafka.record.stored_record import last_record
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import read_chain
from logkeep.store.memory import MemoryStore
from tests.support.kafka.listed_exports import ListedExports, ListedSource, exportable, exportable_logs, rows
from tests.support.kafka.whole_backups import new_place

FORMS = ("avro", "parquet")
LOG = DatasetLog("o", 0)
PLACES = ("directory", "bucket")


def begun(form: str, place: str, tmp_path: Path) -> ListedExports:
    """Two runs, each record in a file; the second one has a hole."""
    exports = ListedExports(tmp_path / "d" if place == "directory" else MemoryStore(), form, segment_bytes=1)
    exports.add(exportable("o", 0, 0, 3), 0, 1, 2)
    exports.add(exportable("o", 0, 0, 9), 0, 1, 2, 5, 8)
    return exports


def remove(exports: ListedExports, *starts: int) -> None:
    names = [info.name for info in exports.target.names("topics/")]
    for start in starts:
        (name,) = (each for each in names if f"-{start:020}." in each)
        exports.target.remove(name)


def found(exports: ListedExports, code: int = 21) -> list[str]:
    """As `verify` reports it."""
    dataset = open_existing(exports.target)
    assert dataset.document is not None
    checked = list(checked_partitions(dataset))
    findings = [*missing_records(dataset.document.logs, checked), *(f for each in checked for f in each.findings)]
    assert exit_code(findings) == (code if findings else 0)
    return [f"{each.where} {each.what}" for each in findings]


def noted(exports: ListedExports) -> tuple[int, ...]:
    document = read_document(exports.target)
    assert document is not None
    return document.noted[LOG].starts


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_is_missing_in_the_middle_is_a_gap_also_after_the_next_run(
    form: str, place: str, tmp_path: Path
) -> None:
    exports = begun(form, place, tmp_path)
    assert (noted(exports), found(exports)) == ((0, 1, 2, 5, 8), [])
    remove(exports, 1, 5)
    gaps = [
        f"o/0 offsets {span}: the dataset had files with these, and they are not there" for span in ("1 to 1", "5 to 7")
    ]
    assert found(exports) == gaps
    exports.add(exportable("o", 0, 0, 10), 0, 1, 2, 5, 8, 9)
    assert found(exports) == gaps
    assert noted(exports) == (0, 1, 2, 5, 8, 9)
    remove(exports, 2)
    assert found(exports) == ["o/0 offsets 1 to 7: the dataset had files with these, and they are not there"]


def test_the_files_of_a_dataset_of_an_earlier_release_are_noted_by_the_next_run(tmp_path: Path) -> None:
    exports = begun("avro", "directory", tmp_path)
    document = read_document(exports.target)
    assert document is not None
    old = msgspec.structs.replace(document.noted[LOG], starts=())
    put_document(exports.target, msgspec.structs.replace(document, logs=(old,)))
    remove(exports, 1)
    assert found(exports) == []
    exports.add(exportable("o", 0, 0, 9), 0, 1, 2, 5, 8)
    assert (noted(exports), found(exports)) == ((0, 2, 5, 8), [])


@pytest.mark.parametrize("form", FORMS)
def test_prune_is_no_finding(form: str, tmp_path: Path) -> None:
    exports = begun(form, "directory", tmp_path)
    segments = segments_of(open_existing(exports.target))["o", 0]
    assert list(
        delete_segments(exports.target, read_document(exports.target), [PrunedPartition("o", 0, segments[:2], 3, "")])
    )
    assert found(exports) == []
    exports.add(exportable("o", 0, 0, 9), 0, 1, 2, 5, 8)
    assert (noted(exports), found(exports)) == ((2, 5, 8), [])


@pytest.mark.parametrize("form", FORMS)
def test_the_end_that_is_read_again_has_other_files(form: str, tmp_path: Path) -> None:
    exports = begun(form, "directory", tmp_path)
    remove(exports, 2, 5, 8)
    again = ListedExports(exports.place, form, segment_bytes=1 << 20)
    done = again.add(exportable("o", 0, 0, 9), 0, 1, 5, 8)  # the source has compacted since
    assert (done.sum("records"), noted(again), found(again)) == (2, (0, 1, 5), [])


@pytest.mark.parametrize("form", FORMS)
def test_a_failed_run_and_the_next_one_note_all_files(form: str, tmp_path: Path) -> None:
    exports = ListedExports(tmp_path / "d", form, segment_bytes=1)
    facts = exportable_logs(exportable("o", 0, 0, 5))
    with pytest.raises(TargetUnsafe, match="x"):
        exports.run(ListedSource(facts, {LOG: rows(*range(5))}, {LOG: (3, TargetUnsafe("x"))}))
    assert found(exports) == []
    exports.run(ListedSource(facts, {LOG: rows(*range(5))}))
    assert (noted(exports), found(exports)) == ((0, 1, 2, 3, 4), [])


@pytest.mark.parametrize("place", PLACES)
def test_a_topic_that_was_written_anew(place: str, tmp_path: Path) -> None:
    exports = begun("avro", place, tmp_path)
    exports.run(ListedSource(exportable_logs(exportable("o", 0, 0, 9)), {LOG: rows(1, 8)}), "o")
    assert (noted(exports), found(exports)) == ((1, 8), [])


def test_a_run_that_is_killed_between_the_exchange_and_its_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exports = begun("avro", "directory", tmp_path)
    anew = ListedSource(exportable_logs(exportable("o", 0, 0, 9)), {LOG: rows(1, 8)})

    def killed(*_: object) -> None:
        raise Damaged("as if")

    with monkeypatch.context() as patched:
        patched.setattr(rewrite, "put_document", killed)
        with pytest.raises(Damaged, match="as if"):
            exports.run(anew, "o")
    assert [each.records for each in read_back(exports.target)] == [2]
    assert found(exports) == []
    exports.run(anew)
    assert (noted(exports), found(exports)) == ((1, 8), [])


def test_the_formats_with_an_index_note_nothing(tmp_path: Path) -> None:
    exports = begun("kafka-backup-v1", "directory", tmp_path)
    assert noted(exports) == ()
    (name,) = (i.name for i in exports.target.names("o/") if i.name.endswith("_0000000005_records"))
    exports.target.remove(name)
    assert {f.code for each in read_back(exports.target) for f in each.findings} == {GAP}


@pytest.mark.parametrize("starts", ["[-1]", "[9223372036854775808]"])
def test_a_noted_file_at_an_offset_that_cannot_be(starts: str) -> None:
    logs = f'[{{"topic":"o","partition":0,"history":"{"a" * 32}","starts":{starts}}}]'
    data = f'{{"type":"logkeep-dataset","format":"avro","isolation":"committed","cluster_id":"c","logs":{logs}}}'
    target = DatasetTarget(MemoryStore())
    target.put(DOCUMENT, data.encode())
    with pytest.raises(TargetUnsafe, match="no document"):
        read_document(target)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_is_missing_at_the_start_is_found_until_prune_deletes_behind_it(
    form: str, place: str, tmp_path: Path
) -> None:
    exports = begun(form, place, tmp_path)
    remove(exports, 0)
    missing = (
        "o/0 offsets 0 to {}: the dataset had files with these, and they are not there; no `prune` has deleted them"
    )
    assert found(exports, 2) == [missing.format(0)]
    remove(exports, 1)
    exports.add(exportable("o", 0, 0, 10), 0, 1, 2, 5, 8, 9)
    assert (noted(exports), found(exports, 2)) == ((0, 2, 5, 8, 9), [missing.format(1)])
    segments = segments_of(open_existing(exports.target))["o", 0]
    assert list(
        delete_segments(exports.target, read_document(exports.target), [PrunedPartition("o", 0, segments[:1], 3, "")])
    )
    assert (noted(exports), found(exports)) == ((5, 8, 9), [])


@pytest.mark.parametrize("form", FORMS)
def test_all_files_are_gone_and_the_source_has_less(form: str, tmp_path: Path) -> None:
    exports = begun(form, "directory", tmp_path)
    remove(exports, 0, 1, 2, 5, 8)
    exports.add(exportable("o", 0, 2, 9), 2, 5, 8)
    assert (noted(exports), [each.partition(":")[0] for each in found(exports, 2)]) == (
        (0, 2, 5, 8),
        ["o/0 offsets 0 to 1"],
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_prune_that_is_killed_before_it_deletes_has_noted_it(form: str, tmp_path: Path) -> None:
    exports = begun(form, "directory", tmp_path)
    segments = segments_of(open_existing(exports.target))["o", 0]
    deleting = delete_segments(
        exports.target, read_document(exports.target), [PrunedPartition("o", 0, segments[:2], 3, "")]
    )
    next(deleting)
    del deleting
    assert (noted(exports), found(exports)) == ((2, 5, 8), [])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("gone", "gaps", "doubts"),
    [
        ((1, 5), [(1, 2), (5, 8)], []),
        ((8,), [(6, 9)], []),
        ((0, 1), [], [("start-missing", 2)]),
        ((0, 1, 2, 5, 8), [(0, 9)], []),
    ],
)
def test_an_import_of_what_is_left(
    form: str, gone: tuple[int, ...], gaps: list[tuple[int, int]], doubts: list[tuple[str, int]], tmp_path: Path
) -> None:
    exports = begun(form, "directory", tmp_path)
    remove(exports, *gone)
    task = KafkaImport(new_place(tmp_path / "r"), open_dataset(exports.target.store), "d", utc_now, random_token)
    for _ in range(2):
        done = task.run(ImportOptions(), InlineEngine())
        (survey,) = done.surveys
        assert [(doubt.code, doubt.count) for doubt in survey.doubts] == doubts
        assert survey.records == 5 - len(gone)
        assert [(gap.start, gap.end) for gap in done.gaps] == (gaps if done.changed else [])


@pytest.mark.parametrize("form", FORMS)
def test_a_topic_without_any_file_is_imported_as_it_was_noted(form: str, tmp_path: Path) -> None:
    exports = ListedExports(tmp_path / "d", form)
    exports.add(exportable("other", 0, 0, 1), 0)
    facts = exportable_logs(exportable("o", 0, 0, 3), partitions=4)
    topic = msgspec.structs.replace(facts.topics[0], configs={"retention.ms": "7"})
    exports.run(ListedSource(replace(facts, topics=(topic,)), {LOG: rows(0, 1, 2)}))
    for info in list(exports.target.names("topics/o/")):
        exports.target.remove(info.name)
    place = new_place(tmp_path / "r")
    task = KafkaImport(place, open_dataset(exports.target.store), "d", utc_now, random_token)
    done = task.run(ImportOptions(), InlineEngine())
    assert [(gap.log.name, gap.start, gap.end) for gap in done.gaps] == [("o", 0, 3)]
    assert "partition-count-unknown" not in {each.code for each in done.findings}
    record = last_record(place, read_chain(place))
    assert record is not None
    (archived,) = (each for each in record.topics if each.name == "o")
    assert (archived.partitions, archived.configs) == (4, {"retention.ms": "7"})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("damaged", [0, 2, 8])
def test_a_damaged_file_hides_nothing_of_the_others(form: str, damaged: int, tmp_path: Path) -> None:
    exports = begun(form, "directory", tmp_path)
    (name,) = (info.name for info in exports.target.names("topics/") if f"-{damaged:020}." in info.name)
    (tmp_path / "d" / name).write_bytes(b"x")
    remove(exports, 5)
    dataset = open_existing(exports.target)
    assert dataset.document is not None
    checked = list(checked_partitions(dataset))
    findings = [*missing_records(dataset.document.logs, checked), *checked[0].findings]
    assert (checked[0].records, exit_code(findings)) == (3, 10)
    gaps = [each.what.partition(":")[0] for each in findings if each.code == GAP]
    assert gaps == ([] if damaged == 8 else ["offsets 5 to 7"]), "what cannot be read is there"
    assert [each.where for each in findings if each.code != GAP] == [name]


@pytest.mark.parametrize(
    ("note", "error"),
    [
        ({"topic": "../o", "partition": 0, "last": 5}, UsageError),
        ({"topic": "p", "partition": -1, "last": 5}, Damaged),
        ({"topic": "p", "partition": 1 << 31, "last": 5}, Damaged),
        ({"topic": "p", "partition": 0, "last": (1 << 63) - 1}, Damaged),
        ({"topic": "p", "partition": 0, "covered": -2}, Damaged),
        ({"topic": "p", "partition": 0, "lost": [[-1, 5]]}, Damaged),
    ],
)
def test_an_import_of_a_hostile_document_writes_nothing(
    note: dict[str, object], error: type[LogkeepError], tmp_path: Path
) -> None:
    exports, place = begun("avro", "directory", tmp_path), new_place(tmp_path / "r")
    document = {"type": "logkeep-dataset", "format": "avro", "isolation": "committed", "cluster_id": "c"}
    exports.target.put(DOCUMENT, json.dumps({**document, "logs": [{"history": "h", **note}]}).encode())
    before = [info.name for info in place.store.list("")]

    def imported() -> None:
        reader = open_dataset(exports.target.store)
        KafkaImport(place, reader, "d", utc_now, random_token).run(ImportOptions(), InlineEngine())

    with pytest.raises(error):
        imported()
    assert [info.name for info in place.store.list("")] == before
