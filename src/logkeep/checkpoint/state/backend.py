"""What a processor needs of a state backend. Every docstring is a promise; `checkpoint/conformance` checks them.

A backend has user keys and system keys, and the position up to which the log was applied. One process uses it; `apply`
and `get` are called by one thread, `snapshot` also by another one at the same time.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

NOTHING = -1
"""The position of a state to which nothing was applied."""


class Write(NamedTuple):
    """A key and its new value; None deletes it."""

    key: str
    value: bytes | None


class SnapshotInfo(NamedTuple):
    """The last position inside a snapshot, and its size."""

    position: int
    size_bytes: int


class StateBackend(Protocol):
    @property
    def position(self) -> int:
        """The last position that was applied, or NOTHING. It survives a crash together with what was applied."""

    def get(self, key: str) -> bytes | None:
        """The value of a user key."""

    def get_system(self, key: str) -> bytes | None:
        """The value of a system key, which users cannot name."""

    def apply(self, position: int, writes: Sequence[Write], system: Sequence[Write]) -> None:
        """Apply writes and the new position in one transaction, in order. Positions never shrink."""

    def items(self) -> Iterator[tuple[str, bytes]]:
        """All user keys, in the order of their UTF-8 bytes."""

    def system_items(self) -> Iterator[tuple[str, bytes]]:
        """All system keys, in the order of their UTF-8 bytes."""

    def snapshot(self, path: Path) -> SnapshotInfo:
        """Write a consistent copy as one new file, durable on return, while others apply.

        The copy contains exactly the writes up to the position that is returned.
        """

    def load(self, path: Path) -> None:
        """Replace everything by a snapshot. The snapshot stays as it is. Raises Damaged, and then nothing changed."""

    def close(self) -> None:
        """Release everything. More than once is allowed."""
