"""Groups of every kind that move on a real broker, and what independent clients say of them at each moment."""

import random
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cache, cached_property

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.inline import InlineEngine
from logkeep.kafka.admin.group_changes import move_share_groups
from logkeep.kafka.admin.groups import share_group_offsets
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition as Log
from logkeep.kafka.group_history.answers import GroupsAt
from logkeep.kafka.group_history.open_backup import archived_groups
from logkeep.kafka.group_history.run import ArchivedGroups
from logkeep.repository.chain.commits import SourceRef, read_chain
from tests.support.kafka.topic_matrix import Matrix
from tests.support.processes import wait_for

Offsets = dict[tuple[str, str, int], int]
"""By group, topic and partition."""
_APACHE = "org.apache.kafka.tools.consumer.group"


@dataclass(frozen=True)
class Moment:
    at_ms: int
    offsets: Offsets


@dataclass(eq=False)
class Groups:
    """A classic group, one of the new protocol, one that commits in transactions, and a share group."""

    kafka: EmbeddedKafka
    topics: Matrix
    prefix: str
    moments: list[Moment] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "Groups":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @cached_property
    def cluster(self) -> Cluster:
        return self._stack.enter_context(Cluster(ClientSettings(endpoints(self.kafka.bootstrap))))

    @cached_property
    def _producer(self) -> Producer:
        producer = self.topics.producer(transactional_id=self.prefix)
        producer.init_transactions(30)
        return producer

    @cache  # noqa: B019 - one for each group, closed with the others
    def _committer(self, kind: str) -> Consumer:
        settings = {"bootstrap.servers": self.kafka.bootstrap, "group.id": self.names[kind]}
        return self._stack.enter_context(closing(Consumer(settings | {"enable.auto.commit": False})))

    @property
    def names(self) -> dict[str, str]:
        return {kind: f"{self.prefix}-{kind}" for kind in ("classic", "consumer", "tx", "share")}

    @property
    def topic(self) -> str:
        return f"{self.prefix}-orders"

    def create(self) -> None:
        self.topics.create(self.topic, 2)
        producer = self.topics.producer()
        for number in range(60):
            producer.produce(self.topic, b"v%d" % number, b"k", number % 2)
        assert producer.flush(30) == 0

    def commit(self, kind: str, partition: int, offset: int) -> None:
        place = TopicPartition(self.topic, partition, offset)
        self._committer(kind).commit(offsets=[place], asynchronous=False)

    def commit_as_member(self, partition: int, offset: int) -> None:
        """By a member of a group of the new protocol, which then leaves."""
        settings = {"bootstrap.servers": self.kafka.bootstrap, "group.id": self.names["consumer"]}
        more = {"group.protocol": "consumer", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        with closing(Consumer(settings | more)) as consumer:
            consumer.subscribe([self.topic])
            wait_for(lambda: consumer.poll(0.1) is not None, "a record")
            consumer.commit(offsets=[TopicPartition(self.topic, partition, offset)], asynchronous=False)

    def begin(self, partition: int, offset: int) -> None:
        """A commit in a transaction that stays open."""
        self._producer.begin_transaction()
        place, metadata = TopicPartition(self.topic, partition, offset), self._committer("tx").consumer_group_metadata()
        self._producer.send_offsets_to_transaction([place], metadata, 30)

    def end(self, *, commit: bool) -> None:
        """Until its marker is written: the answer to the producer comes before."""
        (self._producer.commit_transaction if commit else self._producer.abort_transaction)(30)
        asked = [ConsumerGroupTopicPartitions(self.names["tx"])]
        for future in self.topics.admin.list_consumer_group_offsets(asked, require_stable=True).values():
            future.result(30)

    def share(self, partition: int, offset: int) -> None:
        starts = {self.names["share"]: {Log(self.topic, partition): offset}}
        assert move_share_groups(self.cluster, starts) == {self.names["share"]: ()}

    def recreate(self) -> None:
        """The topic is deleted, its groups' offsets with it, and another one gets its name."""
        self.topics.delete(self.topic)
        wait_for(lambda: not [key for key in self.by_admin() if key[0] != self.names["share"]], "offsets to go")
        self.create()

    def by_admin(self) -> Offsets:
        """What brokers answer to librdkafka; of the share group, which it cannot ask for, to another client."""
        asked = [ConsumerGroupTopicPartitions(name) for kind, name in self.names.items() if kind != "share"]
        found: Offsets = {}
        for request in asked:
            for name, future in self.topics.admin.list_consumer_group_offsets([request]).items():
                for p in future.result(30).topic_partitions:
                    if p.offset >= 0:
                        found[name, p.topic, p.partition] = p.offset
        shared = share_group_offsets(self.cluster, [self.names["share"]])
        for log, commit in shared.get(self.names["share"], {}).items():
            found[self.names["share"], log.topic, log.partition] = commit.offset
        return {key: offset for key, offset in found.items() if offset >= 0}

    def by_apache(self) -> Offsets:
        """What Apache's commands print."""
        server = ["--bootstrap-server", self.kafka.bootstrap, "--describe", "--offsets"]
        found: Offsets = {}
        shares = self.names["share"]
        plain = [word for kind, name in self.names.items() if kind != "share" for word in ("--group", name)]
        for tool, chosen in (("ConsumerGroupCommand", plain), ("ShareGroupCommand", ["--group", shares])):
            for line in self.kafka.java_tool(f"{_APACHE}.{tool}", [*server, *chosen]).splitlines():
                words = line.split()
                if len(words) > 3 and words[0] in self.names.values() and words[3].isdigit():
                    found[words[0], words[1], int(words[2])] = int(words[3])
        return found

    def note(self, judge: Callable[[], Offsets] | None = None) -> Moment:
        """What is said now. What comes next is later by the clock, which broker and test share."""
        said = (judge or self.by_admin)()
        moment = Moment(time.time_ns() // 1_000_000, said)
        self.moments.append(moment)
        wait_for(lambda: time.time_ns() // 1_000_000 > moment.at_ms + 1, "the next millisecond")
        return moment


def move(groups: Groups, chance: random.Random, step: int, judge: Callable[[], Offsets] | None = None) -> None:
    """One change of one group, and what is said while a transaction is open."""
    partition, offset = chance.randrange(2), 1 + step
    kind = ("classic", "tx", "share", "abort", "classic")[step % 5]
    if kind == "classic":
        groups.commit("classic", partition, offset)
    elif kind == "share":
        groups.share(partition, offset)
    else:
        groups.begin(partition, offset)
        groups.note(judge)
        groups.end(commit=kind == "tx")


def archived_at(place: SourceRef, backup: int) -> ArchivedGroups:
    folded = read_chain(place)
    entry = folded.entry(backup)
    assert entry is not None
    return archived_groups(place, folded, entry, lambda _: InlineEngine())


def current_offsets(found: GroupsAt, *, sure: bool = False) -> Offsets:
    return {
        (p.group, p.topic, p.partition): p.offset
        for each in found.positions
        if (p := each.position).erased_ms is None and (each.sure or not sure)
    }
