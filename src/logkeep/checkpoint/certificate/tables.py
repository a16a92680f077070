"""What every task of a certificate gets, and what it returns: small tables, never records.

Positions are below 2^43 and indexes of messages below 2^20, so that both fit into one number.
"""

from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from logkeep.repository.backups.certificate import MOST_NAMED

Longs = npt.NDArray[np.int64]
INDEX_BITS: Final = 20
LARGEST_POSITION: Final = 1 << 43
Pair = tuple[int, int]
"""Sender and receiver."""
MessageSum = tuple[int, int, int]
"""Two sums of hashes, and how many messages they have."""


class Violations(msgspec.Struct):
    """Records that break rules: how many, and the first of them."""

    counts: dict[str, int] = {}
    records: dict[str, list[str]] = {}

    def add(self, rule: str, *records: str, count: int | None = None) -> None:
        self.counts[rule] = self.counts.get(rule, 0) + (len(records) if count is None else count)
        named = self.records.setdefault(rule, [])
        named.extend(records[: MOST_NAMED - len(named)])

    def join(self, others: "Violations") -> None:
        for rule, count in others.counts.items():
            self.add(rule, *others.records[rule], count=count)


class PartitionClaim(msgspec.Struct, frozen=True):
    """What the backup says of a partition, to be compared with its bytes."""

    partition: int
    log_start: int
    cut_end: int
    position: int
    snapshot_position: int
    state_digest: str
    external: dict[str, int]
    checkpoints: tuple[tuple[int, int], ...]
    """Id and position."""


class CutTables(msgspec.Struct, frozen=True):
    """Broadcast to every task."""

    application: str
    name: str
    history: int
    checkpoint: int
    nonce: str
    claims: tuple[PartitionClaim, ...]
    from_positions: dict[Pair, int]
    """From which position on messages of a sender to a receiver are counted, where it is not the sender's log start."""
    seed: int
    """Of this run's hashes: no one who writes records can make two of them equal."""

    def counted_from(self, sender: int, receiver: int) -> int:
        return max(self.claims[sender].log_start, self.from_positions.get((sender, receiver), 0))


class SystemKeys(msgspec.Struct, frozen=True):
    """The system keys of a snapshot."""

    partition: int
    position: int = -1
    checkpoint: int = 0
    outbox: tuple[tuple[int, int], ...] = ()
    """Receiver and key of each message that is not acknowledged."""
    received: dict[int, list[int]] = {}
    lows: dict[int, int] = {}
    problem: str = ""
    unknown: bool = False
    """It is no SQLite file: the state backend is the user's own."""


class PartitionFacts(msgspec.Struct):
    """What one log says."""

    partition: int
    records: int = 0
    first: int = -1
    end: int = -1
    """After the last batch."""
    last_record: tuple[int, int] = (-1, -1)
    """Position and kind."""
    violations: Violations = msgspec.field(default_factory=Violations)
    creates: list[tuple[int, int]] = []
    """Id and position of each checkpoint that took effect."""
    final_create: tuple[int, int, str] = (-1, -1, "")
    """Id, history and nonce of the last create."""
    sent: dict[int, MessageSum] = {}
    received: dict[int, MessageSum] = {}
    pending: list[tuple[int, int]] = []
    memory: dict[int, list[int]] = {}
    lows: dict[int, int] = {}
    external: dict[str, int] = {}
    state_digest: str = ""
    """Hex digits of a number below 2^256."""
    keys: int = 0
    keys_from_log: int = 0
    """Of the snapshot's keys, those whose last write is in the archived log and agrees."""
    snapshot_problem: str = ""
    open_transactions: list[int] = []
    foreign: int = 0
    """Messages of other applications."""
    damaged: tuple[str, str] | None = None
    """The object that could not be read to its end, and why: nothing above is complete."""
    ids: dict[str, bytes] = {}
    """`sent/<receiver>` and `received/<sender>`: the keys of messages, where they were asked for."""


def message_keys(positions: Longs, indexes: Longs) -> Longs:
    return (positions << INDEX_BITS) | indexes


def message_name(sender: int, key: int) -> str:
    return f"message {key >> INDEX_BITS}/{key & ((1 << INDEX_BITS) - 1)} of partition {sender}"
