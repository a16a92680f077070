"""Cuts that are not true: each function changes one thing of a true cut, and names the rule that has to find it.

A function returns None where the cut has nothing that it could change.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import msgspec

from logkeep.checkpoint import records
from logkeep.checkpoint.machine_state import MachineState, load
from logkeep.checkpoint.records import Kind, Record, event_value, source_of, stamp_of
from logkeep.repository.chain.documents import seal
from tests.support.certificate.cuts import Cut, Snapshot

Forged = tuple[str, Cut] | None
Forgery = Callable[[Cut, random.Random], Forged]


def _any(cut: Cut, chance: random.Random, wanted: Callable[[int, Record], bool]) -> tuple[int, int, Record] | None:
    """Partition, place in its log, and a record that fits."""
    found = [(n, at, r) for n, part in enumerate(cut.partitions) for at, r in enumerate(part.log) if wanted(n, r)]
    return chance.choice(found) if found else None


def _with_record(cut: Cut, number: int, at: int, record: Record) -> Cut:
    log = list(cut.partitions[number].log)
    log[at] = record
    return cut.with_log(number, log)


def _with_header(record: Record, name: str, value: bytes) -> Record:
    headers = tuple((found, value if found == name else data) for found, data in record.headers)
    return msgspec.structs.replace(record, headers=headers)


def _stamped(cut: Cut, chance: random.Random) -> tuple[int, int, Record] | None:
    return _any(cut, chance, lambda _, record: stamp_of(record) is not None)


def _restamped(record: Record, **values: int) -> Record:
    stamp = stamp_of(record)
    assert stamp is not None
    return _with_header(record, records.STAMP, records.pack_stamp(msgspec.structs.replace(stamp, **values)))


def cut_one_earlier(cut: Cut, chance: random.Random) -> Forged:
    number = chance.randrange(len(cut.partitions))
    part = cut.partitions[number]
    end = part.claim.cut_end - 1
    forged = cut.with_log(number, part.log[:-1]).changed(number, archived=replace(part.archived, end=end))
    return "V1", forged.claimed(number, cut_end=end, position=end - 1)


def cut_one_later(cut: Cut, chance: random.Random) -> Forged:
    number = chance.randrange(len(cut.partitions))
    part = cut.partitions[number]
    end = part.claim.cut_end
    if end >= len(cut.beyond[number]):
        return None
    forged = cut.with_log(number, [*part.log, cut.beyond[number][end]])
    forged = forged.changed(number, archived=replace(part.archived, end=end + 1))
    return "V1", forged.claimed(number, cut_end=end + 1, position=chance.choice([end, end - 1]))


def create_of_another_request(cut: Cut, chance: random.Random) -> Forged:
    number = chance.randrange(len(cut.partitions))
    last = cut.partitions[number].log[-1]
    changes: list[dict[str, str | int]] = [{"nonce": "bb" * 8}, {"history": 9}, {"application": "00" * 16}, {"id": 99}]
    document = msgspec.structs.replace(records.document_of(last), **chance.choice(changes))
    return "V1", _with_record(cut, number, -1, msgspec.structs.replace(last, value=seal(document)))


def checkpoint_elsewhere(cut: Cut, chance: random.Random) -> Forged:
    number = chance.randrange(len(cut.partitions))
    claim = cut.partitions[number].claim
    moved = tuple((n, at + chance.choice([-1, 1])) for n, at in claim.checkpoints)
    return ("V1", cut.claimed(number, checkpoints=moved)) if moved else None


def stamp_of_the_cut(cut: Cut, chance: random.Random) -> Forged:
    found = _stamped(cut, chance)
    if found is None:
        return None
    number, at, record = found
    later = cut.checkpoint + chance.randint(0, 3)
    return "V2", _with_record(cut, number, at, _restamped(record, checkpoint_id=later))


def stamp_of_the_past(cut: Cut, chance: random.Random) -> Forged:
    """Older than its sender was."""

    def late(_: int, record: Record) -> bool:
        source, stamp = source_of(record), stamp_of(record)
        if source is None or stamp is None:
            return False
        return any(at < source.position for _, at in cut.partitions[source.partition].claim.checkpoints)

    found = _any(cut, chance, late)
    if found is None:
        return None
    number, at, record = found
    source = source_of(record)
    assert source is not None
    had = max(n for n, at in cut.partitions[source.partition].claim.checkpoints if at < source.position)
    return "V3", _with_record(cut, number, at, _restamped(record, checkpoint_id=had - 1))


def orphan(cut: Cut, chance: random.Random) -> Forged:
    """A message of a command behind the cut."""
    found = _stamped(cut, chance)
    if found is None:
        return None
    number, at, record = found
    source = source_of(record)
    assert source is not None
    end = cut.partitions[source.partition].claim.cut_end
    moved = msgspec.structs.replace(source, position=end + chance.randint(0, 2))
    return "V4", _with_record(cut, number, at, _with_header(record, records.SOURCE, records.pack_source(moved)))


def batch_over_the_cut(cut: Cut, chance: random.Random) -> Forged:
    """The create and what follows it in one batch."""
    number = chance.randrange(len(cut.partitions))
    part = cut.partitions[number]
    end = part.claim.cut_end
    if end >= len(cut.beyond[number]):
        return None
    forged = cut.changed(number, splits=part.splits - {end})
    return "V6", forged.with_log(number, [*part.log, cut.beyond[number][end]])


def event_of_another_command(cut: Cut, chance: random.Random) -> Forged:
    found = _any(
        cut,
        chance,
        lambda n, r: r.kind == Kind.EVENT and event_value(r).source_position >= cut.partitions[n].claim.log_start,
    )
    if found is None:
        return None
    number, at, record = found
    value = event_value(record)
    wrong = msgspec.structs.replace(value, source_position=record.position + 1)
    return "V7", _with_record(cut, number, at, msgspec.structs.replace(record, value=msgspec.msgpack.encode(wrong)))


def history_of_others(cut: Cut, chance: random.Random) -> Forged:
    """A part of the log that belongs to another history."""
    found = _stamped(cut, chance)
    if found is None:
        return None
    number, at, record = found
    return "V8", _with_record(cut, number, at, _restamped(record, history=2))


def record_missing(cut: Cut, chance: random.Random) -> Forged:
    number = chance.randrange(len(cut.partitions))
    part = cut.partitions[number]
    if len(part.log) < 3:
        return None
    at = chance.randrange(len(part.log) - 2) + 1
    before, gone = part.log[at].position, part.log[at].position + 1
    forged = cut.changed(number, splits=part.splits | {before, gone})
    return "V8", forged.with_log(number, part.log[:at] + part.log[at + 1 :])


def snapshot_of_another_position(cut: Cut, chance: random.Random) -> Forged:
    numbers = [n for n, part in enumerate(cut.partitions) if part.snapshot]
    if not numbers:
        return None
    number = chance.choice(numbers)
    snapshot = cut.partitions[number].snapshot
    assert snapshot is not None
    return "V9", cut.changed(number, snapshot=replace(snapshot, position=snapshot.position + chance.choice([-1, 1])))


def _snapshots(cut: Cut, chance: random.Random, wanted: Callable[[int, Snapshot], bool]) -> tuple[int, Snapshot] | None:
    found = [(n, p.snapshot) for n, p in enumerate(cut.partitions) if p.snapshot and wanted(n, p.snapshot)]
    return chance.choice(found) if found else None


def state_changed(cut: Cut, chance: random.Random) -> Forged:
    """A key of the snapshot that is not written again has another value, is gone, or is new."""
    found = _snapshots(cut, chance, lambda n, s: bool(_kept(cut, n, s)))
    if found is None:
        return None
    number, snapshot = found
    key, state = chance.choice(_kept(cut, number, snapshot)), dict(snapshot.state)
    change = chance.randrange(3)
    if change == 0:
        state[key] += b"!"
    elif change == 1:
        del state[key]
    else:
        state["made-up"] = b"x"
    return "V10", cut.changed(number, snapshot=replace(snapshot, state=state))


def _kept(cut: Cut, number: int, snapshot: Snapshot) -> list[str]:
    log = [r for r in cut.partitions[number].log if r.kind == Kind.EVENT and r.position > snapshot.position]
    written = {key for record in log for key, _ in event_value(record).writes}
    return [key for key in snapshot.state if key not in written and not key.startswith("lk/")]


def write_changed(cut: Cut, chance: random.Random) -> Forged:
    """The last write of a key in the log."""
    last: dict[tuple[int, str], int] = {}
    for number, part in enumerate(cut.partitions):
        for at, record in enumerate(part.log):
            if record.kind == Kind.EVENT:
                last |= {(number, key): at for key, value in event_value(record).writes if not key.startswith("lk/")}
    if not last:
        return None
    (number, key), at = chance.choice(sorted(last.items()))
    record = cut.partitions[number].log[at]
    value = event_value(record)
    writes = tuple((found, (data or b"") + b"!" if found == key else data) for found, data in value.writes)
    changed = msgspec.msgpack.encode(msgspec.structs.replace(value, writes=writes))
    return "V10", _with_record(cut, number, at, msgspec.structs.replace(record, value=changed))


def _machine(snapshot: Snapshot) -> MachineState:
    return load(MachineState(bytes(16), "", 0, 0, 1), snapshot.system.items())


def outbox_entry_lost(cut: Cut, chance: random.Random) -> Forged:
    """Of a message in transit, whose event is in the archived log."""
    found = [
        (number, part.snapshot, f"outbox/{receiver}/{key[0]}/{key[1]}")
        for number, part in enumerate(cut.partitions)
        if part.snapshot
        for receiver, waiting in _machine(part.snapshot).outbox.items()
        for key in waiting
        if key[0] >= part.claim.log_start and not _acknowledged(cut, number, receiver, key)
        and not _received(cut, number, receiver, key)
    ]  # fmt: skip
    if not found:
        return None
    number, snapshot, name = chance.choice(found)
    assert snapshot is not None
    system = {key: value for key, value in snapshot.system.items() if key != name}
    return "V11", cut.changed(number, snapshot=replace(snapshot, system=system))


def _acknowledged(cut: Cut, number: int, receiver: int, key: tuple[int, int]) -> bool:
    return any(record.kind == Kind.ACK and key in records.acknowledged(record) for record in cut.partitions[number].log)


def _received(cut: Cut, number: int, receiver: int, key: tuple[int, int]) -> bool:
    end = cut.partitions[receiver].claim.cut_end
    inputs = (source_of(r, records.INPUT) for r in cut.beyond[receiver][:end] if r.kind == Kind.EVENT)
    return any(found and (found.partition, found.position, found.index) == (number, *key) for found in inputs)


def acknowledged_in_transit(cut: Cut, chance: random.Random) -> Forged:
    """An acknowledgement inside also names a message that was not received inside."""
    found = _any(cut, chance, lambda n, r: r.kind == Kind.ACK and bool(_to_drop(cut, n, r)))
    if found is None:
        return None
    number, at, record = found
    value = msgspec.msgpack.encode([*records.acknowledged(record), chance.choice(_to_drop(cut, number, record))])
    return "V11", _with_record(cut, number, at, msgspec.structs.replace(record, value=value))


def _to_drop(cut: Cut, number: int, ack: Record) -> list[tuple[int, int]]:
    """Messages in transit to the partition that acknowledges, sent after the snapshot and before the record."""
    from logkeep.checkpoint.routing import partition_of  # noqa: PLC0415

    source = source_of(ack)
    part = cut.partitions[number]
    after = part.snapshot.position if part.snapshot else -1
    if source is None or ack.position <= after:
        return []
    found = []
    for record in part.log:
        if record.kind == Kind.EVENT and record.position < ack.position:
            value = event_value(record)
            for index, sent in enumerate(value.sends):
                key = value.source_position, index
                ours = (
                    partition_of(sent.key, len(cut.partitions)) == source.partition and key[0] >= part.claim.log_start
                )
                if (
                    ours
                    and not _received(cut, number, source.partition, key)
                    and not _acknowledged(cut, number, 0, key)
                ):
                    found.append(key)
    return found


def message_doubled(cut: Cut, chance: random.Random) -> Forged:
    """A message has the identity of one that was processed before."""
    number = chance.randrange(len(cut.partitions))
    part = cut.partitions[number]
    after = part.snapshot.position if part.snapshot else -1
    events = [
        (at, source)
        for at, record in enumerate(part.log)
        if record.kind == Kind.EVENT and record.position > after and (source := source_of(record, records.INPUT))
    ]
    if len(events) < 2:
        return None
    first, second = sorted(chance.sample(range(len(events)), 2))
    at, packed = events[second][0], records.pack_source(events[first][1])
    event = part.log[at]
    command = event_value(event).source_position - part.log[0].position
    if command < 0 or events[first][1] == events[second][1]:
        return None
    forged = _with_record(cut, number, at, _with_header(event, records.INPUT, packed))
    return "V11", _with_record(forged, number, command, _with_header(part.log[command], records.SOURCE, packed))


def message_of_no_event(cut: Cut, chance: random.Random) -> Forged:
    """The sender's event lacks a message that was received inside."""

    def received(number: int, record: Record) -> bool:
        if record.kind != Kind.EVENT or not event_value(record).sends:
            return False
        value = event_value(record)
        if value.source_position < cut.partitions[number].claim.log_start or _forgotten(
            cut, number, value.source_position
        ):
            return False
        key = value.source_position, len(value.sends) - 1
        return any(_received(cut, number, n, key) for n in range(len(cut.partitions)))

    found = _any(cut, chance, received)
    if found is None:
        return None
    number, at, record = found
    value = event_value(record)
    less = msgspec.msgpack.encode(msgspec.structs.replace(value, sends=value.sends[:-1]))
    return "V11", _with_record(cut, number, at, msgspec.structs.replace(record, value=less))


