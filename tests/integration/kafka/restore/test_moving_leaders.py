"""Leaders that move or die while records are written, in a real cluster of three brokers: nothing comes twice."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, Producer
from confluent_kafka import TopicPartition as Position

from logkeep.engine.inline import InlineEngine
from logkeep.kafka.admin.offsets import list_offsets
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.produce import ProduceReply, parse
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.backup_view import view_backup
from logkeep.kafka.restore.facts.units import Offsets, ReplayLog, ReplayOutcome
from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.kafka.restore.plan.values import PlanOptions
from logkeep.kafka.restore.prepare import ClockAndTokens, KafkaRestoreOptions, PreparedKafkaRestore, prepare
from logkeep.kafka.restore.replay import request_sender, rounds
from logkeep.kafka.restore.replay.log_sender import LogReplay
from logkeep.kafka.restore.replay.request_sender import Sender
from logkeep.kafka.restore.replay.target_ends import Absent, TargetAnswer, read_target_ends
from logkeep.kafka.restore.run import KafkaRestore, KafkaRestoreDone
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.restores import RestoreVerdict
from tests.support.kafka.backup_steps import beside
from tests.support.kafka.consumer_view import seen, watermarks
from tests.support.kafka.plain_client import PlainBrokers
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import wait_for
from tests.support.servers.kafka_cluster import KafkaCluster

pytestmark = pytest.mark.xdist_group("kafka-three")
RECORDS, MIDDLE = 900, 340
"""The middle is one of records, not of a hole: see `_restored_elsewhere`."""


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


@dataclass(frozen=True)
class Restoring:
    """A topic with holes, backed up, and the restore of it into another one that is there and empty."""

    settings: ClientSettings
    task: KafkaRestore
    prepared: PreparedKafkaRestore
    wish: KafkaRestoreOptions

    def run(self) -> KafkaRestoreDone:
        return self.task.begin(self.prepared, self.wish, InlineEngine(), {})


def _restoring(
    cluster: KafkaCluster, root: Path, topic: str, back: str, offsets: Offsets, limit: int | None = None
) -> Restoring:
    settings = ClientSettings(endpoints(_everywhere(cluster)), request_timeout_s=10)
    archive = Archive(cluster.bootstrap, new_place(root))
    taken = archive.back_up(topic)
    entry = read_chain(archive.place).entry(taken.entry.id)
    assert entry is not None
    wishes = PlanOptions(offsets=offsets, parts=("data",), into_existing=True)
    wish = KafkaRestoreOptions(RestoreSelection(renames=(f"{topic}={back}",)), wishes, limit_produce=limit)
    view = view_backup(archive.place, entry)
    prepared = prepare(view, wish, settings, lambda _: InlineEngine(), ClockAndTokens(utc_now, random_token))
    return Restoring(
        settings, KafkaRestore(archive.place, archive.place, settings, utc_now, random_token), prepared, wish
    )


def _assert_exact(cluster: KafkaCluster, done: KafkaRestoreDone, topic: str, back: str, offsets: Offsets) -> None:
    assert done.receipt.verdict is RestoreVerdict.PROVEN, done.receipt.findings
    expected, found = seen(_everywhere(cluster), topic, 0), seen(_everywhere(cluster), back, 0)
    assert list(found.values()) == list(expected.values())
    if offsets is Offsets.PRESERVE:
        assert list(found) == list(expected)
        assert watermarks(_everywhere(cluster), back, 0) == watermarks(_everywhere(cluster), topic, 0)


@pytest.mark.parametrize("offsets", list(Offsets))
def test_the_leader_is_killed_in_the_middle(cluster: KafkaCluster, tmp_path: Path, offsets: Offsets) -> None:
    topic = cluster.create(f"led-{offsets}", [1, 2, 3])
    _write(cluster, topic)
    back = cluster.create(f"{topic}-back", [2, 3, 1])
    restoring = _restoring(cluster, tmp_path, topic, back, offsets, limit=3_000_000)
    with beside(restoring.run) as restore:
        _until_written(restoring.settings, back, MIDDLE)
        wait_for(lambda: cluster.leader(back) > 1, "a leader that is not the controller")
        killed = cluster.leader(back)
        cluster.members[killed].kill()
        cluster.members[killed].start()  # it may coordinate the transactions that fill holes: nobody else can
        done = restore.result()
    if [each.code for each in done.receipt.findings] == [ReplayOutcome.MISPLACED]:
        done, back = _restored_elsewhere(cluster, tmp_path / "again", topic, offsets)
    _assert_exact(cluster, done, topic, back, offsets)


def _restored_elsewhere(
    cluster: KafkaCluster, root: Path, topic: str, offsets: Offsets
) -> tuple[KafkaRestoreDone, str]:
    """What a user does who was told that a marker is misplaced in a topic that was there before.

    A leader that dies between writing a marker and telling the coordinator so gets it written twice: no client can
    prevent that. It is found and said; only a topic that the restore made itself is deleted and made again by it.
    """
    print(f"{topic}: the leader died while it wrote a marker, which then came twice")
    back = cluster.create(f"{topic}-again", [2, 3, 1])
    return _restoring(cluster, root, topic, back, offsets).run(), back


class Conversation:
    """What an attempt sends and what it is answered, in order; `before_first` is done when it is about to begin."""

    def __init__(self, patched: pytest.MonkeyPatch, before_first: Callable[[], None]) -> None:
        self.told: list[str] = []
        send = Sender.send

        def watched(sender: Sender, logs: Sequence[LogReplay]) -> bool:
            if not self.told:
                self.told.append("begins")
                before_first()
            sent = send(sender, logs)
            self.told += ["sent"] if sent else []
            return sent

        def parsed(body: memoryview) -> ProduceReply:
            reply = parse(body)
            self.told += [f"error {ack.error}" if ack.error else f"at {ack.base_offset}" for ack in reply.acks]
            return reply

        patched.setattr(Sender, "send", watched)
        patched.setattr(request_sender, "parse", parsed)


@pytest.mark.parametrize("offsets", list(Offsets))
def test_the_leader_moves_before_the_first_batch(
    cluster: KafkaCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offsets: Offsets
) -> None:
    """The broker that was asked leads no more when the batch comes. One that does not know us would take any batch for
    the first, so none may follow before the first has an answer, and after the refusal it is the first again."""
    topic = cluster.create(f"early-{offsets}", [1, 2, 3])
    _write(cluster, topic)
    back = cluster.create(f"{topic}-back", [2, 3, 1])
    restoring = _restoring(cluster, tmp_path / "repository", topic, back, offsets)
    _prefer(cluster, back, [3, 2, 1], tmp_path / "order.json")
    assert cluster.leader(back) == 2
    with monkeypatch.context() as patched:
        heard = Conversation(patched, lambda: _elect(cluster, back, old=2, new=3))
        done = restoring.run()
    assert heard.told[:5] == ["begins", "sent", "error 6", "sent", "at 0"]
    _assert_exact(cluster, done, topic, back, offsets)


def test_nobody_leads_for_a_while(cluster: KafkaCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only replica is on a broker that restarts: its topic is not taken for one that was deleted."""
    topic = cluster.create("alone", [1])
    _write(cluster, topic)
    back = cluster.create(f"{topic}-back", [3])
    restoring = _restoring(cluster, tmp_path, topic, back, Offsets.TRANSLATE)
    looks = list[bool]()

    def look(target: Cluster, logs: Sequence[ReplayLog]) -> list[TargetAnswer]:
        answers = read_target_ends(target, logs)
        looks.append(any(isinstance(each, Absent) for each in answers))
        return answers

    def kill() -> None:
        cluster.members[3].kill()
        wait_for(lambda: cluster.leader(back) < 0, "the broker to be missed")

    with monkeypatch.context() as patched:
        Conversation(patched, kill)
        patched.setattr(rounds, "read_target_ends", look)
        with beside(restoring.run) as restore:
            wait_for(lambda: sum(looks) > 6 or restore.done(), "several looks at a partition without a leader")
            cluster.members[3].start()
            done = restore.result()
    _assert_exact(cluster, done, topic, back, Offsets.TRANSLATE)


