"""True cuts of a miniature application: the shipped machine, and a transport that loses, doubles and reorders.

Nothing here knows a rule: partitions process commands, messages and acknowledgements, and checkpoints are created at
some of them and forced at others. A cut is what the logs, snapshots and positions were.
"""

import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from logkeep.checkpoint import machine, records
from logkeep.checkpoint.certificate.log_check import LogCheck
from logkeep.checkpoint.certificate.log_task import finished, fold_state
from logkeep.checkpoint.certificate.rules import ArchivedCut, CutEvidence, certify, unequal_pairs
from logkeep.checkpoint.certificate.run import names_of
from logkeep.checkpoint.certificate.set_members import ExternalCut, SetMember
from logkeep.checkpoint.certificate.snapshot_file import read_facts
from logkeep.checkpoint.certificate.tables import CutTables, PartitionClaim, SystemKeys
from logkeep.checkpoint.records import Kind, Record, SentCommand, event_value, stamp_of
from logkeep.checkpoint.state.sqlite_state import TABLES
from logkeep.checkpoint.state_digest import as_text, digest_of
from logkeep.formats.kafka.batches import walk
from logkeep.formats.plain_batches import BatchRecord, encode_batch
from logkeep.repository.backups.certificate import Certificate
from tests.support.machine_runs import APPLICATION, Outcome, Partition, create, start

NONCE = "00000000000000aa"


@dataclass(frozen=True)
class Snapshot:
    position: int
    state: dict[str, bytes]
    system: dict[str, bytes]


@dataclass(frozen=True)
class PartitionCut:
    """One partition of a cut, as records and values that a forger can change."""

    log: list[Record]
    """From `claim.log_start` to the create."""
    splits: frozenset[int]
    """Positions at which a batch begins, besides those behind creates."""
    claim: PartitionClaim
    archived: ArchivedCut
    snapshot: Snapshot | None

    def encoded(self) -> bytes:
        batches: list[list[Record]] = [[]]
        for record in self.log:
            if record.position in self.splits and batches[-1]:
                batches.append([])
            batches[-1].append(record)
        return b"".join(_encoded(batch) for batch in batches if batch)


def _encoded(batch: list[Record]) -> bytes:
    plain = [BatchRecord(one.key, one.value, one.headers, one.timestamp_ms) for one in batch]
    return encode_batch(batch[0].position, 1, plain)


@dataclass(frozen=True)
class Cut:
    """What a backup has of an application."""

    checkpoint: int
    partitions: list[PartitionCut]
    beyond: list[list[Record]]
    """Whole logs, also behind the cut."""
    members: dict[str, int] = field(default_factory=dict)
    history: int = 1

    def changed(self, number: int, **values: object) -> "Cut":
        parts = list(self.partitions)
        parts[number] = replace(parts[number], **values)  # type: ignore[arg-type]
        return replace(self, partitions=parts)

    def with_log(self, number: int, log: list[Record]) -> "Cut":
        return self.changed(number, log=log)

    def claimed(self, number: int, **values: object) -> "Cut":
        claim = msgspec.structs.replace(self.partitions[number].claim, **values)
        return self.changed(number, claim=claim)


