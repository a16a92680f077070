"""One backup restored again and again by drivers that die: topics of awkward shapes, groups, and what must be found."""

from collections import Counter
from dataclasses import dataclass, field

from confluent_kafka import TopicPartition

from logkeep.model.ids import RestoreId
from logkeep.repository.restores import list_restores, newest_producers, newest_receipt, read_receipts
from tests.integration.kafka.restore.drivers import Drivers, Point
from tests.integration.kafka.restore.scene import Log, Scene, group_positions, write
from tests.support.kafka.client_readers import Read, read_whole
from tests.support.kafka.client_view_of_configs import own_configs
from tests.support.kafka.group_topic import commit
from tests.support.kafka.topic_matrix import Matrix

SOURCES = {"smooth": 2, "bumpy": 1, "later": 1}
"""Many batches; holes of aborted transactions; a log that does not begin at 0."""
GROUP = "killed-readers"
OWN = {"cleanup.policy": "compact", "segment.bytes": "2000000"}
_OLD = 3
"""Records that are there before in topics that are restored into."""


def write_sources(topics: Matrix, kafka_bootstrap: str) -> None:
    topics.create("smooth", 2, OWN)
    producer = topics.producer(batch_num_messages=20)
    for i in range(600):
        producer.produce("smooth", b"smooth %d" % i, b"%d" % i, i % 2)
        producer.poll(0)
    topics.create("bumpy")
    topics.create("later")
    for i in range(40):
        producer.produce("later", b"later %d" % i, b"%d" % i, 0)
    assert producer.flush(30) == 0
    for future in topics.admin.delete_records([TopicPartition("later", 0, 17)]).values():
        future.result(30)
    transactional = topics.producer(transactional_id="bumpy")
    transactional.init_transactions(30)
    for round_ in range(4):
        write(topics, "bumpy", [f"plain {round_}/{i}" for i in range(5)])
        transactional.begin_transaction()
        transactional.produce("bumpy", f"aborted {round_}", partition=0)
        transactional.flush(30)
        transactional.abort_transaction(30)
    commit(kafka_bootstrap, GROUP, {("smooth", 0): 111, ("smooth", 1): 300, ("bumpy", 0): 9, ("later", 0): 20})


