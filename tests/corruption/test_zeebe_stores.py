"""Hostile stores of Zeebe: a verification ends with findings, in little time and memory, whatever is stored."""

import json
import random
import resource
from typing import Any

import pytest

from logkeep.checkpoint.zeebe.inventory import read_inventory
from logkeep.checkpoint.zeebe.verify import verify_backup
from logkeep.engine.inline import InlineEngine
from logkeep.formats.jit import compile_from_now_on
from logkeep.store.memory import MemoryStore
from tests.support.zeebe.handmade import COMMAND, MadeRecord, batch_entry, frame, raft_entry, segment
from tests.support.zeebe.made_backups import batches, made_backup

STORES = 2_000
MOST_MEMORY_KB = 64 << 10
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 1 << 31, 1 << 63, 1 << 200, 1e300, "", "../../etc/passwd", "\x1b[2J", "x" * 70_000, [], {}, [[]],
    {"files": None}, {"files": {"a/b": {}}}, {"files": {"..": {}}}, {"files": [{"name": "/"}]}, "COMPLETED",
)  # fmt: skip


def of_partition(number: int) -> dict[str, bytes]:
    """Without the zeros behind the log: every byte of it means something."""
    stored = made_backup()[number - 1].files()
    return {name: data.rstrip(b"\0") + bytes(64) if name.endswith(".log") else data for name, data in stored.items()}


def flipped(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8, 64))):
        if changed:
            changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def cut_or_grown(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return chance.choice((data[:at], data + data[at:], data[at:], data[:at] + chance.randbytes(40) + data[at:], b""))


def other_manifest(data: bytes, chance: random.Random) -> bytes:
    document = json.loads(data)
    within = chance.choice((document, document["id"], document["descriptor"]))
    within[chance.choice(sorted(within))] = chance.choice(HOSTILE)
    return json.dumps(document).encode()


def hostile_frames(chance: random.Random) -> bytes:
    """Frames whose CRC is right around entries that are not: only the lengths inside can stop a reader."""
    made = [frame(1, raft_entry(1))]
    for index, batch in enumerate(batches()[chance.choice((1, 2, 3))][1:], 2):
        entry = flipped(batch_entry(1, batch), chance) if chance.random() < 0.4 else batch_entry(1, batch)
        made.append(frame(index, cut_or_grown(entry, chance) if chance.random() < 0.2 else entry, batch[0].position))
    return segment(made)


def hostile_value(chance: random.Random) -> bytes:
    value = b"\x82" + chance.choice(
        (b"\xdf\xff\xff\xff\xff", b"\xdd\x7f\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\x91" * 500)
    )
    record = MadeRecord(1, COMMAND, 11, 0, value=value + chance.randbytes(chance.randrange(40)))
    return segment([frame(1, batch_entry(1, [record]), 1)])


def mutated(stored: dict[str, bytes], chance: random.Random) -> dict[str, bytes]:
    name = chance.choice(sorted(stored))
    if name.endswith(".json"):
        change = chance.choice((flipped, cut_or_grown, other_manifest, other_manifest))
        return {**stored, name: change(stored[name], chance)}
    if name.endswith(".log") and chance.random() < 0.5:
        made = hostile_value(chance) if chance.random() < 0.2 else hostile_frames(chance)
        return {**stored, name: made}
    if chance.random() < 0.1:
        return {f"{chance.choice(('manifests', 'contents', '0', '1/20', 'x'))}/{name}": stored[name], **stored}
    return {**stored, name: chance.choice((flipped, cut_or_grown))(stored[name], chance)}


def verify_all(stored: dict[str, bytes]) -> set[tuple[str, str, str]]:
    store = MemoryStore()
    for name, data in stored.items():
        store.put_new(name, data)
    results = [verify_backup(store, each, InlineEngine()) for each in read_inventory(store)]
    return {(finding.code, finding.where, finding.what) for each in results for finding in each.findings}


@pytest.mark.timeout(120)
def test_hostile_stores_end_with_findings_in_little_memory() -> None:
    compile_from_now_on()
    plain = [of_partition(number) for number in (1, 2, 3)]
    notes = [verify_all(each) for each in plain]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    noticed = 0
    for seed in range(STORES):
        noticed += verify_all(mutated(plain[seed % 3], random.Random(seed))) != notes[seed % 3]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY_KB
    assert noticed > STORES * 3 // 4, "the changes are changes"
