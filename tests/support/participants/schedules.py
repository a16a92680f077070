"""One application of two stages over the simulated cluster: clients, faults and backups, all from a seed."""

import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from logkeep.application.kafka import coordinator, participant
from logkeep.application.kafka.coordinator import ParticipantCutter
from logkeep.application.kafka.cut_document import ApplicationLog, ParticipantCut
from logkeep.application.kafka.participant import Output, Participant
from logkeep.errors import BackupFailed, ClusterError
from logkeep.model.ids import BackupId
from tests.support.participants import clients
from tests.support.participants.cluster import SimCluster
from tests.support.participants.judge import Judged, JudgedLog
from tests.support.participants.turns import Turn, Turns

NAME = "shop"
STAGES = {
    "charging": ("charges", ("orders", "returns")),
    "posting": ("posted", ("charges",)),
    "audit": ("audited", ("charges",)),
}
"""What each group writes, and what it reads."""
_MOST_TICKS = 60_000
_TICKS_PER_SECOND = 100
_TIMEOUT_S = 100.0


@dataclass(frozen=True)
class CutPlan:
    seed: int
    transactional: bool
    together: bool
    groups: tuple[str, ...]
    processes: int
    partitions: int
    commands: int
    backups: int
    kills: int
    expelled: int

    @classmethod
    def of(cls, seed: int) -> "CutPlan":
        choose = Random(f"participants {seed}")
        return cls(
            seed=seed,
            transactional=choose.random() < 0.5,
            together=choose.random() < 0.5,
            groups=choose.choice((("charging",), ("charging", "posting"), ("charging", "posting", "audit"))),
            processes=choose.choice((1, 1, 2)),
            partitions=choose.choice((1, 2)),
            commands=choose.randrange(6, 30),
            backups=choose.randrange(1, 4),
            kills=choose.choice((0, 0, 1, 2)),
            expelled=choose.choice((0, 0, 1)),
        )

    @property
    def exact(self) -> bool:
        """Without transactions a process that ends may have produced what its successor produces again."""
        return self.transactional or not (self.kills or self.expelled or self.processes > 1)


