"""`kafka schemas`: a registry archived with its topic or by its API, ids in records, and the way back.

The topic is what a real Karapace wrote; the registry's answers are those of a real Apicurio (see `make registry`).
"""

import json
import pickle
import re
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.embedded.ports import free_ports
from logkeep.kafka.registry.attachment import RegistryDocument
from logkeep.kafka.registry.documents import read_captured
from logkeep.kafka.verify.schema_ids import IdUnit, id_pieces, read_ids
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import read_chain
from tests.e2e.test_bad_input import one_error
from tests.support.cli.filled_repository import Filled, tree
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.registry_steps import karapace_records
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.servers.recorded_registry import Exchange, recorded, serving

pytestmark = pytest.mark.xdist_group("kafka-plain")
LOG, SALES, LOST, LONGS = "schemas-log", "schemas-sales", "schemas-lost", "schemas-longs"
LARGER = "schemas-larger"
"""The same registry with larger ids."""
ALL = (LOG, SALES, LOST, LONGS, LARGER)


def _framed(number: int) -> bytes:
    return b"\0" + struct.pack(">I", number) + b"body"


@pytest.fixture(scope="module")
def archived(kafka: EmbeddedKafka, topics: Matrix, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """A repository with a backup of all topics, and an earlier one in which every id is known."""
    topics.create(LOG, config={"cleanup.policy": "compact"})
    for topic in (LONGS, LARGER):
        topics.create(topic)
    for topic in (SALES, LOST):
        topics.create(topic, 2)
    producer = topics.producer()
    for _, key, value in karapace_records():
        producer.produce(LOG, value, key)
        producer.produce(LARGER, re.sub(rb'"id":(\d)', rb'"id":1\1', value), key)
    for n in range(300):
        producer.produce(SALES, _framed(1 + n % 3), b"k%d" % n, n % 2)
        producer.produce(LONGS, struct.pack(">q", 1_800_000_000_000 + n), struct.pack(">i", n))
        # Key: a schema that is deleted for good. Value: one that was never archived, from offset 40 of partition 1 on.
        producer.produce(LOST, _framed(99 if n >= 81 and n % 2 else 2), _framed(4), n % 2)
    producer.produce(SALES, None, b"k0", 0)
    producer.flush(60)
    made = Filled(tmp_path_factory.mktemp("schemas"))
    share_kernels(made.home)
    archive = Archive(kafka.bootstrap, new_place(made.root))
    archive.back_up(LOG, SALES, LONGS)
    archive.back_up(*ALL)
    yield made
    topics.delete(*(topic for topic in ALL if topic in topics.topics))


def _schemas(*words: str, topic: str = LOG) -> tuple[str, ...]:
    return "kafka", "schemas", *words, "--schemas-topic", topic


def test_subjects_versions_ids_and_deleted_ones(archived: Filled) -> None:
    found = archived.json(*_schemas("list", "latest"))
    assert (found["origin"], found["highest_id"], found["erased_ids"]) == ("topic", 4, [4])
    rows = {row["subject"]: row for row in found["subjects"]}
    assert [v["id"] for v in rows["orders-value"]["versions"]] == [1, 2]
    assert rows["orders-value"]["compatibility"] == "FULL"
    assert [v["deleted"] for v in rows["pay-value"]["versions"]] == [True]
    text = archived.run(*_schemas("list", "latest")).stdout
    assert "deleted for good, and still archived: 4" in text


def test_what_an_id_means(archived: Filled) -> None:
    found = archived.json(*_schemas("show", "latest", "3"))
    assert (found["type"], json.loads(found["text"])) == ("AVRO", {"type": "string"})
    assert [(u["subject"], u["deleted"]) for u in found["used_by"]] == [("pay-value", True), ("same-value", False)]
    assert archived.json(*_schemas("show", "latest", "4"))["erased"] is True
    said = one_error(archived.run(*_schemas("show", "latest", "5"), code=40).stderr)
    assert "no archived schema has the id 5" in said


def test_missing_ids_with_topic_count_and_first_offset(archived: Filled) -> None:
    found = archived.json(*_schemas("check", "latest"), code=10)
    missing = [(m["id"], m["topic"], m["side"], m["records"], m["partition"], m["offset"]) for m in found["missing"]]
    assert missing == [(4, LOST, "key", 300, 0, 0), (99, LOST, "value", 110, 1, 40)]
    assert [(m["erased"], m["certain"]) for m in found["missing"]] == [(True, True), (False, True)]
    verdicts = {(s["topic"], s["side"]): s["verdict"] for s in found["sides"]}
    assert verdicts[LONGS, "value"] == "numbers"
    assert verdicts[SALES, "key"] == "none"
    assert verdicts[SALES, "value"] == "schemas"
    first = min(int(p.name) for p in (archived.root / "sources/prod/backups").iterdir())
    good = archived.json(*_schemas("check", str(first)))
    assert (good["missing"], good["read_objects"]) == ([], good["objects"])
    part = archived.json(*_schemas("check", str(first), "--sample", "1/1000000"))
    assert part["read_objects"] < good["read_objects"]


def test_a_unit_is_a_value_that_any_engine_runs(archived: Filled) -> None:
    place = archived.place()
    folded = read_chain(place)
    manifest = read_manifest(place, folded.completed[-1])
    rows = rows_of(PartReader(place), manifest, served_parts(manifest, folded))
    made = IdUnit(place, id_pieces(place, folded, manifest, rows, {LOG}), (1, 2, 3))
    unit = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own value
    found = {(u.topic, u.side): u for u in read_ids(unit, lambda _: None).uses}
    sales = found[SALES, "value"]
    assert (sales.records, sales.fitting, sales.known, sales.unknown) == (300, 300, 300, ())


def test_a_damaged_object_is_named(archived: Filled, tmp_path: Path) -> None:
    copy = Filled(tmp_path / "copy")
    copy.home.mkdir()
    share_kernels(copy.home)
    copy_tree(archived.root, copy.root)
    broken = copy.file(f"sources/prod/topics/{LOST}/*/partition=1/*.log")
    broken.write_bytes(broken.read_bytes()[:-1] + b"!")
    found = copy.json(*_schemas("check", "latest"), code=10)
    assert any(copy.name(broken) == f["where"] for f in found["findings"])


def copy_tree(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        to = target / path.relative_to(source)
        if path.is_dir():
            to.mkdir(parents=True, exist_ok=True, mode=0o700)
        else:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(path.read_bytes())
            to.chmod(path.stat().st_mode)


def test_without_a_registry(archived: Filled) -> None:
    for words in (("list", "latest"), ("check", "latest"), ("show", "latest", "1")):
        said = one_error(archived.run(*_schemas(*words, topic="not-there"), code=40).stderr)
        assert "no schema registry" in said


def test_the_topic_is_restored_record_for_record(kafka: EmbeddedKafka, topics: Matrix, archived: Filled) -> None:
    (port,) = free_ports(1)
    target = ("--registry", f"http://127.0.0.1:{port}", "--bootstrap-servers", kafka.bootstrap)
    command = _schemas("restore", "latest", *target, "-y", "--confirm-cluster", kafka.cluster)
    archived.run(*command, code=31)  # the topic has records
    refused = archived.json(*command, "--dry-run", code=31)
    assert refused["refusal_code"] == 31
    assert refused["notes"]
    topics.delete(LOG)
    del topics.topics[LOG]
    planned = archived.json(*command, "--dry-run")
    assert (planned["way"], planned["verdict"], planned["versions"]) == ("topic", "planned", 4)
    assert LOG not in topics.admin.list_topics(timeout=30).topics
    done = archived.json(*command, code=2)
    topics.topics[LOG] = 1
    assert (done["way"], done["verdict"]) == ("topic", "unproven")
    assert "run this command again" in done["notes"][0]
    assert _read(kafka.bootstrap) == [(key, value) for _, key, value in karapace_records()]
    archived.run(*command, code=31)


def _read(bootstrap: str) -> list[tuple[bytes, bytes]]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "judge", "enable.partition.eof": True}
    found: list[tuple[bytes, bytes]] = []
    with closing(Consumer({**settings, "isolation.level": "read_committed"})) as consumer:
        consumer.assign([TopicPartition(LOG, 0, 0)])
        while (record := consumer.poll(30)) is not None and not record.error():
            found.append((record.key(), record.value()))
    return found


@pytest.fixture
def backup(kafka: EmbeddedKafka) -> tuple[str, ...]:
    return "kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--source", "prod", "--topics", SALES


def test_a_registry_is_captured_verified_and_restored(repo: Filled, archived: Filled, backup: tuple[str, ...]) -> None:
    with recorded("filled") as registry:
        repo.json(*backup, "--registry", registry.url)
        assert not {"POST", "PUT", "DELETE"} & {method for method, _, _ in registry.requests}
        said = one_error(repo.run(*backup, "--registry", registry.url, "--follow", code=40).stderr)
        assert "--follow archives no schema registry" in said
    found = repo.json("kafka", "schemas", "list", "latest")
    assert (found["origin"], found["registry_url"]) == ("apicurio", registry.url)
    assert {row["subject"] for row in found["subjects"]} >= {"customer", "old-value", "orders-value"}
    order = repo.json("kafka", "schemas", "show", "latest", "3")
    assert [(r["name"], r["subject"], r["id"]) for r in order["references"]] == [("shop.Customer", "customer", 2)]
    repo.run("kafka", "schemas", "check", "latest", code=10)  # id 1 was deleted for good in that registry
    with recorded("imported") as empty:
        before = repo.tree()
        restore = ("kafka", "schemas", "restore", "latest", "--registry", empty.url)
        assert repo.json(*restore, "--dry-run")["way"] == "import"
        assert not empty.sent("POST")
        assert repo.tree() == before
    with recorded("imported") as empty:
        done = repo.json("kafka", "schemas", "restore", "latest", "--registry", empty.url, "-y")
        assert (done["way"], done["verdict"], done["deleted_versions"]) == ("import", "proven", 1)
        assert empty.sent("POST") == ["/apis/registry/v3/admin/import"]
        again = repo.json("kafka", "schemas", "restore", "latest", "--registry", empty.url, "-y")
        assert (again["way"], again["verdict"]) == ("nothing", "proven")


def test_schema_by_schema_only_equal_ids_are_a_restore(archived: Filled) -> None:
    with recorded("same-ids") as empty:
        done = archived.json(*_schemas("restore", "latest", "--registry", empty.url, "--way", "api", "-y"))
        assert (done["way"], done["verdict"]) == ("api", "proven")
        assert "id 4 was the highest ever issued" in done["notes"][0]
    with recorded("other-id") as empty:
        command = _schemas("restore", "latest", "--registry", empty.url, "--way", "api", "-y", topic=LARGER)
        said = one_error(archived.run(*command, code=30).stderr)
        assert "the id 1 instead of 11; what was registered is deleted again" in said
    with recorded("filled") as used:
        command = _schemas("restore", "latest", "--registry", used.url, "--way", "api", "-y")
        said = one_error(archived.run(*command, code=31).stderr)
        assert "has used ids" in said


def test_the_captured_registry_is_an_object_of_the_backup(repo: Filled, backup: tuple[str, ...]) -> None:
    with recorded("filled") as registry:
        repo.run(*backup, "--registry", registry.url)
    stored = repo.file("sources/prod/backups/*/attachments/registry.*.json.zst")
    place = repo.place()
    document = read_captured(place, read_manifest(place, read_chain(place).completed[-1]))
    assert isinstance(document, RegistryDocument)
    assert document.export.startswith(b"PK")
    repo.run("prune", "--keep-last", "1", "--gc-age", "0s", "--gc-interval", "0s", "-y")
    assert stored.exists()
    repo.run("verify", "--level", "data")
    whole = stored.read_bytes()
    stored.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    found = repo.json("verify", code=10)
    assert repo.name(stored) in {f["where"] for f in found["findings"]}
    said = one_error(repo.run("kafka", "schemas", "list", "latest", code=10).stderr)
    assert "not the attachment that was committed" in said
    stored.unlink()
    repo.run("verify", code=10)


def test_a_registry_that_cannot_be_read_ends_the_backup_before_it_begins(
    repo: Filled, backup: tuple[str, ...], tmp_path: Path
) -> None:
    before = tree(repo.root)
    (port,) = free_ports(1)
    said = one_error(repo.run(*backup, "--registry", f"http://127.0.0.1:{port}", code=51).stderr)
    assert "connection refused" in said
    with serving(lambda method, path, *_: Exchange(method, path, 200, "text/html", "<html>")) as page:
        assert "HTML" in one_error(repo.run(*backup, "--registry", page.url, code=51).stderr)
    secret = tmp_path / "registry.properties"
    secret.write_text("basic.auth.user.info=user:wrong-4711\n")
    secret.chmod(0o600)
    with serving(lambda method, path, *_: Exchange(method, path, 401, "application/json", "{}")) as closed:
        done = repo.run(*backup, "--registry", closed.url, "--registry-config", str(secret), code=52)
        assert "4711" not in done.stderr
    repo.run(*backup, "--registry", "http://user:password@registry", code=40)
    repo.run(*backup, "--registry-config", str(secret), code=40)
    assert tree(repo.root) == before
