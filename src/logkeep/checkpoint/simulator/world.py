"""The scheduler of one schedule: processes are generators, any of them may run next. Time counts ticks."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Protocol

import msgspec

from logkeep.checkpoint import records
from logkeep.checkpoint.machine import Reply, TakeBackup
from logkeep.checkpoint.records import CheckpointDocument, MessageSource, SentCommand, Stamp
from logkeep.checkpoint.routing import partition_of
from logkeep.checkpoint.simulator.leader import LocalSnapshot, PartitionLeader
from logkeep.checkpoint.simulator.modelled_archive import ModelledArchive
from logkeep.checkpoint.simulator.plan import Fault, SchedulePlan
from logkeep.checkpoint.simulator.sim_log import SimLog
from logkeep.checkpoint.simulator.sim_repository import SimRepository
from logkeep.checkpoint.simulator.sim_store import SimStore
from logkeep.checkpoint.simulator.sim_transport import SimTransport
from logkeep.checkpoint.simulator.workload import Workload
from logkeep.checkpoint.steps import Steps, Wait

FOREIGN_ID = 1_000_000
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_OUTAGE_TICKS = 120
_CLIENT_AGAIN_TICKS = 60
_MOST_TICKS = 40_000
_CALM_STEPS = 12
_FIRST_LATE_COMMAND = 1_000
"""From here on are the numbers of commands that clients send at the moment of an acknowledgement."""


class Archive(Protocol):
    """How backups of the simulated partitions are taken and kept."""

    def begin(self, leader: PartitionLeader, take: TakeBackup) -> Steps[None] | None:
        """A leader processes a create: its copy, or None if it was begun before."""

    def resume(self, leader: PartitionLeader) -> Steps[None]:
        """A new leader has replayed its log."""

    def coordinate(self, backup_id: int, nonce: str) -> Steps[None]:
        """A user asks for a backup. The same id again must give nothing new."""

    def snapshot(self, leader: PartitionLeader) -> None: ...

    def compact(self, leader: PartitionLeader) -> None: ...

    def pinned(self, leader: PartitionLeader) -> bool: ...

    def settle_open(self) -> None:
        """What any coordinator does that reads an open backup after its deadline."""

    def collect(self) -> list[tuple[str, str]]:
        """Put requests and ends where the judge looks for them; what is wrong with an end, and a text."""


class Fiber(msgspec.Struct, eq=False):
    """A process, or a part of a leader that ends with it."""

    steps: Steps[None]
    leader: PartitionLeader | None
    wakes_at: int = 0


class SimWorld:
    """One application with its store. `history` grows with each restore."""

    application = bytes(range(16))

    def __init__(
        self,
        plan: SchedulePlan,
        workload: Workload,
        history: int = 1,
        store: SimStore | None = None,
        repository: SimRepository | None = None,
    ) -> None:
        """With a repository the shipped archive is used, otherwise the modelled one."""
        self.plan, self.workload, self.history = plan, workload, history
        self.choose = Random(f"run {plan.seed}")  # noqa: S311 - a schedule is reproducible
        self.tick = 0
        self.logs = [SimLog(self.choose) for _ in range(plan.partitions)]
        self.disks: list[list[LocalSnapshot]] = [[] for _ in range(plan.partitions)]
        self.transport = SimTransport(plan.partitions, self.choose, plan.loss, plan.doubles)
        self.store = store or SimStore(self.choose, plan.store_errors)
        self.fibers: list[Fiber] = []
        self.leaders: list[PartitionLeader] = []
        self.submitted: dict[str, int] = {}
        self.replied: dict[str, int] = {}
        self.began: dict[int, int] = {}
        self.acknowledged: dict[int, int] = {}
        self.answers: dict[str, dict[int, CheckpointDocument]] = {}
        self.wrong_ends: list[tuple[str, str]] = []
        self.counts = {"crashes": 0, "outages": 0}
        self.repository = repository
        self.archive: Archive = _shipped_archive(self, repository) if repository else ModelledArchive(self)

    @property
    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.tick)

    @property
    def now_ms(self) -> int:
        return self.tick

    def spawn(self, steps: Steps[None], leader: PartitionLeader | None = None) -> None:
        self.fibers.append(Fiber(steps, leader))

    def start(self) -> None:
        newest = [max(disk, key=lambda found: found.facts.position, default=None) for disk in self.disks]
        self.leaders = [self._new_leader(partition, saved) for partition, saved in enumerate(newest)]

    def run(self) -> None:
        """The whole schedule, then calm until nothing is under way."""
        self.start()
        self._plan_clients_and_backups()
        faults = list(self.plan.faults)
        while self.tick < self.plan.ticks:
            while faults and faults[0].tick <= self.tick:
                self._inject(faults.pop(0))
            self._step()
        self.calm()

    def calm(self) -> None:
        """No more faults: run until all messages have arrived and all processes but the leaders have ended."""
        self.store.down, self.store.errors = False, 0.0
        self.transport.calm()
        self._drop([fiber for fiber in self.fibers if fiber.leader and fiber.leader not in self.leaders])
        for leader in list(self.leaders):
            if not any(fiber.leader is leader for fiber in self.fibers):
                self._replace(leader.partition, keep_old=False)
        end = self.tick + _MOST_TICKS
        while not self.quiet() and self.tick < end:
            for _ in range(_CALM_STEPS):
                self._step()
        self.archive.settle_open()
        self.wrong_ends = self.archive.collect()

    def pass_to(self, moment: datetime) -> None:
        """Nothing happens up to a moment."""
        self.tick = max(self.tick, int((moment - EPOCH).total_seconds()))

    def quiet(self) -> bool:
        if any(self.transport.inboxes) or len(self.fibers) > len(self.leaders):
            return False
        return all(leader.settled() for leader in self.leaders)

    def answered(self, partition: int, reply: Reply) -> None:
        if isinstance(reply.value, CheckpointDocument):
            self.answers.setdefault(reply.to, {}).setdefault(partition, reply.value)
        else:
            self.replied.setdefault(reply.to, self.tick)

    def acknowledge(self, backup_id: int) -> None:
        """The user hears that all partitions have processed their creates, and sends commands at once."""
        if backup_id not in self.acknowledged:
            self.acknowledged[backup_id] = self.tick
            for number in range(2):
                self.spawn(self._client(_FIRST_LATE_COMMAND + 2 * backup_id + number, 0))

    def _step(self) -> None:
        self.tick += 1
        awake = [fiber for fiber in self.fibers if fiber.wakes_at <= self.tick]
        if not awake:
            self.tick = min(fiber.wakes_at for fiber in self.fibers)
            return
        fiber = awake[int(self.choose.random() * len(awake))]
        try:
            step = next(fiber.steps)
        except StopIteration:
            self.fibers.remove(fiber)
        else:
            if isinstance(step, Wait):
                fiber.wakes_at = self.tick + int(step.seconds)

    def _plan_clients_and_backups(self) -> None:
        for number in range(self.plan.commands):
            self.spawn(self._client(number, self.choose.randrange(self.plan.ticks)))
        self.spawn(self._foreign_application())
        ids = [10 * (number + 1) for number in range(self.plan.backups)]
        for number, backup_id in enumerate(ids):
            at = self.choose.randrange(self.plan.ticks * 2 // 3)
            for twice in range(1 + (self.choose.random() < 0.3)):
                self.spawn(self._coordinator(backup_id, f"{number:08x}{twice:08x}", at))

    def _foreign_application(self) -> Steps[None]:
        """Another application writes into an inbox by mistake, with an id that is far ahead."""
        yield Wait(self.choose.randrange(self.plan.ticks))
        name, key, value = self.workload.commands(self.plan.commands)
        stamp = Stamp(bytes(16), self.history, FOREIGN_ID)
        sent = SentCommand(name, key, msgspec.msgpack.encode(value))
        message = records.message(sent, stamp, MessageSource("other.log", 0, 5, 0), 0)
        self.transport.deliver(partition_of(key, self.plan.partitions), message)

    def _client(self, number: int, at: int) -> Steps[None]:
        yield Wait(at)
        name, key, value = self.workload.commands(number)
        command = records.command(name, key, msgspec.msgpack.encode(value), request=f"r{number}")
        self.submitted[f"r{number}"] = self.tick
        while f"r{number}" not in self.replied:
            self.transport.deliver(partition_of(key, self.plan.partitions), command)
            yield Wait(_CLIENT_AGAIN_TICKS)

    def _coordinator(self, backup_id: int, nonce: str, at: int) -> Steps[None]:
        yield Wait(at)
        yield from self.archive.coordinate(backup_id, nonce)

    def _inject(self, fault: Fault) -> None:
        partition = fault.number % self.plan.partitions
        leader = self.leaders[partition]
        if fault.kind == "crash":
            self._replace(partition, keep_old=False)
        elif fault.kind == "depose":
            self._replace(partition, keep_old=True)
        elif fault.kind == "restart all":
            for each in range(self.plan.partitions):
                self._replace(each, keep_old=False)
        elif fault.kind == "outage":
            self.counts["outages"] += 1
            self.store.down = True
            self.spawn(self._end_outage())
        elif fault.kind == "coordinator crash":
            self._drop(
                [fiber for fiber in self.fibers if fiber.leader is None and "coordinator" in str(fiber.steps)][:1]
            )
        elif fault.kind == "snapshot":
            leader.snapshot()
        elif fault.kind == "compact":
            leader.snapshot()
            leader.compact()
        else:
            self._replace(partition, keep_old=False, state_lost=True)

    def _end_outage(self) -> Steps[None]:
        yield Wait(_OUTAGE_TICKS)
        self.store.down = False

    def _replace(self, partition: int, *, keep_old: bool, state_lost: bool = False) -> None:
        """A new leader, from the newest snapshot or from the state that the old one had."""
        self.counts["crashes"] += 1
        old = self.leaders[partition]
        if not keep_old:
            self._drop([fiber for fiber in self.fibers if fiber.leader is old])
        snapshots = sorted(self.disks[partition], key=lambda found: found.facts.position)
        newest = snapshots[-1] if snapshots else None
        saved = newest if state_lost or self.choose.random() < 0.5 else old.saved()
        self.leaders[partition] = self._new_leader(partition, saved)

    def _drop(self, fibers: Sequence[Fiber]) -> None:
        self.fibers = [fiber for fiber in self.fibers if fiber not in fibers]

    def _new_leader(self, partition: int, saved: LocalSnapshot | None) -> PartitionLeader:
        leader = PartitionLeader(self, partition, saved)
        self.spawn(leader.run(), leader)
        return leader


def _shipped_archive(world: SimWorld, repository: SimRepository) -> Archive:
    from logkeep.checkpoint.simulator.shipped_archive import ShippedArchive  # noqa: PLC0415 - needs numpy

    return ShippedArchive(world, repository)
