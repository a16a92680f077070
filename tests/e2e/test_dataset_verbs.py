"""`kafka dataset verify|info|reindex|prune` as users call them."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from logkeep.formats.datasets.avro.writer import AvroFileWriter, AvroOptions
from logkeep.formats.datasets.parquet import ParquetFileWriter
from tests.support.cli.processes import logkeep
from tests.support.datasets.v1_files import HandRecord, segment_name, write_partition
from tests.support.kafka.arrow_rows import record_batch

DAY_MS = 86_400_000


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A topic with a record per day; the newest one is of today."""
    now = int(time.time() * 1000)
    days = [HandRecord(offset, b"k", b"v", now - (29 - offset) * DAY_MS) for offset in range(10, 30)]
    root = tmp_path / "dataset"
    write_partition(root, "orders", 0, {10: days[:8], 18: days[8:14], 24: days[14:]}, {"shop": 12})
    write_partition(root, "orders", 1, {10: days[:8]}, {})
    return root


def called(home: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    done = logkeep("kafka", "dataset", *arguments, "--json", home=home)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if done.stdout else {}


def test_info_and_verify(dataset: Path, tmp_path: Path) -> None:
    found = called(tmp_path, "info", str(dataset))
    assert [(p["first"], p["last"], p["files"]) for p in found["partitions"]] == [(10, 29, 3), (10, 17, 1)]
    assert (found["format"], found["groups"]) == ("kafka-backup-v1", 1)
    assert called(tmp_path, "verify", str(dataset))["records"] == 28
    records = dataset / "orders" / f"{segment_name(0, 18)}_records"
    records.write_bytes(records.read_bytes()[:-1])
    damaged = called(tmp_path, "verify", str(dataset), code=10)
    first = damaged["findings"][0]
    assert (first["code"], first["where"]) == ("records-lost", f"orders/{segment_name(0, 18)}_records")
    shown = logkeep("kafka", "dataset", "verify", str(dataset), home=tmp_path)
    assert "offsets 23 to 23" in shown.stdout


def test_reindex_asks_and_writes_only_what_differs(dataset: Path, tmp_path: Path) -> None:
    index = dataset / "orders" / "index_partition_000"
    good = index.read_bytes()
    index.unlink()
    assert called(tmp_path, "verify", str(dataset), code=2)["findings"][0]["code"] == "partition-index-missing"
    refused = logkeep("kafka", "dataset", "reindex", str(dataset), home=tmp_path, stdin="n\n")
    assert (refused.returncode != 0, index.exists()) == (True, False)
    planned = called(tmp_path, "reindex", str(dataset), "--dry-run")
    assert ([each["file"] for each in planned["written"]], index.exists()) == (["orders/index_partition_000"], False)
    assert called(tmp_path, "reindex", str(dataset), "-y")["right"] == 5
    assert index.read_bytes() == good


def test_prune_by_age_leaves_the_last_segment_and_topics_of_unknown_policy(dataset: Path, tmp_path: Path) -> None:
    unknown = called(tmp_path, "prune", str(dataset), "--older-than", "7d", "-y")
    assert "compacted" in unknown["partitions"][0]["reason"]
    assert [each["first_offsets"] for each in unknown["partitions"]] == [[], []]
    before = sorted(dataset.rglob("*"))
    dry = called(tmp_path, "prune", str(dataset), "--older-than", "7d", "--topics", "orders", "--dry-run")
    assert [each["first_offsets"] for each in dry["partitions"]] == [[10], []], "a record of offset 23 is 6 days old"
    assert [p for p in sorted(dataset.rglob("*")) if ".logkeep" not in p.parts] == [
        p for p in before if ".logkeep" not in p.parts
    ]
    called(tmp_path, "prune", str(dataset), "--older-than", "1d", "--topics", "orders", "-y")
    left = called(tmp_path, "verify", str(dataset))
    assert [(p["first"], p["last"]) for p in left["partitions"]] == [(24, 29), (10, 17)]
    assert left["findings"] == []


NOTED: dict[str, Any] = {
    "type": "logkeep-dataset",
    "format": "kafka-backup-v1",
    "isolation": "committed",
    "cluster_id": "c",
    "logs": [
        {"topic": "orders", "partition": 0, "history": "h", "last": 31},
        {"topic": "orders", "partition": 1, "history": "h", "last": 17},
        {"topic": "gone", "partition": 0, "history": "h", "last": 4},
    ],
}


def test_prune_by_the_retention_of_the_source(dataset: Path, tmp_path: Path) -> None:
    words = ("prune", str(dataset), "--source-retention")
    assert "does not say its retention.ms" in called(tmp_path, *words, "--dry-run")["partitions"][0]["reason"]
    logs = [{**log, "last": last} for log, last in zip(NOTED["logs"], (29, 17), strict=False)]
    topic = {"name": "orders", "id": "0" * 32, "internal": False, "partitions": 2, "replication_factor": 1}
    (dataset / ".logkeep").mkdir()
    for keeps, gone in (("-1", [[], []]), (str(7 * DAY_MS), [[10], []])):
        topics = [{**topic, "configs": {"retention.ms": keeps}}]
        document = json.dumps({**NOTED, "logs": logs, "topics": topics, "configs_known": ["orders"]})
        (dataset / ".logkeep" / "dataset.json").write_text(document)
        planned = called(tmp_path, *words, "--dry-run")
        assert [each["first_offsets"] for each in planned["partitions"]] == gone, "a record of offset 23 is 6 days old"
    called(tmp_path, *words, "-y")
    left = called(tmp_path, "verify", str(dataset))
    assert ([(p["first"], p["last"]) for p in left["partitions"]], left["findings"]) == ([(18, 29), (10, 17)], [])


def test_what_a_run_noted_and_is_not_there_is_a_gap(dataset: Path, tmp_path: Path) -> None:
    (dataset / ".logkeep").mkdir()
    (dataset / ".logkeep" / "dataset.json").write_text(json.dumps(NOTED))
    found = called(tmp_path, "verify", str(dataset), code=21)["findings"]
    assert [(f["code"], f["where"], f["what"].partition(":")[0]) for f in found] == [
        ("gap", "orders/0", "offsets 30 to 31"),
        ("gap", "gone/0", "offsets 0 to 4"),
    ]


@pytest.mark.parametrize("document", ["{}", "[" * 100_000, "\x00"])
def test_a_document_that_is_none(dataset: Path, tmp_path: Path, document: str) -> None:
    (dataset / ".logkeep").mkdir()
    (dataset / ".logkeep" / "dataset.json").write_text(document)
    called(tmp_path, "verify", str(dataset), code=40)


def test_prune_deletes_nothing_where_an_index_is_wrong(dataset: Path, tmp_path: Path) -> None:
    index = dataset / "orders" / "index_partition_000"
    index.write_bytes(index.read_bytes() + b"\0\0\0\3foo" + bytes(8))
    before = sorted(p.name for p in (dataset / "orders").iterdir())
    called(tmp_path, "prune", str(dataset), "--older-than", "1d", "--topics", "orders", "-y", code=10)
    assert sorted(p.name for p in (dataset / "orders").iterdir()) == before


@pytest.mark.parametrize("ending", ["data", "parquet"])
def test_files_of_avro_and_parquet(tmp_path: Path, ending: str) -> None:
    now, folder = int(time.time() * 1000), tmp_path / "d" / "topics" / "t" / "partition=0"
    folder.mkdir(parents=True)
    for first, days in ((0, 30), (10, 20), (20, 1)):
        avro = AvroFileWriter("t", 0, first, AvroOptions())
        writer = ParquetFileWriter("t", 0) if ending == "parquet" else avro
        rows = record_batch([(o, now - days * DAY_MS, 0, b"k", b"v", []) for o in range(first, first + 10)])
        (folder / f"t+0-{first:020d}.{ending}").write_bytes(writer.begin() + writer.add(rows) + writer.end())
    (found,) = called(tmp_path, "info", "d")["partitions"]
    assert (found["first"], found["files"]) == (0, 3)
    pruned = called(tmp_path, "prune", "d", "--older-than", "25d", "--topics", "t", "-y")
    assert pruned["partitions"][0]["first_offsets"] == [0]
    left = called(tmp_path, "verify", "d")
    assert [(p["first"], p["last"], p["records"]) for p in left["partitions"]] == [(10, 29, 20)]
    last = sorted(folder.iterdir())[-1]
    last.write_bytes(last.read_bytes()[:-5])
    broken = called(tmp_path, "verify", "d", code=10)["findings"][0]
    assert last.name in broken["where"]
    assert logkeep("kafka", "dataset", "reindex", "d", "-y", home=tmp_path).returncode == 40


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["prune", "{dataset}"], "--older-than"),
        (["prune", "{dataset}", "--older-than", "7d", "--source-retention"], "--older-than"),
        (["verify", "missing"], "no such directory"),
        (["info", "."], "there is no dataset"),
    ],
)
def test_bad_input(dataset: Path, tmp_path: Path, arguments: list[str], error: str) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = logkeep("kafka", "dataset", *(a.format(dataset=dataset) for a in arguments), home=empty)
    assert (done.returncode, error in done.stderr) == (40, True), done.stderr