class _World:
    def __init__(self, seed: int, *, external: bool) -> None:
        self.reports = external
        self.random = random.Random(seed)
        self.count = self.random.randint(1, 4)
        self.partitions = [Partition(start(n, self.count), self._handler) for n in range(self.count)]
        self.state: list[dict[str, bytes]] = [{} for _ in self.partitions]
        self.folded, self.sent_seen = [0] * self.count, [0] * self.count
        self.transport: list[tuple[int, Record]] = []
        self.snapshots: list[list[Snapshot]] = [[] for _ in self.partitions]
        self.external = 0

    def _handler(self, command: Record) -> Outcome:
        chance, key = self.random, (command.key or b"").decode()
        writes: list[tuple[str, bytes | None]] = [(key, chance.randbytes(chance.randint(0, 90)))]
        if chance.random() < 0.2:
            writes.append((f"k{chance.randint(0, 40)}", None))
        if chance.random() < 0.05 and self.reports:
            self.external += chance.randint(1, 9)
            writes.append(("lk/external/zk", msgspec.msgpack.encode(self.external)))
        sends = () if command.text("lk-n") == "end" else tuple(self._sent() for _ in range(chance.randint(0, 2)))
        return tuple(writes), sends, None

    def _sent(self) -> SentCommand:
        name = self.random.choice(["end", "end", "end", "go"])
        return SentCommand(name, f"k{self.random.randint(0, 40)}", self.random.randbytes(5))

    def deliver(self, number: int, message: Record) -> None:
        partition = self.partitions[number]
        stamp = stamp_of(message)
        forces = stamp is not None and stamp.checkpoint_id > partition.state.checkpoint_id
        if message.kind == Kind.CREATE or forces or self.random.random() < 0.6:
            self.process(number)
        partition.receive(message)

    def process(self, number: int) -> None:
        partition = self.partitions[number]
        partition.process()
        for record in partition.log[self.folded[number] :]:
            if record.kind == Kind.EVENT:
                for key, value in event_value(record).writes:
                    self.state[number].pop(key, None) if value is None else self.state[number].update({key: value})
        self.folded[number] = len(partition.log)
        self.collect(number)

    def collect(self, number: int) -> None:
        done = self.partitions[number].done
        for found in done[self.sent_seen[number] :]:
            self.transport += found.messages if isinstance(found, machine.SendMessages) else ()
        self.sent_seen[number] = len(done)

    def step(self) -> None:
        chance, number = self.random.random(), self.random.randrange(self.count)
        if chance < 0.35:
            key = self.key_of(number)
            self.deliver(number, records.command("go", key, b"\x01", request=str(self.random.random())))
        elif chance < 0.9 and self.transport:
            receiver, message = self.transport.pop(self.random.randrange(len(self.transport)))
            if self.random.random() < 0.1:
                self.transport.append((receiver, message))
            if self.random.random() > 0.1:
                self.deliver(receiver, message)
        elif chance < 0.95:
            self.process(number)
            partition = self.partitions[number]
            self.transport += machine.resend(partition.state, len(partition.log), 20).messages
        else:
            self.process(number)
            snapshot = Snapshot(len(self.partitions[number].log) - 1, dict(self.state[number]), self.system(number))
            self.snapshots[number].append(snapshot)

    def system(self, number: int) -> dict[str, bytes]:
        return dict(self.partitions[number].system)

    def key_of(self, number: int) -> str:
        from logkeep.checkpoint.routing import partition_of  # noqa: PLC0415

        keys = [key for key in (f"k{n}" for n in range(41)) if partition_of(key, self.count) == number]
        return self.random.choice(keys)


def true_cut(seed: int, steps: int = 120, *, external: bool = True) -> Cut:
    """A random run with several checkpoints; the cut is that of one of them which every partition has."""
    world = _World(seed, external=external)
    checkpoint = 0
    for _ in range(steps):
        world.step()
        if world.random.random() < 0.05:
            checkpoint += world.random.randint(1, 3)
            for number in world.random.sample(range(world.count), world.random.randint(1, world.count)):
                world.deliver(number, create(checkpoint, nonce=NONCE))
        if checkpoint and world.random.random() < 0.05:  # a coordinator repeats what was answered already
            world.deliver(world.random.randrange(world.count), create(checkpoint, nonce=NONCE))
    checkpoint += 1
    for number in range(world.count):
        for _ in range(world.random.randint(0, 6)):
            world.step()
        world.deliver(number, create(checkpoint, nonce=NONCE))
    for number in range(world.count):
        world.process(number)
    for _ in range(10):
        world.step()
    taken = [{each.id: each.position for each in partition.backups()} for partition in world.partitions]
    common = set.intersection(*(set(each) for each in taken))
    chosen = world.random.choice(sorted(common)) if world.random.random() < 0.3 else checkpoint
    parts = [_partition_cut(world, number, chosen, taken[number]) for number in range(world.count)]
    largest = max((claim.external.get("zk", 0) for claim in (part.claim for part in parts)), default=0)
    return Cut(chosen, parts, [list(p.log) for p in world.partitions], {"zk": largest + 3})