@dataclass
class CutSchedule:
    """What happened in one schedule, and what is wrong with its cuts."""

    plan: CutPlan
    findings: list[tuple[str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def makes(group: str, text: str) -> list[str]:
    """One record, or two, or none."""
    return [f"{text}>{group}{number}" for number in range(zlib.crc32(text.encode()) % 3)]


@pytest.fixture
def simulated_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped loop and coordinator use the simulated cluster."""
    for name, simulated in {
        "Producer": clients.SimProducer,
        "Consumer": clients.SimConsumer,
        "TopicReader": clients.SimTopicReader,
        "ensure_topics": clients.ensure_topics,
        "partition_counts": clients.partition_counts,
    }.items():
        monkeypatch.setattr(participant, name, simulated)
    monkeypatch.setattr(coordinator, "_connected", _connected)


@contextmanager
def _connected(cluster: SimCluster) -> Iterator[clients.SimClusterTopics]:
    yield clients.SimClusterTopics(cluster)


def run_cuts(plan: CutPlan) -> CutSchedule:
    return _World(plan).run()


class _World:
    def __init__(self, plan: CutPlan) -> None:
        self.plan, self.found = plan, CutSchedule(plan)
        self.turns = Turns(Random(f"cuts {plan.seed}"))
        self.choose, self.cluster = self.turns.choose, SimCluster(self.turns)
        self.accepted: list[str] = []
        self.running: list[tuple[str, Turn]] = []
        self.ended = 0
        for topic in sorted({t for writes, reads in STAGES.values() for t in (writes, *reads)}):
            self.cluster.create(topic, plan.partitions)
        if self.choose.random() < 0.5:
            self.cluster.slow.add(self.choose.choice([STAGES[group][0] for group in plan.groups]))

    def run(self) -> CutSchedule:
        for group in self.plan.groups:
            for _ in range(self.plan.processes):
                self._start(group)
        self.turns.spawn(self._clients)
        self.turns.spawn(self._backups)
        faults = sorted(self.choose.randrange(50, 1500) for _ in range(self.plan.kills + self.plan.expelled))
        kinds = self.choose.sample(["kill"] * self.plan.kills + ["expel"] * self.plan.expelled, len(faults))
        try:
            self.turns.run(self._done, lambda: self._happen(faults, kinds))
        finally:
            self.turns.end()
        return self.found

    def _done(self) -> bool:
        assert self.turns.tick < _MOST_TICKS, "the schedule does not end"
        return self.ended > 0

    def _happen(self, faults: list[int], kinds: list[str]) -> None:
        self.cluster.happen()
        if faults and faults[0] <= self.turns.tick:
            faults.pop(0)
            getattr(self, f"_{kinds.pop(0)}")()

    def _kill(self) -> None:
        group, turn = self.running.pop(self.choose.randrange(len(self.running)))
        self.cluster.kill(turn)
        self.found.counts["killed"] += 1
        self._start(group)

    def _expel(self) -> None:
        members = [m for _, m in self.cluster.consumers if m in m.group.members]
        if members:
            self.found.counts["expelled"] += 1
            self.cluster.expel(self.choose.choice(members))

    def _start(self, group: str) -> None:
        turn = self.turns.spawn(lambda: self._participate(group))
        self.running.append((group, turn))

    def _participate(self, group: str) -> None:
        """A process; where it ends with an error, a supervisor starts the next one."""
        writes, reads = STAGES[group]

        def handle(message: Any, output: Output) -> None:
            for text in makes(group, message.value().decode()):
                output.send(writes, text.encode(), partition=zlib.crc32(text.encode()) % self.plan.partitions)

        me = self.turns.current
        while True:
            try:
                loop = Participant(
                    NAME,
                    group,
                    reads,
                    handle,
                    outputs=[writes],
                    config={clients.CLUSTER: self.cluster},  # type: ignore[dict-item]  # for simulated clients
                    transactional=self.plan.transactional,
                    together=self.plan.together and len(reads) > 1,
                    commit_every_s=self.choose.choice((0.0, 0.1, 1.0)),
                    clock=self._now,
                )
                while True:
                    loop.step()
            except ClusterError:
                assert me is not None
                self.cluster.kill(me)
                me.killed = False  # the thread goes on as another process
                self.found.counts["restarted"] += 1

    def _now(self) -> float:
        return self.turns.tick / _TICKS_PER_SECOND

    def _clients(self) -> None:
        for number in range(self.plan.commands):
            for _ in range(self.choose.randrange(30)):
                self.turns.others()
            text = f"c{number}"
            log = self.choose.choice(STAGES["charging"][1]), self.choose.randrange(self.plan.partitions)
            self.cluster.append(log, None, text.encode())
            self.accepted.append(text)
        while True:
            self.turns.others()

    def _backups(self) -> None:
        while any(not self._declared(group) for group in self.plan.groups):
            self.turns.others()
        for number in range(1, self.plan.backups + 1):
            for _ in range(self.choose.randrange(60)):
                self.turns.others()
            self._take(10 * number)
        self.ended += 1

    def _declared(self, group: str) -> bool:
        log = f"{NAME}.control", 0
        records = self.cluster.visible(log, 0, 1 << 60) if log in self.cluster.logs else ()
        return any(record.key == f"lk/participant/{group}".encode() for record in records)

    def _take(self, backup_id: int) -> None:
        place: Any = SimpleNamespace(repository="sim", source="kafka")
        settings: Any = self.cluster
        cutter = ParticipantCutter(
            NAME, settings, place, "0" * 16, _TIMEOUT_S, clock=self._now, pause=lambda _: self.turns.others()
        )
        before = list(self.accepted)
        try:
            cutter.take(BackupId(backup_id))
        except BackupFailed:
            self.found.counts["failed"] += 1
            return
        self.found.counts["completed"] += 1
        self._judge(cutter.cut, before)

    def _judge(self, cut: ParticipantCut, before: list[str]) -> None:
        judged = Judged([self._judged_log(log) for log in cut.logs], makes)
        found = [("lost", text) for text in judged.lost()] + [("early", text) for text in judged.missing(before)]
        if self.plan.exact:
            found += [("twice", text) for text in judged.twice()] + [("orphan", text) for text in judged.orphans()]
        self.found.findings += [(what, f"{text} in the cut {cut.id}") for what, text in found]
        self.found.counts["in transit"] += sum(len(log.in_transit) for log in cut.logs)
        self.found.counts["forced"] += cut.forced

    def _judged_log(self, log: ApplicationLog) -> JudgedLog:
        """As a restore makes it."""
        every = {
            r.offset: (r.value or b"").decode() for r in self.cluster.visible((log.topic, log.partition), 0, log.end)
        }
        return JudgedLog(
            [(offset, text) for offset, text in every.items() if offset < log.kept_to],
            [every[offset] for offset in log.in_transit],
            {reader.group: reader.offset for reader in log.readers},
        )