def test_an_exchange_that_a_killed_run_began_is_completed(dataset: Path, tmp_path: Path) -> None:
    """As in a bucket: the new topic lies whole beside the old one, of which a part is gone."""
    folder, run, whole = dataset / ".logkeep", "f" * 16, tmp_path / "whole"
    new = [HandRecord(offset, b"k", b"new", 1) for offset in range(10, 15)]
    for root in (folder / "rewrite" / run, whole):
        write_partition(root, "orders", 0, {10: new}, {})
    document = {"type": "logkeep-dataset", "format": "kafka-backup-v1", "isolation": "committed", "cluster_id": "c"}
    own = folder / "rewrite" / run / ".logkeep"
    for place in (folder, own):
        place.mkdir(exist_ok=True)
        (place / "dataset.json").write_text(json.dumps(document))
    owner = {"run": run, "host": "elsewhere", "pid": 1}
    journal = {
        "type": "logkeep-exchange",
        "state": "exchanging",
        "run": run,
        "owner": owner,
        "released": True,
        "objects": 4,
    }
    (folder / "exchange.json").write_text(json.dumps({**journal, "topics": ["orders"], "prefixes": ["orders/"]}))
    (dataset / "orders" / "index_partition_000").unlink()
    for refused in (("info",), ("reindex", "--dry-run"), ("prune", "--older-than", "7d", "--dry-run")):
        called(tmp_path, *refused, str(dataset), code=50)
    shown = logkeep("kafka", "show", "orders:0", "--from", str(dataset), home=tmp_path)
    assert (shown.returncode, "new files replace the old ones" in shown.stderr) == (50, True)
    done = logkeep("kafka", "dataset", "verify", str(dataset), "--json", home=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["records"]) == (0, 5)
    assert "orders replaced (--rewrite)" in done.stderr
    assert {p.name: p.read_bytes() for p in (dataset / "orders").iterdir()} == {
        p.name: p.read_bytes() for p in (whole / "orders").iterdir()
    }
    assert not list(folder.glob("rewrite/**/*_records"))
    assert called(tmp_path, "reindex", str(dataset), "-y")["right"] == 2


