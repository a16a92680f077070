"""Small rounds of a real broker become few objects, and every older backup is served by them."""

import os
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import GarbageRules, collect
from logkeep.store.wrapper import DelegatingStore
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.copied_logs import object_paths
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive

pytestmark = pytest.mark.xdist_group("kafka-plain")
RECORDS, PARTITIONS = 20, 2
AT_ONCE = GarbageRules(age=timedelta(0), interval=timedelta(0))


def _rounds(topics: Matrix, archive: Archive, topic: str, rounds: int) -> dict[int, list[list[bytes]]]:
    """What each backup holds of each partition."""
    producer = topics.producer(batch_num_messages=5, compression_type="lz4")
    ids = []
    for _ in range(rounds):
        for i in range(RECORDS):
            producer.produce(topic, os.urandom(50), b"%d" % i, i % PARTITIONS)
        assert producer.flush(60) == 0
        ids.append(archive.back_up(topic).entry.id)
    return {i: _bytes(archive, i, topic) for i in ids}


def _bytes(archive: Archive, backup_id: int, topic: str) -> list[list[bytes]]:
    return [_covered(archive, backup_id, topic, p) for p in range(PARTITIONS)]


def _covered(archive: Archive, backup_id: int, topic: str, partition: int) -> list[bytes]:
    end = archive.cut(backup_id, topic, partition).end
    return [b for b in archive.batches(backup_id, topic, partition) if int.from_bytes(b[:8], "big") < end]


def _dumped(kafka: EmbeddedKafka, files: list[Path]) -> list[str]:
    """Every record as Apache's tool tells it, but for where it lies in its file."""
    tool = "org.apache.kafka.tools.DumpLogSegments"
    said = kafka.java_tool(tool, ["--deep-iteration", "--print-data-log", "--files", ",".join(map(str, files))])
    assert "isvalid: false" not in said
    return sorted(re.findall(r"^\| offset: .*", said, re.MULTILINE))


@pytest.mark.parametrize("rounds", [9, pytest.param(30, marks=pytest.mark.soak)])
def test_rounds_become_few_objects_that_serve_all_backups(
    kafka: EmbeddedKafka, topics: Matrix, repo: Filled, rounds: int
) -> None:
    topic = topics.create(f"rounds-{rounds}", PARTITIONS)
    archive = Archive(kafka.bootstrap, repo.place())
    before = _rounds(topics, archive, topic, rounds)
    small = object_paths(repo.root, ".log")
    said = _dumped(kafka, small)
    assert (len(before), len(small), len(said)) == (rounds, rounds * PARTITIONS, rounds * RECORDS)
    foreseen = repo.json("kafka", "optimize", "--dry-run")
    assert object_paths(repo.root, ".log") == small
    done = repo.json("kafka", "optimize")
    assert (done["objects_before"], done["objects_after"]) == (rounds * PARTITIONS, PARTITIONS)
    assert (foreseen["objects_before"], foreseen["size_bytes"]) == (done["objects_before"], done["size_bytes"])
    with writing(archive.place, "gc", utc_now, random_token) as session:
        collect(session, AT_ONCE)
    merged = object_paths(repo.root, ".log")
    assert len(merged) == PARTITIONS == len(object_paths(repo.root, ".index"))
    assert _dumped(kafka, merged) == said, "Apache reads the same records from the merged files"
    assert {i: _bytes(archive, i, topic) for i in before} == before
    archive.check(*before)
    assert repo.json("kafka", "optimize")["objects_before"] == 0
    _another_backup(topics, archive, topic)


class _SealedLogs(DelegatingStore):
    """Archived logs cannot be read."""

    def get(self, name: str, limit: int) -> bytes:
        assert not name.endswith(".log"), name
        return super().get(name, limit)

    def get_range(self, name: str, start: int, length: int) -> bytes:
        assert not name.endswith(".log"), name
        return super().get_range(name, start, length)


def _another_backup(topics: Matrix, archive: Archive, topic: str) -> None:
    """The last archived batches are in the record, where merging does not change them: no object is read for them."""
    producer = topics.producer()
    producer.produce(topic, b"one more", None, 0)
    assert producer.flush(60) == 0
    sealed = replace(archive, place=replace(archive.place, store=_SealedLogs(archive.place.store)))
    later = sealed.back_up(topic)
    assert (later.offsets, later.findings) == (1, ())
    archive.check(later.entry.id)


def test_a_damaged_object_is_left_alone_and_named(kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> None:
    topic = topics.create("rotten")
    archive = Archive(kafka.bootstrap, repo.place())
    for _ in range(4):
        producer = topics.producer()
        producer.produce(topic, os.urandom(500), None, 0)
        producer.flush(30)
        archive.back_up(topic)
    rotten = object_paths(repo.root, ".log")[1]
    data = bytearray(rotten.read_bytes())
    data[-1] ^= 1
    rotten.chmod(0o600)
    rotten.write_bytes(data)
    before = object_paths(repo.root, ".log")
    done = repo.json("kafka", "optimize", code=10)
    assert [f["where"] for f in done["findings"]] == [repo.name(rotten)]
    assert object_paths(repo.root, ".log") == before