def _partition_cut(world: _World, number: int, chosen: int, taken: dict[int, int]) -> PartitionCut:
    log, position = world.partitions[number].log, taken[chosen]
    usable = [each for each in world.snapshots[number] if 0 <= each.position < position]
    snapshot = world.random.choice(usable) if usable and world.random.random() < 0.7 else None
    first = 0
    if snapshot is not None and world.random.random() < 0.4:
        first = world.random.randint(0, snapshot.position + 1)
        while first and not _begins(log, first):
            first -= 1
    state, external = dict[str, bytes](), dict[str, int]()
    for record in log[:position]:
        if record.kind == Kind.EVENT:
            for key, value in event_value(record).writes:
                state.pop(key, None) if value is None else state.update({key: value})
    for key, value in state.items():
        if key.startswith("lk/external/"):
            external[key.removeprefix("lk/external/")] = msgspec.msgpack.decode(value)
    checkpoints = tuple((n, at) for n, at in sorted(taken.items()) if first <= at <= position)
    claim = PartitionClaim(
        number, first, position + 1, position, snapshot.position if snapshot else -1,
        as_text(digest_of(state.items())), external, checkpoints,
    )  # fmt: skip
    splits = {at for at in range(len(log)) if world.random.random() < 0.4}
    splits |= {record.position + 1 for record in log if record.kind == Kind.CREATE} | {first}
    archived = ArchivedCut(first, position + 1, claim.snapshot_position)
    return PartitionCut(log[first : position + 1], frozenset(splits), claim, archived, snapshot)


def _begins(log: list[Record], position: int) -> bool:
    """Whether every input before a position has its result before it: batches of a backup begin there."""
    done = {event_value(r).source_position for r in log[:position] if r.kind == Kind.EVENT}
    done |= {records.document_of(r).source_position for r in log[:position] if r.kind in (Kind.CREATED, Kind.IGNORED)}
    later = {event_value(r).source_position for r in log[position:] if r.kind == Kind.EVENT}
    later |= {records.document_of(r).source_position for r in log[position:] if r.kind in (Kind.CREATED, Kind.IGNORED)}
    return not any(at < position for at in later)


def write_snapshot(path: Path, snapshot: Snapshot, position: int) -> None:
    """As the SQLite backend writes it."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute("pragma synchronous = off")
        database.executescript(TABLES)
        database.executemany("insert into state values (?, ?)", snapshot.state.items())
        database.executemany("insert into system values (?, ?)", snapshot.system.items())
        database.execute("insert into applied values (1, ?)", (position,))
        database.commit()


def certificate_of(cut: Cut, folder: Path, *, seed: int = 7) -> Certificate:
    """What the tasks and rules say of a cut."""
    paths, snapshots = dict[int, Path](), dict[int, SystemKeys]()
    for number, part in enumerate(cut.partitions):
        if part.snapshot is not None:
            paths[number] = folder / f"snapshot-{number}"
            write_snapshot(paths[number], part.snapshot, part.snapshot.position)
            snapshots[number] = read_facts(paths[number], number)
    lows = {(sender, number): low for number, found in snapshots.items() for sender, low in found.lows.items()}
    claims = tuple(part.claim for part in cut.partitions)
    tables = CutTables(APPLICATION.hex(), "shop", cut.history, cut.checkpoint, NONCE, claims, lows, seed)
    checks = [_checked(cut, tables, number, snapshots, paths.get(number)) for number in range(len(claims))]
    archived = [part.archived for part in cut.partitions]
    cuts = {name: ExternalCut(position) for name, position in cut.members.items()}
    members = [SetMember("zk", "zookeeper", cuts=cuts)] if cuts else []
    found = CutEvidence(tables, archived, snapshots, [finished(check) for check in checks], members)
    logs = {log.partition: log for log in found.logs}
    return certify(found, {pair: names_of(pair, found, logs) for pair in unequal_pairs(found)})


def _checked(cut: Cut, tables: CutTables, number: int, snapshots: dict[int, SystemKeys], path: Path | None) -> LogCheck:
    check = LogCheck(tables, number, snapshots.get(number, SystemKeys(number)), with_ids=True)
    data = cut.partitions[number].encoded()
    if data:
        check.take(data, walk(data).batches)
    fold_state(check, path)
    return check