def test_prune_shows_how_far_it_has_read(dataset: Path, tmp_path: Path) -> None:
    arguments = ("--older-than", "1d", "--topics", "orders", "--dry-run")
    done = logkeep("kafka", "dataset", "prune", str(dataset), *arguments, home=tmp_path)
    assert (done.returncode, "prune: " in done.stderr, "2/2 units" in done.stderr) == (0, True, True), done.stderr


def test_a_dataset_of_files_without_a_record(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    (folder / "topics" / "t" / "partition=0").mkdir(parents=True)
    (folder / "topics" / "t" / "partition=0" / "_empty").touch()
    (folder / ".logkeep").mkdir()
    document = {"type": "logkeep-dataset", "format": "avro", "isolation": "committed", "cluster_id": "c"}
    (folder / ".logkeep" / "dataset.json").write_text(json.dumps(document))
    assert called(tmp_path, "verify", "d")["records"] == 0


def test_what_was_counted_in_files_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "d" / "topics" / "t" / "partition=0"
    folder.mkdir(parents=True)
    for first in (0, 5):
        writer = ParquetFileWriter("t", 0)
        rows = record_batch([(o, 0, 0, b"k", b"v", []) for o in range(first, 10)])
        data = writer.begin() + writer.add(rows) + writer.end()
        (folder / f"t+0-{first:020d}.parquet").write_bytes(data)
    (found,) = called(tmp_path, "verify", "d", code=2)["findings"]
    assert (found["code"], found["what"]) == (
        "overlapping-records",
        "5 records that the dataset has more than once; the first one is imported",
    )
