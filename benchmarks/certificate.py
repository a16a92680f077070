"""The certificate of a cut: records per second and core, beside reading and hashing the same bytes; memory.

    python -m benchmarks.certificate [RECORDS]

One partition that sends to itself: commands, events with one write and one message, acknowledgements. The log is
checked as a task does it, after its objects were read: decode, headers, events, messages, state. "bytes" is CRC-32C of
every batch and SHA-256, which every verification of the level `data` computes. Times are those of the processor. Twice
the records must take twice the time.
"""

import hashlib
import resource
import sys
import time

from logkeep.checkpoint import records
from logkeep.checkpoint.certificate.log_check import LogCheck
from logkeep.checkpoint.certificate.log_task import finished, fold_state
from logkeep.checkpoint.certificate.tables import CutTables, PartitionClaim, SystemKeys
from logkeep.checkpoint.records import CheckpointDocument, Kind, MessageSource, Record, SentCommand, Stamp
from logkeep.formats.jit import compile_from_now_on
from logkeep.formats.kafka.batches import Batches, first_broken, walk
from logkeep.formats.plain_batches import BatchRecord, encode_batch

APPLICATION = bytes(range(16))
_STAMP = Stamp(APPLICATION, 1, 0)
_KEYS = 50_000
_BLOCK = 999


def block(base: int) -> bytes:
    """333 commands, each a message of the one before it, then their events, then acknowledgements."""
    third = _BLOCK // 3
    commands, events, acks = [], [], []
    for number in range(third):
        position, key = base + number, f"key-{(base + number) % _KEYS}"
        sent = SentCommand("go", f"key-{(base + _BLOCK + number) % _KEYS}", b"v" * 40)
        source = MessageSource("bench.log", 0, position - _BLOCK, 0)
        command = (
            records.message(sent, _STAMP, source, max(base - _BLOCK, 0)) if base else records.command("go", key, b"v")
        )
        commands.append(command.at(position, 0))
        event = records.event(commands[-1], ((key, b"w" * 60),), (sent,), None, identified=base > 0)
        events.append(event.at(position + third, 0))
        own = MessageSource("bench.log", 0, position, records.ACK_INDEX)
        acks.append(records.acknowledgement([(position - _BLOCK, 0)], _STAMP, own).at(position + 2 * third, 0))
    if not base:
        acks = [records.command("go", "x", b"v").at(one.position, 0) for one in acks]
    return b"".join(map(encoded, (commands, events, acks)))


def encoded(batch: list[Record]) -> bytes:
    plain = [BatchRecord(one.key, one.value, one.headers, one.timestamp_ms) for one in batch]
    return encode_batch(batch[0].position, 1, plain)


def measured(count: int) -> tuple[float, float, int]:
    """Seconds for the bytes alone and for the check, and bytes."""
    blocks = count // _BLOCK
    end = blocks * _BLOCK
    document = CheckpointDocument(repository="r", application=APPLICATION.hex(), history=1, id=1, nonce="")
    create = encoded([records.checkpoint(Kind.CREATE, document).at(end, 0)])
    claim = PartitionClaim(0, 0, end + 1, end, -1, "", {}, ((1, end),))
    tables = CutTables(APPLICATION.hex(), "bench", 1, 1, "", (claim,), {}, 5)
    check, hashing, checking, size = LogCheck(tables, 0, SystemKeys(0)), 0.0, 0.0, 0
    for first in range(0, blocks, 64):
        data = b"".join(block(n * _BLOCK) for n in range(first, min(first + 64, blocks)))
        data += create if first + 64 >= blocks else b""
        began = time.process_time()
        batches: Batches = walk(data, first * _BLOCK - 1).batches
        assert first_broken(data, batches) is None
        hashlib.sha256(data).digest()
        hashed = time.process_time()
        check.take(data, batches)
        checking += time.process_time() - hashed
        hashing, size = hashing + hashed - began, size + len(data)
    began = time.process_time()
    fold_state(check, None)
    facts = finished(check)
    checking += time.process_time() - began
    assert facts.records == end + 1, facts.records
    assert not facts.violations.counts, facts.violations
    return hashing, checking, size


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 600_000
    compile_from_now_on()
    measured(20_000)
    for wanted in (count // 2, count):
        hashing, checking, size = measured(wanted)
        total = hashing + checking
        line = f"{wanted:>10,} records, {size / 1e6:.0f} MB: bytes {size / hashing / 1e6:.0f} MB/s, "
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        line += f"check {wanted / checking / 1e6:.2f} M records/s, together {wanted / total / 1e6:.2f} M records/s, "
        print(f"{line}{total / hashing:.1f} x reading the bytes, peak {peak_mb:.0f} MB")


if __name__ == "__main__":
    main()
