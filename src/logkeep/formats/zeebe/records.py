"""Records of Zeebe's log as columns, and fields of their values.

A *row* is one record: int64 columns as named in `frame_kernels` (POSITION, SOURCE, KEY, …). VALUE_AT is a place in the
buffer that the row was read from, so values are read while the buffer is there.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from logkeep.formats.zeebe import frame_kernels as kernels
from logkeep.formats.zeebe.frame_kernels import Bytes, Longs
from logkeep.formats.zeebe.value_kernels import name_hash, read_fields

MISSING = -(1 << 63)
"""A field that the value does not have."""


class ZeebeRecordType(IntEnum):
    EVENT = 0
    COMMAND = 1
    REJECTION = 2


class ValueType(IntEnum):
    """Those that checks read; there are more."""

    JOB = 0
    DEPLOYMENT = 4
    MESSAGE_SUBSCRIPTION = 11
    PROCESS_MESSAGE_SUBSCRIPTION = 12
    COMMAND_DISTRIBUTION = 33
    CHECKPOINT = 254


CREATE, CREATED, IGNORED = range(3)
"""Intents of checkpoint records."""


@dataclass(frozen=True)
class CheckpointEntry:
    """A checkpoint record in the log."""

    position: int
    source: int
    record_type: int
    intent: int
    checkpoint_id: int
    checkpoint_position: int
    """-1 in a command: the command's own position counts."""
    frame_end: int
    """Where its frame ends in the segment: a copy may be cut there."""

    @property
    def is_create(self) -> bool:
        return self.record_type == ZeebeRecordType.COMMAND and self.intent == CREATE

    @property
    def is_created(self) -> bool:
        return self.record_type == ZeebeRecordType.EVENT and self.intent == CREATED


def fields(buffer: Bytes, rows: Longs, names: tuple[str, ...]) -> tuple[Longs, int | None]:
    """Numbers of these fields in each row's value, MISSING where there is none; texts as hashes.

    The second answer is the first row whose value is not a map.
    """
    found = np.full((len(rows), len(names)), MISSING, np.int64)
    hashes = np.array([name_hash(name.encode()) for name in names], np.int64)
    wrong = read_fields(buffer, rows, hashes, found) if len(rows) else -1
    return found, None if wrong < 0 else int(wrong)


def checkpoints(buffer: Bytes, base: int, rows: Longs) -> list[CheckpointEntry]:
    """The checkpoint records among rows of a buffer that begins at byte `base` of its segment."""
    chosen = rows[rows[:, kernels.VALUE_TYPE] == ValueType.CHECKPOINT]
    found, _ = fields(buffer, chosen, ("id", "position"))
    return [
        CheckpointEntry(
            position=int(row[kernels.POSITION]),
            source=int(row[kernels.SOURCE]),
            record_type=int(row[kernels.RECORD_TYPE]),
            intent=int(row[kernels.INTENT]),
            checkpoint_id=int(numbers[0]),
            checkpoint_position=int(numbers[1]),
            frame_end=base + int(row[kernels.FRAME_END]),
        )
        for row, numbers in zip(chosen, found, strict=True)
    ]


def warm() -> None:
    """Compile and store every kernel before parallel processes need it."""
    frames = np.empty((1, kernels.FRAME_COLUMNS), np.int64)
    rows = np.zeros((1, kernels.RECORD_COLUMNS), np.int64)
    data = np.frombuffer(b"\x80", np.uint8)
    kernels.walk_frames(data, 0, len(data), 1, frames)
    kernels.walk_entries(data, frames[:0], np.zeros(kernels.FACTS, np.int64), rows, 0)
    fields(data, rows, ("id",))
