"""`kafka import` as users call it: again, while the tool writes, with gaps, and with bad input that leaves no trace."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.cli.filled_repository import Filled
from tests.support.datasets.oso_files import write_archive
from tests.support.datasets.v1_files import HandRecord, segment_files, segment_name, write_partition
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.whole_backups import new_place


def some(start: int, end: int) -> list[HandRecord]:
    return [
        HandRecord(o, b"k%d" % (o % 5), b"v%d" % o, 1_700_000_000_000 + o, headers=[(b"h", None)])
        for o in range(start, end)
    ]


@pytest.fixture
def repo(tmp_path: Path) -> Filled:
    made = Filled(tmp_path / "home")
    made.home.mkdir()
    new_place(made.root)
    return made


@pytest.fixture
def commands(repo: Filled) -> Commands:
    return Commands(repo.url, repo.home)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    root = tmp_path / "dataset"
    write_partition(root, "orders", 0, {0: some(100, 150), 150: some(150, 180)}, {"readers": 160, "ahead": 999})
    write_partition(root, "orders", 1, {})
    (root / "restore.offsets").write_bytes(b"not data")
    return root


def codes(found: Iterable[dict[str, object]]) -> set[object]:
    return {f["code"] for f in found if f["severity"] != "note"}


def test_an_import_is_a_backup_and_a_second_one_adds_only_what_is_new(commands: Commands, dataset: Path) -> None:
    words = ("kafka", "import", str(dataset), "--source", "old")
    preview = commands.json(*words, "--dry-run")
    assert (preview["id"], preview["new_offsets"], preview["dry_run"]) == (None, 80, True)
    first = commands.json(*words, "--partition-count", "orders=4")
    assert (first["new_offsets"], first["partitions"], first["groups"], first["records"]) == (80, 2, 2, 80)
    assert commands.json("verify", "--source", "old", "--level", "records")["verdict"] == "good"
    about = commands.json("info", "latest", "--source", "old", "--all")["kafka"]
    assert (about["imported"]["format"], about["topics"][0]["partitions"]) == ("kafka-backup-v1", 4)
    assert "leader epochs, producers and transactions" in about["imported"]["unknown"]
    again = commands.json(*words)
    assert (again["changed"], again["id"], again["new_offsets"]) == (False, first["id"], 0)
    write_partition(dataset, "orders", 0, {0: some(100, 150), 150: some(150, 200)}, {"readers": 200})
    third = commands.json(*words)
    assert (third["changed"], third["new_offsets"], third["records"]) == (True, 20, 100)
    backups = commands.json("list", "--source", "old")["backups"]
    assert [(b["id"], b["records"]) for b in backups] == [(first["id"], 80), (third["id"], 100)]
    assert commands.json("prune", "--source", "old", "--keep-last", "1", "--yes")["deleted"]
    assert commands.json("verify", "--source", "old", "--level", "records")["verdict"] == "good"
    groups = commands.json("info", "latest", "--source", "old", "--all")["kafka"]["groups"]
    assert sorted((g["name"], g["lag"]) for g in groups) == [("ahead", 0), ("readers", 0)]


def test_prune_of_an_exported_import_keeps_topics_whose_policy_nobody_knows(
    commands: Commands, dataset: Path, tmp_path: Path
) -> None:
    """The directory says nothing of configs: the topic may be compacted, and its retention may be for ever."""
    commands.json("kafka", "import", str(dataset), "--source", "old")
    words = ("--format", "avro", "--to", str(tmp_path / "avro"), "--segment-bytes", "1")
    commands.json("kafka", "export", "latest", "--source", "old", *words)
    prune = ("kafka", "dataset", "prune", str(tmp_path / "avro"), "--dry-run")
    for limit in (("--source-retention",), ("--older-than", "7d")):
        found = commands.json(*prune, *limit)["partitions"]
        assert [(len(p["first_offsets"]), "does not say" in p["reason"]) for p in found] == [(0, True), (0, True)]
    named = commands.json(*prune, "--source-retention", "--topics", "orders")["partitions"]
    assert "does not say its retention.ms" in named[0]["reason"]
    named = commands.json(*prune, "--older-than", "7d", "--topics", "orders")["partitions"]
    assert [len(p["first_offsets"]) for p in named] == [79, 0]


def test_records_that_are_archived_must_be_equal(commands: Commands, repo: Filled, dataset: Path) -> None:
    words = ("kafka", "import", str(dataset), "--source", "old")
    commands.json(*words)
    before = repo.tree()
    other = [*some(100, 120), HandRecord(120, b"another"), *some(121, 190)]
    write_partition(dataset, "orders", 0, {0: other})
    for start in (150,):
        for end in ("records", "index"):
            (dataset / "orders" / f"{segment_name(0, start)}_{end}").unlink()
    said = commands.error(*words, code=31)
    assert "offset 120" in said
    assert repo.tree() == before


def test_what_a_dataset_lost_stays_in_the_archive(commands: Commands, dataset: Path) -> None:
    words = ("kafka", "import", str(dataset), "--source", "old")
    commands.json(*words)
    for end in ("records", "index"):
        (dataset / "orders" / f"{segment_name(0, 0)}_{end}").unlink()
    again = commands.json(*words, code=2)
    assert (again["changed"], codes(again["findings"])) == (False, {"segments-expired"})


def test_a_missing_segment_is_a_gap(commands: Commands, dataset: Path) -> None:
    write_partition(dataset, "orders", 0, {0: some(100, 120), 120: some(120, 140), 140: some(140, 160)})
    for end in ("records", "index"):
        (dataset / "orders" / f"{segment_name(0, 120)}_{end}").unlink()
        (dataset / "orders" / f"{segment_name(0, 150)}_{end}").unlink(missing_ok=True)
    words = ("kafka", "import", str(dataset), "--source", "old")
    done = commands.json(*words, code=21)
    assert [g.split(":")[0] for g in done["gaps"]] == ["orders/0 [120, 140)"]
    assert commands.json("verify", "--source", "old", "--level", "records")["verdict"] == "good"
    write_partition(dataset, "orders", 0, {0: some(100, 120), 120: some(120, 140), 140: some(140, 170)})
    later = commands.json(*words, code=2)
    assert (later["new_offsets"], codes(later["findings"])) == (10, {"not-archived-before"})


def test_gaps_that_are_allowed_are_named_and_end_with_2(commands: Commands, dataset: Path, tmp_path: Path) -> None:
    write_partition(dataset, "orders", 0, {0: some(100, 120), 120: some(120, 140), 140: some(140, 160)})
    for end in ("records", "index"):
        (dataset / "orders" / f"{segment_name(0, 120)}_{end}").unlink()
        (dataset / "orders" / f"{segment_name(0, 150)}_{end}").unlink()
    commands.json("kafka", "import", str(dataset), "--source", "old", code=21)
    known = commands.json("kafka", "import", str(dataset), "--source", "known", "--allow-gaps", code=2)
    assert [g.split(":")[0] for g in known["gaps"]] == ["orders/0 [120, 140)"]
    for number, (more, code) in enumerate((((), 21), (("--allow-gaps",), 2))):
        where = ("--source", "known", "--format", "avro", "--to", str(tmp_path / f"{number}"))
        done = commands.json("kafka", "export", "latest", *where, *more, "--engine", "inline", code=code)
        assert [g.split(":")[0] for g in done["gaps"]] == ["orders/0 [120, 140)"]


def test_topics_of_kafka_come_along_only_with_internal(commands: Commands, dataset: Path, tmp_path: Path) -> None:
    write_partition(dataset, "__consumer_offsets", 0, {0: some(0, 5)})
    words = ("kafka", "import", str(dataset), "--source")
    assert commands.json(*words, "without")["topics"] == 1
    assert commands.json(*words, "all", "--internal")["topics"] == 2
    for more, topics in (((), ["orders"]), (("--internal",), ["__consumer_offsets", "orders"])):
        to = tmp_path / f"exported-{len(more)}"
        where = ("--source", "all", "--format", "avro", "--to", str(to), "--engine", "inline")
        commands.json("kafka", "export", "latest", *where, *more)
        assert sorted(p.name for p in (to / "topics").iterdir()) == topics


def test_a_format_that_is_named(commands: Commands, dataset: Path) -> None:
    words = ("kafka", "import", str(dataset), "--format")
    said = commands.error(*words, "avro", code=40)
    assert "there is no dataset in the format avro" in said
    write_archive(dataset, {("t", 0): [some(0, 5)]})
    said = commands.error("kafka", "import", str(dataset), code=40)
    assert "it looks like kafka-backup-v1 and oso" in said
    assert "--format" in said
    assert commands.json(*words, "oso", "--source", "oso")["new_offsets"] == 5
    assert commands.json(*words, "kafka-backup-v1", "--source", "v1")["new_offsets"] == 80


def test_torn_writes_are_reported_with_counts(commands: Commands, dataset: Path) -> None:
    data, index = segment_files(some(100, 150), {10: b"torn!"})
    (dataset / "orders" / f"{segment_name(0, 0)}_records").write_bytes(data + b"\0\0")
    (dataset / "orders" / f"{segment_name(0, 0)}_index").write_bytes(index)
    done = commands.json("kafka", "import", str(dataset), "--source", "old", code=2)
    assert {d["code"]: d["count"] for d in done["doubts"]} == {"torn-bytes": 5, "torn-tail": 2}
    assert done["new_offsets"] == 80


def test_a_source_of_a_cluster_or_of_another_format_is_not_mixed(commands: Commands, dataset: Path) -> None:
    commands.json("kafka", "import", str(dataset), "--source", "old")
    said = commands.error("kafka", "import", str(dataset), "--source", "old", "--partition-count", "orders=1", code=40)
    assert "partition 1" in said
    commands.error("kafka", "import", str(dataset), "--source", "old", "--partition-count", "none=9", code=40)
    commands.error("kafka", "import", str(dataset), "--source", "old", "--topics", "nothing", code=40)


def _link(root: Path) -> None:
    (root / "linked").symlink_to("/etc")


def _later(root: Path) -> None:
    file = root / "orders" / "index_partition_000"
    file.write_bytes(b"\x02" + file.read_bytes()[1:])


def _text(root: Path) -> None:
    (root / "orders" / f"{segment_name(0, 0)}_records").write_text("hello")


def _elsewhere(root: Path) -> None:
    name = b"../../secret"
    entry = len(name).to_bytes(4, "big") + name + bytes(8)
    (root / "orders" / "index_partition_000").write_bytes(b"\x01" + entry)


def _illegal(root: Path) -> None:
    (root / "orders").rename(root / "or=ders")


def _falling(root: Path) -> None:
    write_partition(
        root, "orders", 0, {0: some(100, 150), 150: [*some(150, 170), HandRecord(169, b"other"), *some(170, 180)]}
    )


@pytest.mark.parametrize(
    ("spoil", "code"), [(_link, 10), (_later, 43), (_text, 40), (_elsewhere, 10), (_illegal, 40), (_falling, 10)]
)
def test_bad_input_leaves_no_trace(commands: Commands, repo: Filled, dataset: Path, spoil: object, code: int) -> None:
    assert callable(spoil)
    spoil(dataset)
    before = repo.tree()
    commands.error("kafka", "import", str(dataset), "--source", "old", code=code)
    assert repo.tree() == before


@pytest.mark.parametrize("start", [120, 150])
def test_records_that_two_segments_have_are_imported_once(commands: Commands, dataset: Path, start: int) -> None:
    """Offsets 150 to 179 were left out, as a torn tail. `start`: what the name of the second segment says."""
    for path in dataset.glob("orders/segment_partition_000*"):
        path.unlink()
    write_partition(dataset, "orders", 0, {0: some(100, 150), start: some(120, 180)})
    done = commands.json("kafka", "import", str(dataset), "--source", "old", code=2)
    assert (done["new_offsets"], done["records"]) == (80, 80)
    assert {d["code"]: d["count"] for d in done["doubts"]} == {"overlapping-records": 30}
    assert commands.json("verify", "--source", "old", "--level", "records")["verdict"] == "good"
    checked = commands.json("kafka", "dataset", "verify", str(dataset), code=2)
    assert ([f["code"] for f in checked["findings"]], checked["records"]) == (["overlapping-records"], 80)
    assert commands.json("kafka", "dataset", "reindex", str(dataset), "--dry-run")["written"] == []


@pytest.mark.parametrize("made", ["", "foreign"])
def test_what_is_no_dataset_is_refused(commands: Commands, repo: Filled, tmp_path: Path, made: str) -> None:
    root = tmp_path / "other"
    root.mkdir()
    if made:
        (root / "readme.txt").write_text("nothing")
    commands.error("kafka", "import", str(root), code=40)
    commands.error("kafka", "import", str(tmp_path / "missing"), code=40)
    commands.error("kafka", "import", str(root / "readme.txt"), code=41 if made else 40)


def test_the_document_of_logkeep_adds_configs_commits_and_what_was_lost(commands: Commands, dataset: Path) -> None:
    commit = {"topic": "orders", "partition": 0, "offset": 150, "committed": 150, "leader_epoch": 3, "metadata": "here"}
    topic = {"name": "orders", "id": "0" * 32, "internal": False, "partitions": 6, "replication_factor": 1}
    document = {
        "type": "logkeep-dataset",
        "version": 1,
        "format": "kafka-backup-v1",
        "isolation": "committed",
        "cluster_id": "abc",
        "topics": [{**topic, "configs": {"retention.ms": "5"}}],
        "logs": [
            {"topic": "orders", "partition": 0, "history": "x", "last": 179, "covered": 190, "lost": [[180, 185]]}
        ],
        "groups": [{"name": "g", "kind": "classic", "state": "", "protocol_type": "consumer", "commits": [commit]}],
    }
    (dataset / ".logkeep").mkdir()
    place = dataset / ".logkeep" / "dataset.json"
    place.write_text(json.dumps(document))
    done = commands.json("kafka", "import", str(dataset), "--source", "old", code=21)
    assert (done["new_offsets"], done["cluster_id"], [g.split(":")[0] for g in done["gaps"]]) == (
        90,
        "abc",
        ["orders/0 [180, 185)"],
    )
    about = commands.json("info", "latest", "--source", "old", "--all")["kafka"]
    (topic_now,) = about["topics"]
    assert (topic_now["partitions"], topic_now["configs"]) == (6, {"retention.ms": "5"})
    assert [(g["name"], g["lag"]) for g in about["groups"]] == [("g", 40)]
    place.write_text(json.dumps({**document, "version": 2}))
    commands.error("kafka", "import", str(dataset), "--source", "new", code=43)
    place.write_text("[]")
    commands.error("kafka", "import", str(dataset), "--source", "new", code=10)
