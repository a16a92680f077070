"""Any order of sends, losses, doubles, creates and restarts: memory stays bounded, replay gives the same state."""

import random

import pytest

from logkeep.checkpoint import machine, records
from logkeep.checkpoint.records import Record, SentCommand
from tests.support.machine_runs import Outcome, Partition, create, key_of, start

PARTITIONS = 3
KEYS = [key_of(partition, PARTITIONS) for partition in range(PARTITIONS)]


def forwarding(command: Record) -> Outcome:
    """Clients' commands send two messages; messages send nothing."""
    if records.source_of(command) is not None:
        return (), (), None
    number = command.value[-1]
    return (), tuple(SentCommand("work", KEYS[(number + n) % PARTITIONS], b"\xc0") for n in range(2)), None


class Run:
    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.partitions = [Partition(start(number, PARTITIONS), forwarding) for number in range(PARTITIONS)]
        self.waiting: list[tuple[int, Record]] = []
        self.next_id = 1

    def step(self) -> None:
        partition = self.choose.choice(self.partitions)
        action = self.choose.random()
        if action < 0.25:
            partition.receive(records.command("order", "x", bytes((0xCC, self.choose.randrange(200)))))
        elif action < 0.3:
            partition.receive(create(self.next_id))
            self.next_id += self.choose.random() < 0.7
        elif action < 0.4:
            self.waiting += machine.resend(partition.state, len(partition.log), 50).messages
        elif self.waiting:
            self._deliver()
        partition.process()
        self.waiting += partition.sent()
        partition.done.clear()

    def _deliver(self, loss: float = 0.2) -> None:
        index = self.choose.randrange(len(self.waiting))
        receiver, message = self.waiting[index]
        if self.choose.random() < 0.8:
            del self.waiting[index]
        if self.choose.random() >= loss:
            self.partitions[receiver].receive(message)

    def drain(self) -> None:
        while self.waiting or any(waiting for each in self.partitions for waiting in each.state.outbox.values()):
            for partition in self.partitions:
                self.waiting += machine.resend(partition.state, len(partition.log), 1_000).messages
            while self.waiting:
                receiver, message = self.waiting.pop()
                self.partitions[receiver].receive(message)
            for partition in self.partitions:
                partition.process()
                self.waiting += partition.sent()
                partition.done.clear()


@pytest.mark.parametrize("seed", range(30))
def test_any_interleaving(seed: int) -> None:
    run = Run(seed)
    for _ in range(150):
        run.step()
    for partition in run.partitions:
        partition.process()
        run.waiting += partition.sent()
        assert partition.loaded() == partition.state, "system keys hold all of it"
        replayed = partition.replayed(start(partition.state.partition, PARTITIONS))
        assert (replayed.outbox, replayed.received, replayed.checkpoint_id) == (
            partition.state.outbox, partition.state.received, partition.state.checkpoint_id,
        )  # fmt: skip
        for sender, known in partition.state.received.items():
            assert all(position >= partition.state.lows[sender] for position, _ in known)
    run.drain()
    _once_each(run)


def _once_each(run: Run) -> None:
    sent = {(p.state.partition, records.event_value(r).source_position, n)
            for p in run.partitions for r in p.log if r.kind == records.Kind.EVENT
            for n in range(len(records.event_value(r).sends))}  # fmt: skip
    inputs = [
        records.source_of(r, records.INPUT) for p in run.partitions for r in p.log if r.kind == records.Kind.EVENT
    ]
    got = [(source.partition, source.position, source.index) for source in inputs if source is not None]
    assert len(got) == len(set(got))
    assert set(got) == sent


@pytest.mark.parametrize("seed", range(10))
def test_memory_is_bounded_by_the_low_water_mark(seed: int) -> None:
    """After thousands of messages a receiver remembers about as many as were under way."""
    run = Run(seed)
    for _ in range(30):
        for _ in range(20):
            run.step()
        run.drain()
    remembered = sum(len(known) for partition in run.partitions for known in partition.state.received.values())
    sent = sum(record.kind == records.Kind.EVENT for partition in run.partitions for record in partition.log)
    assert sent > 300
    assert remembered < 60
    assert all(not waiting for partition in run.partitions for waiting in partition.state.outbox.values())