@dataclass
class Killing:
    """Restores of one kind: into new topics at their own offsets, or behind the records of others."""

    scene: Scene
    drivers: Drivers
    offsets: str
    logs: dict[Log, Read]
    """What a consumer sees of the source."""
    rounds: int = 0
    store_calls: int = 0
    requests: int = 0
    kills: int = 0
    stages: Counter[str] = field(default_factory=Counter)

    @property
    def existing(self) -> bool:
        return self.offsets == "translate"

    def measure(self) -> "Killing":
        """One restore that nobody kills."""
        prefix = self.prepared()
        done = self.drivers.run(self.scene.commands, *self.words(prefix))
        assert done.code == 0, done.err
        self.store_calls, self.requests = done.store_calls, done.requests
        self.assert_exact(prefix)
        return self

    def prepared(self) -> str:
        """Where the next one goes, with what is there before."""
        self.rounds += 1
        prefix = f"{self.offsets[0]}{self.rounds}-"
        if self.existing:
            there = Matrix(self.scene.target)
            for topic, partitions in SOURCES.items():
                there.create(prefix + topic, partitions, {"retention.ms": "99999999999"})
                for partition in range(partitions):
                    write(there, prefix + topic, ["old"] * _OLD, partition)
            commit(self.scene.target.bootstrap, GROUP, {(f"{prefix}smooth", 0): 2}, "before")
        return prefix

    def words(self, prefix: str) -> tuple[str, ...]:
        more = ("--into-existing",) if self.existing else ()
        chosen = ("--topics", "smooth|bumpy|later", "--groups", GROUP, "--rename", f"s/^/{prefix}/")
        return self.scene.restore_words("--offsets", self.offsets, *chosen, *more, "--yes", "--json")

    def killed(self, prefix: str, point: Point, *, surely: bool = True) -> RestoreId | None:
        """The id of a restore whose driver died, when it came so far as to have one."""
        before = len(list_restores(self.scene.repo.place()))
        ended = self.drivers.run(self.scene.commands, *self.words(prefix), point=point)
        assert ended.killed or (not surely and ended.code == 0), ended
        self.kills += ended.killed
        after = list_restores(self.scene.repo.place())
        return after[-1].id if len(after) > before else None

    def resume_words(self, restore_id: RestoreId) -> tuple[str, ...]:
        return self.scene.restore_words("--resume", str(restore_id), "--yes", "--json")

    def resumed(self, prefix: str, restore_id: RestoreId | None) -> RestoreId:
        """Go on, or begin again when nothing had begun; the restore's id."""
        words = self.words(prefix) if restore_id is None else self.resume_words(restore_id)
        done = self.drivers.run(self.scene.commands, *words)
        assert done.code == 0, done.err
        return list_restores(self.scene.repo.place())[-1].id if restore_id is None else restore_id

    def round(self, point: Point, *, surely: bool = True) -> str:
        """Die at a point, go on, and look. Tells what was stored of it until then."""
        prefix = self.prepared()
        restore_id = self.killed(prefix, point, surely=surely)
        stage = "nothing" if restore_id is None else self._stage(restore_id)
        self.stages[stage] += 1
        self.assert_exact(prefix, self.resumed(prefix, restore_id))
        return stage

    def _stage(self, restore_id: RestoreId) -> str:
        place = self.scene.repo.place()
        receipts = len(list(read_receipts(place, restore_id)))
        if receipts:
            return ("records", "groups", "end")[receipts - 1]
        return "plan" if newest_producers(place, restore_id) is None else "producers"

    def assert_exact(self, prefix: str, restore_id: RestoreId | None = None) -> None:
        """Everything is there once, in order; configs, groups and the receipt are right."""
        target = self.scene.target
        found = read_whole(target.bootstrap, [(prefix + topic, p) for topic, p in self.logs], "read_committed")
        for (topic, partition), source in self.logs.items():
            restored = found[prefix + topic, partition]
            if self.existing:
                expected = [each[2:] for each in source.records]
                assert [each.value for each in restored.records[:_OLD]] == [b"old"] * _OLD
                assert [each[2:] for each in restored.records[_OLD:]] == expected, (prefix, topic)
                assert [each.offset for each in restored.records] == list(range(_OLD + len(expected))), (prefix, topic)
            else:
                assert restored == source, (prefix, topic)
        configs = {topic: own_configs(target, prefix + topic) for topic in SOURCES}
        if self.existing:
            assert configs == {topic: {"retention.ms": "99999999999"} for topic in SOURCES}
        else:
            assert configs == {"smooth": OWN, "bumpy": {}, "later": {}}
        self._assert_groups(prefix)
        if restore_id is not None:
            self._assert_receipt(prefix, restore_id)

    def _assert_groups(self, prefix: str) -> None:
        committed = group_positions(self.scene.kafka, GROUP)
        expected = {
            (prefix + topic, p): (self._translated(topic, p, offset), note)
            for (topic, p), (offset, note) in committed.items()
        }
        found = group_positions(self.scene.target, GROUP)
        assert {log: each for log, each in found.items() if log[0].startswith(prefix)} == expected

    def _translated(self, topic: str, partition: int, offset: int) -> int:
        if not self.existing:
            return offset
        return _OLD + sum(each.offset < offset for each in self.logs[topic, partition].records)

    def _assert_receipt(self, prefix: str, restore_id: RestoreId) -> None:
        receipt = newest_receipt(self.scene.repo.place(), restore_id)
        assert receipt is not None
        assert (receipt.verdict, receipt.records_there) == ("proven", True)
        assert {(p.source_topic, p.source_partition): p.records for p in receipt.partitions} == {
            log: len(read.records) for log, read in self.logs.items()
        }
        previous = {(g.topic, g.partition): g.previous_offset for g in receipt.groups if g.offset is not None}
        wanted = {(prefix + topic, p): None for topic, n in SOURCES.items() for p in range(n)}
        assert previous == wanted | ({(f"{prefix}smooth", 0): 2} if self.existing else {}), "positions before are lost"