def _forgotten(cut: Cut, sender: int, position: int) -> bool:
    """Below the mark in the snapshot of any receiver: what was received before is not known any more."""
    found = [part.snapshot for part in cut.partitions if part.snapshot]
    return any(position < _machine(snapshot).lows.get(sender, 0) for snapshot in found)


def pending_below_the_mark(cut: Cut, chance: random.Random) -> Forged:
    """A message that the receiver would ignore is pending again."""
    options = []
    for number, part in enumerate(cut.partitions):
        for receiver, other in enumerate(cut.partitions):
            low = max(
                [records.low_of(r) or 0 for r in cut.beyond[receiver][: other.claim.cut_end] if r.kind == Kind.EVENT
                 and (s := source_of(r, records.INPUT)) and s.partition == number], default=0,
            )  # fmt: skip
            if part.snapshot and low > 0 and (other.claim.log_start == 0 or other.snapshot):
                options.append((number, receiver, low))
    if not options:
        return None
    number, receiver, low = chance.choice(options)
    snapshot = cut.partitions[number].snapshot
    assert snapshot is not None
    sent = msgspec.msgpack.encode(["end", "k0", b""])
    system = snapshot.system | {f"outbox/{receiver}/{low - 1}/7": sent}
    return "V5", cut.changed(number, snapshot=replace(snapshot, system=system))


