"""Logs, transactions and consumer groups of a simulated cluster.

A transaction is decided at one moment; its marker reaches each log, and its offsets reach the group, at moments of
their own. Until then readers of committed records stop in front of it. A client's errors are those of librdkafka.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tests.support.participants.turns import Turn, Turns

if TYPE_CHECKING:
    from tests.support.participants.clients import SimConsumer, SimProducer

Log = tuple[str, int]
Headers = tuple[tuple[str, bytes | str | None], ...]


@dataclass(eq=False)
class Transaction:
    state: str = "open"
    unmarked: list[object] = field(default_factory=list)
    """Logs and groups that do not know yet how it was decided."""
    offsets: list[tuple["Group", Log, int]] = field(default_factory=list)


class Stored(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    transaction: Transaction | None
    marker: bool = False


@dataclass(eq=False)
class Group:
    """`generation` is that of the last assignment. `wanted` grows with every change of its members."""

    committed: dict[Log, int] = field(default_factory=dict)
    members: list["SimConsumer"] = field(default_factory=list)
    generation: int = 0
    wanted: int = 0

    def changed(self) -> None:
        self.wanted += 1


class SimCluster:
    def __init__(self, turns: Turns) -> None:
        self.turns, self._choose = turns, turns.choose
        self.logs: dict[Log, list[Stored]] = {}
        self.groups: dict[str, Group] = {}
        self.producers: list[tuple[Turn, SimProducer]] = []
        self.consumers: list[tuple[Turn, SimConsumer]] = []
        self.slow: set[str] = set()
        """Topics with slow leaders."""
        self.undecided: list[Transaction] = []
        """Of processes that were killed: aborted after a time."""
        self._unmarked: list[Transaction] = []

    def create(self, topic: str, partitions: int) -> None:
        for number in range(partitions):
            self.logs.setdefault((topic, number), [])

    def partitions(self, topic: str) -> int:
        return sum(log[0] == topic for log in self.logs)

    def append(
        self, log: Log, key: bytes | None, value: bytes | None, headers: Headers = (), inside: Transaction | None = None
    ) -> None:
        records = self.logs[log]
        if inside is not None and log not in inside.unmarked:
            inside.unmarked.append(log)
        records.append(Stored(len(records), key, value, headers, inside))

    def decide(self, transaction: Transaction, state: str) -> None:
        transaction.state = state
        transaction.unmarked += list({id(group): group for group, _, _ in transaction.offsets}.values())
        self._unmarked.append(transaction)

    def stable(self, log: Log) -> int:
        records = self.logs[log]
        waiting = (r.offset for r in records if r.transaction and not r.marker and log in r.transaction.unmarked)
        return next(waiting, len(records))

    def visible(self, log: Log, start: int, end: int) -> Iterator[Stored]:
        for record in self.logs[log][max(start, 0) : min(end, self.stable(log))]:
            if not record.marker and (record.transaction is None or record.transaction.state == "committed"):
                yield record

    def unstable(self, group: Group, logs: Iterable[Log]) -> bool:
        """Whether a transaction that is not decided, or not known to the group, has offsets of these logs."""
        wanted = set(logs)
        open_ones = [p.transaction for _, p in self.producers if p.transaction] + self.undecided + self._unmarked
        return any(
            found is group and log in wanted
            for each in open_ones
            if each.state == "open" or group in each.unmarked
            for found, log, _ in each.offsets
        )

    def kill(self, turn: Turn) -> None:
        """Its buffers are lost. The group and the open transaction learn of it later."""
        turn.killed = True
        for owner, producer in self.producers:
            if owner is turn and producer.transaction is not None:
                self.undecided.append(producer.transaction)
        self.producers = [each for each in self.producers if each[0] is not turn]

    def happen(self) -> None:
        """One thing that brokers and the threads of client libraries do by themselves."""
        chance = self._choose.random()
        if chance < 0.25 and self.producers:
            self._choose.choice(self.producers)[1].deliver_one()
        elif chance < 0.5 and self._unmarked:
            self._mark(self._choose.choice(self._unmarked))
        elif chance < 0.52 and self.undecided:
            self.decide(self.undecided.pop(), "aborted")
        elif chance < 0.55:
            self._forget_the_dead()

    def _mark(self, transaction: Transaction) -> None:
        if transaction.unmarked:
            place = transaction.unmarked.pop(self._choose.randrange(len(transaction.unmarked)))
            if isinstance(place, Group):
                if transaction.state == "committed":
                    place.committed |= {log: at for group, log, at in transaction.offsets if group is place}
            else:
                records = self.logs[place]  # type: ignore[index] # a log, then
                records.append(Stored(len(records), None, None, (), transaction, marker=True))
        if not transaction.unmarked:
            self._unmarked.remove(transaction)

    def _forget_the_dead(self) -> None:
        for turn, consumer in self.consumers:
            if turn.killed or turn.ended:
                self.expel(consumer)
        self.consumers = [each for each in self.consumers if not (each[0].killed or each[0].ended)]

    def expel(self, consumer: "SimConsumer") -> None:
        """As after its session has timed out."""
        if consumer in consumer.group.members:
            consumer.group.members.remove(consumer)
            consumer.group.changed()
