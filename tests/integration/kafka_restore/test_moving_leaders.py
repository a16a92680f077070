"""Leaders that move or die while records are written, in a real cluster of three brokers: nothing comes twice."""

import os
from pathlib import Path

import pytest
from confluent_kafka import Producer

from logkeep.kafka.admin.offsets import list_offsets
from logkeep.kafka.cluster import Cluster
from logkeep.kafka.restore.backup_view import view_backup
from logkeep.kafka.restore.choice import Choice
from logkeep.kafka.restore.plan import Wishes
from logkeep.kafka.restore.preparing import Chance, RestoreWish, prepare
from logkeep.kafka.restore.restore import KafkaRestore
from logkeep.kafka.restore.units import Offsets
from logkeep.kafka.settings import ClientSettings, endpoints
from logkeep.kafka.values import TopicPartition
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain import read_chain
from logkeep.repository.restores import Verdict
from logkeep.spark.inline import InlineEngine
from tests.integration.processes import wait_for
from tests.kafka.seen import seen, watermarks
from tests.kafka.steps import beside
from tests.kafka.whole import Archive, new_place
from tests.servers.kafka_cluster import KafkaCluster

pytestmark = pytest.mark.xdist_group("kafka-three")
RECORDS = 900


def _everywhere(cluster: KafkaCluster) -> str:
    return ",".join(member.bootstrap for member in cluster.members.values())


def _write(cluster: KafkaCluster, topic: str) -> None:
    """Every third transaction is aborted: the log has holes of many sizes."""
    settings = {"bootstrap.servers": _everywhere(cluster), "transactional.id": f"{topic}-writer", "linger.ms": 5}
    producer = Producer(settings)
    producer.init_transactions(60)
    for begin in range(0, RECORDS, 100):
        producer.begin_transaction()
        for i in range(begin, begin + 100):
            producer.produce(topic, os.urandom(10_000), b"%d" % i, 0)
            if i % 20 == 19:
                producer.flush(60)
        if begin % 300 == 200:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)


@pytest.mark.parametrize("offsets", list(Offsets))
def test_the_leader_is_killed_in_the_middle(cluster: KafkaCluster, tmp_path: Path, offsets: Offsets) -> None:
    topic = cluster.create(f"led-{offsets}", [1, 2, 3])
    _write(cluster, topic)
    settings = ClientSettings(endpoints(_everywhere(cluster)), request_timeout_s=10)
    archive = Archive(cluster.bootstrap, new_place(tmp_path))
    taken = archive.back_up(topic)
    entry = read_chain(archive.place).entry(taken.entry.id)
    assert entry is not None
    back = cluster.create(f"{topic}-back", [2, 3, 1])
    wishes = Wishes(offsets=offsets, parts=("data",), into_existing=True)
    wish = RestoreWish(Choice(renames=(f"{topic}={back}",)), wishes, limit_produce=3_000_000)
    view = view_backup(archive.place, entry)
    prepared = prepare(view, wish, settings, lambda _: InlineEngine(), Chance(utc_now, random_token))
    task = KafkaRestore(archive.place, archive.place, settings, utc_now, random_token)
    with beside(lambda: task.begin(prepared, wish, InlineEngine(), {})) as restore:
        _until_written(settings, back, RECORDS // 4)
        wait_for(lambda: cluster.leader(back) > 1, "a leader that is not the controller")
        killed = cluster.leader(back)
        cluster.members[killed].kill()
        cluster.members[killed].start()  # it may coordinate the transactions that fill holes: nobody else can
        done = restore.result()
    assert done.receipt.verdict is Verdict.PROVEN, done.receipt.findings
    expected, found = seen(_everywhere(cluster), topic, 0), seen(_everywhere(cluster), back, 0)
    assert list(found.values()) == list(expected.values())
    if offsets is Offsets.PRESERVE:
        assert list(found) == list(expected)
        assert watermarks(_everywhere(cluster), back, 0) == watermarks(_everywhere(cluster), topic, 0)


def _until_written(settings: ClientSettings, topic: str, offset: int) -> None:
    log = TopicPartition(topic, 0)

    def there() -> bool:
        with Cluster(settings) as cluster:
            return cluster.metadata().topic(topic) is not None and list_offsets(cluster, [log])[log].offset > offset

    wait_for(there, f"offset {offset} of {topic}")