def manifest_elsewhere(cut: Cut, chance: random.Random) -> Forged:
    number = chance.randrange(len(cut.partitions))
    archived = cut.partitions[number].archived
    return "V12", cut.changed(number, archived=replace(archived, end=archived.end + chance.choice([-1, 1])))


def external_behind(cut: Cut, chance: random.Random) -> Forged:
    numbers = [n for n, part in enumerate(cut.partitions) if part.claim.external]
    if not numbers:
        return None
    number = chance.choice(numbers)
    seen = cut.partitions[number].claim.external["zk"]
    if chance.random() < 0.5:
        return "V13", cut.claimed(number, external={"zk": seen - 1})
    return "V13", replace(cut, members={"zk": seen - 1})


FORGERIES: tuple[Forgery, ...] = (
    cut_one_earlier,
    cut_one_later,
    create_of_another_request,
    checkpoint_elsewhere,
    stamp_of_the_cut,
    stamp_of_the_past,
    orphan,
    batch_over_the_cut,
    event_of_another_command,
    history_of_others,
    record_missing,
    snapshot_of_another_position,
    state_changed,
    write_changed,
    outbox_entry_lost,
    acknowledged_in_transit,
    message_doubled,
    message_of_no_event,
    pending_below_the_mark,
    manifest_elsewhere,
    external_behind,
)


def forgeries(cut: Cut, chance: random.Random) -> Iterator[tuple[Forgery, str, Cut]]:
    """Every forgery that this cut allows."""
    for forgery in FORGERIES:
        forged = forgery(cut, chance)
        if forged is not None:
            yield forgery, *forged
