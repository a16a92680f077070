"""A broker with tiered storage: backup, verify and restore, and the topic in which Kafka lists what it has moved."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.admin.offsets import list_offsets
from logkeep.kafka.client import metadata
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from logkeep.model.cache import cache_dir
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.client_readers import read_whole
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import new_place
from tests.support.processes import wait_for
from tests.support.servers.tiered_kafka import tiered_kafka

pytestmark = pytest.mark.xdist_group("kafka-tiered")
FIRST_LOCAL = -4
"""In place of a time: the first offset on the broker's own disk."""
KAFKAS = "__remote_log_metadata"
LOG = TopicPartition("tiered", 0)
RECORDS, RECORD_BYTES = 6_000, 1_000
CONFIGS = {
    "remote.storage.enable": "true",
    "local.retention.bytes": "1",
    "segment.bytes": "1048576",
    "file.delete.delay.ms": "0",
}


@dataclass(frozen=True)
class Tiered:
    kafka: EmbeddedKafka
    repo: Filled

    @property
    def commands(self) -> Commands:
        return Commands(self.repo.url, self.repo.home)

    def cluster(self) -> Cluster:
        return Cluster(ClientSettings(endpoints(self.kafka.bootstrap)))

    def back_up(self, *more: str, code: int = 0) -> dict[str, Any]:
        words = ("--bootstrap-servers", self.kafka.bootstrap, "--source", "prod")
        return self.commands.json("kafka", "backup", *words, *more, code=code)

    def restore(self, *more: str, code: int = 0) -> dict[str, Any]:
        with self.cluster() as cluster:
            own = ("--confirm-cluster", cluster.metadata().cluster_id)
        words = ("--bootstrap-servers", self.kafka.bootstrap, *own, "--engine", "inline", "--yes")
        return self.commands.json("kafka", "restore", *(more or ("latest",)), *words, code=code)


@pytest.fixture(scope="module")
def tiered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiered]:
    directory = tmp_path_factory.mktemp("tiered")
    repo = Filled(directory / "home")
    repo.home.mkdir()
    share_kernels(repo.home)
    new_place(repo.root)
    with tiered_kafka(directory / "kafka", cache_dir(os.environ, Path.home())) as kafka:
        made = Tiered(kafka, repo)
        _fill(made)
        yield made


def _fill(made: Tiered) -> None:
    """Until most of the log is no longer on the broker's own disk."""
    topics = Matrix(made.kafka)
    topics.create(LOG.topic, 1, CONFIGS)
    producer = topics.producer(batch_num_messages=50)
    for i in range(RECORDS):
        producer.produce(LOG.topic, os.urandom(RECORD_BYTES), b"%d" % i, 0)
        producer.poll(0)
    assert producer.flush(60) == 0
    with made.cluster() as cluster:
        wait_for(lambda: list_offsets(cluster, [LOG], FIRST_LOCAL)[LOG].offset >= RECORDS * 2 // 3, "the move")


def test_an_earlier_backup_of_kafkas_own_topic(tiered: Tiered, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier release took it for a user's: it is left out from now on, and nothing is ever written to it."""
    with monkeypatch.context() as patched:
        patched.setattr(metadata, "is_internal", lambda _, flagged: flagged, raising=False)
        first = tiered.back_up()
    now = tiered.back_up()
    assert [(f["code"], f["severity"]) for f in now["findings"] if f["where"] == KAFKAS] == [("topic-left-out", "note")]
    assert now["gaps"] == []
    shown = tiered.commands.json("info", str(first["id"]))
    assert {t["name"]: t["internal"] for t in shown["kafka"]["topics"]} == {KAFKAS: True, LOG.topic: False}
    planned = tiered.restore(str(first["id"]), "--dry-run", code=31)
    assert planned["topics"] == [LOG.topic]
    assert not any(KAFKAS in refusal for refusal in planned["refusals"])
    assert [f["code"] for f in planned["findings"] if f["where"] == KAFKAS] == ["internal-topic"]
    words = ("--rename", f"{LOG.topic}={KAFKAS}", "--topics", LOG.topic, "--dry-run")
    (refusal, *_) = tiered.restore(str(first["id"]), *words, code=40)["refusals"]
    assert "never written to" in refusal
    assert "delete" not in refusal


def test_backup_verify_and_restore(tiered: Tiered) -> None:
    """The plan knows about the part that is not on the broker's disk."""
    planned = tiered.back_up("--dry-run", "--source", "whole")
    assert RECORDS * RECORD_BYTES * 0.9 < planned["new_bytes"] < RECORDS * RECORD_BYTES * 1.5
    made = tiered.back_up("--source", "whole")
    assert made["findings"] == []
    tiered.commands.json("verify", "latest", "--source", "whole", "--level", "records")
    done = tiered.restore("latest", "--source", "whole", "--rename", "s/^/restored-/")
    assert (done["verdict"], done["records"]) == ("proven", RECORDS)
    found = read_whole(tiered.kafka.bootstrap, [(LOG.topic, 0), (f"restored-{LOG.topic}", 0)], "read_committed")
    source, restored = (found[topic, 0] for topic in (LOG.topic, f"restored-{LOG.topic}"))
    assert restored == source


def test_with_internal_it_is_archived_and_still_not_restored(tiered: Tiered) -> None:
    made = tiered.back_up("--internal", "--source", "everything")
    shown = tiered.commands.json("info", str(made["id"]), "--source", "everything")
    assert KAFKAS in {t["name"] for t in shown["kafka"]["topics"]}
    planned = tiered.restore("latest", "--source", "everything", "--rename", "s/^/again-/", "--dry-run")
    assert f"again-{LOG.topic}" in planned["topics"]
    assert f"again-{KAFKAS}" not in planned["topics"]
