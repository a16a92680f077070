"""Messages that no release writes: whatever arrives in an inbox, a partition goes on and its checkpoint stays.

Anyone who may write to an inbox on Kafka can send such messages. What was logged is read by every later leader, so one
bad record in the log would end them all.
"""

import logging
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from logkeep.application import Command, Context
from logkeep.checkpoint import records
from logkeep.checkpoint.records import Kind, MessageSource, Record, SentCommand, Stamp
from logkeep.errors import Damaged
from tests.support.processors import APPLICATION, ProcessorGroup

ROUNDS, SEEDS, MESSAGES = 6, 25, 12
LARGE = 100_000


def _put(command: Command, state: Any, context: Context) -> None:
    state[command.key] = command.value
    context.send("copy", key=f"copy of {command.key}", value=1)
    context.reply("put")


def _copy(command: Command, state: Any, _context: Context) -> None:
    state[command.key] = command.value


def _message(choose: random.Random) -> Record:
    """A message as it should be, but for the numbers in it."""
    partition = choose.choice([0, 1, 2, 7, -1, 2**31 - 1])
    source = MessageSource("shop.log", partition, choose.choice([0, 3, -1, 2**62]), choose.choice([0, 1, 2**32 - 1]))
    stamp, value = Stamp(APPLICATION, 0, 0), msgspec.msgpack.encode(1)
    return choose.choice(
        [
            records.command("put", "key", value, request=f"r{choose.randrange(5)}"),
            records.message(SentCommand("copy", "key", value), stamp, source, choose.choice([0, -3])),
            records.acknowledgement([(0, 0), (3, 1)], stamp, source),
        ]
    )


def _spoiled(message: Record, choose: random.Random) -> Record:
    headers = list(message.headers)
    at = choose.randrange(len(headers))
    name, data = headers[at]
    match choose.randrange(7):
        case 0:
            headers[at] = name, data[: choose.randrange(len(data) + 1)]
        case 1:
            headers[at] = name, data + bytes(choose.choice([1, LARGE]))
        case 2:
            headers[at] = name, choose.randbytes(len(data))
        case 3:
            named = choose.choice([records.STAMP, records.SOURCE, records.LOW, records.NAME, records.REQUEST, "x"])
            headers.append((named, choose.randbytes(choose.choice([0, 1, 8, 40, LARGE]))))
        case 4:
            del headers[at]
        case 5:
            odd = [b"", choose.randbytes(30), b"\x91" * LARGE, msgspec.msgpack.encode([[1, 2, 3]])]
            return msgspec.structs.replace(message, value=choose.choice(odd))
        case _:
            return msgspec.structs.replace(message, key=choose.choice([None, b"", b"\xff\xfe", bytes(LARGE)]))
    return msgspec.structs.replace(message, headers=tuple(headers))


def _send(group: ProcessorGroup, choose: random.Random) -> None:
    for _ in range(MESSAGES):
        odd = _spoiled(_message(choose), choose) if choose.random() < 0.8 else _message(choose)
        with suppress(Damaged):  # as the inbox does, which counts it
            read = records.read(odd.key, odd.value, odd.headers, -1, 0)
            group.queues.send(choose.randrange(2), [read])


def _process(group: ProcessorGroup) -> None:
    for _ in range(20):
        group.elapsed_s += 0.3
        for processor in group.processors:
            processor.step()


@pytest.mark.parametrize("part", range(ROUNDS))
def test_no_message_ends_a_partition_or_moves_its_checkpoint(
    part: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        choose = random.Random(seed)
        group = ProcessorGroup(tmp_path / str(seed), {"put": _put, "copy": _copy})
        group.create(0, 5)
        group.drain()
        _send(group, choose)
        _process(group)
        for partition in (0, 1):
            group.restart(partition)
        group.client("put", "fine", 1, request="fine")
        _process(group)
        assert ("fine", "put") in group.replies
        assert max(processor.state.machine.checkpoint_id for processor in group.processors) == 5
        group.close()


def test_an_acknowledgement_that_cannot_be_read_is_counted_and_not_logged(tmp_path: Path) -> None:
    group = ProcessorGroup(tmp_path, {})
    good = records.acknowledgement([(0, 0)], Stamp(APPLICATION, 0, 0), MessageSource("shop.log", 1, 0, 0))
    cut = msgspec.structs.replace(good, value=good.value[:-1])
    elsewhere = records.acknowledgement([(0, 0)], Stamp(APPLICATION, 0, 0), MessageSource("shop.log", 9, 0, 0))
    group.queues.send(0, [cut, elsewhere, good])
    _process(group)
    assert group.processors[0].counted["unreadable"] == 2
    assert [record.kind for record in group.logs[0].read(0, 1 << 20)] == [Kind.ACK]
    group.close()