def _prefer(cluster: KafkaCluster, topic: str, replicas: list[int], plan: Path) -> None:
    """Another order of the replicas; who leads stays the same until somebody asks for an election."""
    order = {"topic": topic, "partition": 0, "replicas": replicas}
    plan.write_text(json.dumps({"version": 1, "partitions": [order]}))
    reassign = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    words = ["--bootstrap-server", cluster.members[1].bootstrap, "--execute", "--reassignment-json-file", str(plan)]
    cluster.members[1].java_tool(reassign, words)
    wait_for(lambda: cluster.in_sync(topic) == set(replicas), "all replicas to be in sync")


def _elect(cluster: KafkaCluster, topic: str, old: int, new: int) -> None:
    """The first of the replicas leads from now on, and the one that led has heard of it."""
    cluster.admin.elect_leaders(ElectionType.PREFERRED, [Position(topic, 0)]).result(30)
    former = PlainBrokers("127.0.0.1", cluster.members[old].port)
    wait_for(lambda: former.metadata(topic).topics[0].partitions[0].leader_id == new, "the former leader to hear of it")


def _until_written(settings: ClientSettings, topic: str, offset: int) -> None:
    log = TopicPartition(topic, 0)

    def there() -> bool:
        with Cluster(settings) as cluster:
            return cluster.metadata().topic(topic) is not None and list_offsets(cluster, [log])[log].offset > offset

    wait_for(there, f"offset {offset} of {topic}")
