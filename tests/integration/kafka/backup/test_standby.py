"""Two instances on one source, as processes: one is active; killed, stopped or ended, the other takes over."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.chain.roles import read_role
from tests.soak_counts import soak_count
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.consumer_view import seen
from tests.support.kafka.copied_logs import on_disk
from tests.support.kafka.follow_process import Following, following
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-plain")

_LIFETIME = "3s"


class Pair:
    """A topic, a repository, and instances by name."""

    def __init__(self, kafka: EmbeddedKafka, topics: Matrix, repo: Filled, topic: str) -> None:
        self.kafka, self.topics, self.repo = kafka, topics, repo
        self.topic, self.written = topics.create(topic), 0
        self._starts = count()

    @contextmanager
    def instance(self, name: str, *more: str) -> Iterator[Following]:
        words = ("kafka", "backup", "--bootstrap-servers", self.kafka.bootstrap, "--source", "prod")
        options = ("--topics", self.topic, "--interval", "200ms", "--lease-ttl", _LIFETIME)
        standby = ("--standby", "--instance", name, *more)
        lines = f"lines-{name}-{next(self._starts)}.json"
        with following(self.repo, (*words, *options, *standby), lines) as run:
            yield run

    def write(self, records: int = 30) -> None:
        producer = self.topics.producer(batch_num_messages=10)
        for _ in range(records):
            producer.produce(self.topic, os.urandom(100), b"k", 0)
        assert producer.flush(60) == 0
        self.written += records

    def active(self) -> str | None:
        found = read_role(self.repo.place())
        return found[0].instance if found and not found[0].released else None

    def archived(self) -> int:
        completed = read_chain(self.repo.place()).completed
        archive = Archive(self.kafka.bootstrap, self.repo.place())
        return archive.cut(completed[-1].id, self.topic).end if completed else 0

    def caught_up(self) -> None:
        wait_for(lambda: self.archived() == self.written, f"{self.written} records in the archive")

    def until_active(self, name: str) -> float:
        """How long that took."""
        began = time.monotonic()
        wait_for(lambda: self.active() == name, f"{name} to become active")
        return time.monotonic() - began

    def check(self) -> None:
        """Every backup continues the one before, without a gap or a record twice."""
        archive = Archive(self.kafka.bootstrap, self.repo.place())
        ids = [entry.id for entry in read_chain(self.repo.place()).completed]
        archive.check(*ids)
        assert archive.batches(ids[-1], self.topic) == on_disk(self.kafka, self.topic, 0, 0, self.written)
        assert len(seen(self.kafka.bootstrap, self.topic, 0)) == self.written

    def roles(self, *more: str, code: int = 0) -> dict[str, str]:
        (source,) = self.repo.json("status", *more, code=code)["sources"]
        return {each["instance"]: each["role"] for each in source["instances"]}


def test_both_started_as_active_and_one_killed(kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> None:
    pair = Pair(kafka, topics, repo, "killed-instance")
    with pair.instance("a") as a, pair.instance("b") as b:
        pair.write()
        pair.caught_up()
        first = pair.active()
        assert first in {"a", "b"}
        other = "b" if first == "a" else "a"
        wait_for(lambda: pair.roles() == {first: "active", other: "passive"}, "both in status")
        assert pair.roles("--max-standby-age", "1m") == {first: "active", other: "passive"}
        alive = b if first == "a" else a
        assert not alive.rounds(), "the passive one made a round"
        (a if first == "a" else b).process.kill()
        pair.write()
        took_s = pair.until_active(other)
        pair.caught_up()
        print(f"taken over after {took_s:.1f} s")
        assert pair.roles("--max-standby-age", "1m", code=60)[other] == "active", "no passive instance is left"
        pair.write()
        pair.caught_up()
        assert alive.ended(signal.SIGTERM) == 0
    assert pair.active() is None, "it was released"
    pair.check()


def test_a_stopped_instance_is_replaced_and_refused_when_it_continues(
    kafka: EmbeddedKafka, topics: Matrix, repo: Filled
) -> None:
    pair = Pair(kafka, topics, repo, "stopped-instance")
    with pair.instance("a") as a:
        pair.write()
        pair.caught_up()
        with pair.instance("b", "--role", "passive") as b:
            wait_for(lambda: pair.roles().get("b") == "passive", "b to wait")
            a.process.send_signal(signal.SIGSTOP)
            pair.write()
            pair.until_active("b")
            pair.caught_up()
            rounds = len(a.rounds())
            a.process.send_signal(signal.SIGCONT)
            wait_for(lambda: pair.roles() == {"a": "passive", "b": "active"}, "a to wait")
            pair.write()
            pair.caught_up()
            assert not any(d["changed"] for d in a.rounds()[rounds:]), "a zombie committed"
            assert b.ended(signal.SIGTERM) == 0
        pair.until_active("a")
        pair.write()
        pair.caught_up()
    pair.check()


@pytest.mark.soak
def test_forty_faults(kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> None:
    """The active instance is killed, stopped or ended, in turn; whoever is gone is started again."""
    pair = Pair(kafka, topics, repo, "forty-faults")
    took: list[float] = []
    for number in range(soak_count(40) // 2):
        with pair.instance("a") as a, pair.instance("b") as b:
            pair.write()
            pair.caught_up()
            for fault in (signal.SIGSTOP, (signal.SIGKILL, signal.SIGTERM)[number % 2]):
                first = pair.active()
                hit, other = (a, "b") if first == "a" else (b, "a")
                hit.process.send_signal(fault)
                pair.write(5)
                took.append(pair.until_active(other))
                pair.caught_up()
                hit.process.send_signal(signal.SIGCONT)
    pair.check()
    print(f"{len(took)} faults, taken over after {min(took):.1f} to {max(took):.1f} s, no gap, nothing twice")
