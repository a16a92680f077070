"""What a processor needs of a partition's log and of the transport between partitions.

Every docstring is a promise; `checkpoint/conformance` checks those of a log. One thread appends; others read
and compact at the same time.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from logkeep.checkpoint.records import Record


class PartitionLog(Protocol):
    """The log of one partition, which has one writer: its leader."""

    @property
    def start(self) -> int:
        """The first position that is still there, or `end` of an empty log."""

    @property
    def end(self) -> int:
        """The position that the next record gets. Positions are never given twice, and may have holes: what closes a
        transaction has one, and no record."""

    @property
    def term(self) -> int:
        """A number that grows with each leader of this partition."""

    @property
    def size_bytes(self) -> int:
        """The bytes of the log from `start` on."""

    def size_from(self, position: int) -> int:
        """The bytes of the log from a position on, at least those of its batch."""

    def append(self, records: Sequence[Record]) -> int:
        """Append all records or none, durable on return; the position of the first one.

        Raises PartitionFenced if another leader has the partition, and StoreFull if no space is left. The log is then
        as before.
        """

    def read(self, start: int, most_bytes: int) -> list[Record]:
        """Records from `start` on, in order: at least one if there is any, then about `most_bytes`. Raises Damaged."""

    def batch_start(self, position: int) -> int:
        """The first position of the batch that contains this one; `end` for the end."""

    def cut_end(self, create: int) -> int:
        """Where a cut after the create at this position ends: after its batch, and after its marker if it has one."""

    def batches(self, start: int, end: int) -> Iterator[bytes]:
        """The bytes of all batches from `start` up to `end`, in pieces of whole batches.

        Both are where batches begin or end: `batch_start`, `end`, or one after a create. The range must be there.
        """

    def compact(self, before: int) -> int:
        """Remove whole parts of the log before a position; the new `start`, which is `before` or less."""

    def close(self) -> None:
        """Release the partition to the next leader. More than once is allowed."""


class Transport(Protocol):
    """Carries messages between partitions, and commands of clients to them.

    Messages may be lost, doubled or reordered; senders repeat them until they are acknowledged.
    """

    def send(self, partition: int, records: Sequence[Record]) -> None:
        """Send messages to a partition. Never waits for it."""

    def receive(self, partition: int, most: int) -> list[Record]:
        """Messages for a partition that were not received before."""

    def consumed(self, partition: int, messages: Sequence[Record]) -> None:
        """These messages were received and are part of the next append to this partition's log, or need none."""
