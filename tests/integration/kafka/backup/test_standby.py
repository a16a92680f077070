"""Two instances on one source, as processes: one is active; killed, stopped or ended, the other takes over."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import count, groupby
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.roles import read_role
from logkeep.store.access import open_store
from tests.soak_counts import soak_count
from tests.support.cli.filled_repository import Filled
from tests.support.cli.processes import REAL
from tests.support.kafka.consumer_view import seen
from tests.support.kafka.copied_logs import on_disk
from tests.support.kafka.follow_process import Following, following
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive
from tests.support.processes import wait_for
from tests.support.servers.s3 import ENVIRONMENT, S3Server, seaweed
from tests.support.zeebe.store_switch import StoreSwitch

pytestmark = pytest.mark.xdist_group("kafka-plain")

_LIFETIME = "10s"
"""Where a process or a disk stands still for longer, the role moves without a fault."""


class Pair:
    """A topic, a repository, and instances by name."""

    def __init__(
        self, kafka: EmbeddedKafka, topics: Matrix, repo: Filled, topic: str, place: SourceRef | None = None
    ) -> None:
        self.kafka, self.topics, self.repo = kafka, topics, repo
        self.place = place or repo.place()
        self.topic, self.written = topics.create(topic), 0
        self._starts = count()

    @contextmanager
    def instance(self, name: str, *more: str, program: Sequence[str] = REAL, **variables: str) -> Iterator[Following]:
        words = ("kafka", "backup", "--bootstrap-servers", self.kafka.bootstrap, "--source", "prod")
        options = ("--topics", self.topic, "--interval", "200ms", "--lease-ttl", _LIFETIME)
        standby = ("--standby", "--instance", name, *more)
        lines = f"lines-{name}-{next(self._starts)}.json"
        with following(self.repo, (*words, *options, *standby), lines, program, **variables) as run:
            yield run

    def write(self, records: int = 30) -> None:
        producer = self.topics.producer(batch_num_messages=10)
        for _ in range(records):
            producer.produce(self.topic, os.urandom(100), b"k", 0)
        assert producer.flush(60) == 0
        self.written += records

    def active(self) -> str | None:
        found = read_role(self.place)
        return found[0].instance if found and not found[0].released else None

    def archived(self) -> int:
        completed = read_chain(self.place).completed
        archive = Archive(self.kafka.bootstrap, self.place)
        return archive.cut(completed[-1].id, self.topic).end if completed else 0

    def caught_up(self) -> None:
        """The lease of an instance that stands still expires later, by as much as the clocks differ."""
        wait_for(lambda: self.archived() == self.written, f"{self.written} records in the archive", patience_s=600)

    def until_active(self, name: str) -> float:
        """How long that took."""
        began = time.monotonic()
        wait_for(lambda: self.active() == name, f"{name} to become active")
        return time.monotonic() - began

    def check(self) -> None:
        """Every backup continues the one before, without a gap or a record twice."""
        archive = Archive(self.kafka.bootstrap, self.place)
        ids = [entry.id for entry in read_chain(self.place).completed]
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


class Host:
    """Where one instance runs: its way to the store, and its clock."""

    def __init__(self, name: str, server: S3Server, home: Path) -> None:
        self.name, self._clock = name, home / f"clock-{name}"
        self.store = StoreSwitch(server.endpoint)
        self.url = replace(server, endpoint=self.store.endpoint).url("standby", "repository")
        self.clock_off(0)

    def clock_off(self, seconds: int) -> None:
        new = self._clock.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self._clock)

    def run(self, pair: Pair) -> AbstractContextManager[Following]:
        off = (REAL[0], "-m", "tests.support.cli.wrong_clock")
        return pair.instance(self.name, program=off, LOGKEEP_REPO=self.url, CLOCK_OFF=str(self._clock), **ENVIRONMENT)


class Faults:
    """Faults of the active instance, one after the other, and how long it took until the other one was active."""

    def __init__(self, pair: Pair, hosts: Mapping[str, Host]) -> None:
        self.pair, self.hosts = pair, hosts
        self.took: dict[str, list[float]] = {}
        self.holders: list[str] = []
        self.committed: dict[int, str] = {}
        """Who reported the commit of a backup."""
        self.unasked = 0
        """The role moved without a fault: on a busy machine it is not renewed in time."""

    def cycle(self, number: int) -> None:
        """Four faults, and a new pair of processes. The clocks stay wrong, to different sides."""
        pair, (a, b) = self.pair, self.hosts.values()
        with a.store, b.store, a.run(pair) as first, b.run(pair) as second:
            runs = {a.name: first, b.name: second}
            self._work_on()
            self._hold()
            self._move_the_clock((120, -120)[number % 2])
            self._take_over("SIGSTOP", runs, lambda run, _: run.process.send_signal(signal.SIGSTOP))
            self._take_over("store cut off", runs, lambda _, host: host.store.off())
            last = (signal.SIGKILL, signal.SIGTERM)[number % 2]
            self._take_over(last.name, runs, lambda run, _: run.process.send_signal(last))
            for name, run in runs.items():
                self._read_rounds(name, run)

    def _hold(self) -> None:
        holder = self.pair.active()
        assert holder is not None
        self.holders.append(holder)

    def _work_on(self) -> None:
        self.pair.write(5)
        self.pair.caught_up()

    def _move_the_clock(self, seconds: int) -> None:
        """Nothing happens: the role does not depend on clocks."""
        host = self.hosts[self.holders[-1]]
        host.clock_off(seconds)
        self._work_on()
        self.took.setdefault("clock 2 minutes off", [])
        self._unasked()

    def _unasked(self) -> str:
        """The active instance; it should be the one that was."""
        wait_for(lambda: self.pair.active() is not None, "an active instance")
        if self.pair.active() != self.holders[-1]:
            self.unasked += 1
            self._hold()
        return self.holders[-1]

    def _take_over(self, fault: str, runs: Mapping[str, Following], hit: Callable[[Following, Host], None]) -> None:
        name = self._unasked()
        (other,) = set(runs) - {name}
        hit(runs[name], self.hosts[name])
        self.pair.write(5)
        self.took.setdefault(fault, []).append(self.pair.until_active(other))
        self._hold()
        self.pair.caught_up()
        runs[name].process.send_signal(signal.SIGCONT)
        self.hosts[name].store.on()
        self._work_on()

    def _read_rounds(self, name: str, run: Following) -> None:
        for found in run.rounds():
            if found["changed"] and found["id"] is not None:
                assert self.committed.setdefault(found["id"], name) == name, "two committed one backup"

    def check(self) -> None:
        """Backups were committed in turns, in the order in which the role was held: none by a zombie."""
        self.pair.check()
        turns = iter(self.holders)
        for name, _ in groupby(self.committed[number] for number in sorted(self.committed)):
            assert name in turns, "an instance committed that was not active"


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_forty_faults(kafka: EmbeddedKafka, topics: Matrix, repo: Filled, tmp_path: Path) -> None:
    """Two hosts, an S3 server between them: killed, stopped and continued, cut off, ended, clocks 2 minutes off."""
    with seaweed(tmp_path / "s3") as server:
        server.make_bucket("standby")
        store = open_store(server.url("standby", "repository"))
        place = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token).place("prod")
        pair = Pair(kafka, topics, repo, "forty-faults", place)
        faults = Faults(pair, {name: Host(name, server, tmp_path) for name in ("a", "b")})
        cycles = -(-soak_count(40) // 4)
        for number in range(cycles):
            faults.cycle(number)
        faults.check()
    for fault, took in faults.took.items():
        print(fault, f"taken over after {min(took):.1f} to {max(took):.1f} s" if took else "no take-over")
    print(f"the role moved {faults.unasked} times without a fault")
    print(f"{4 * cycles} faults, {len(faults.committed)} backups reported, no gap, nothing twice, no zombie committed")
