"""Two sequences of records that should be the same, where the one is made of several logs: the digests of both.

The counterpart of `twins` for records that were spread over other partitions: no batch of the one is a batch of the
other, so both are decoded, one after the other.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from logkeep.formats.compare.digest import NOTHING, Digest, digest_of
from logkeep.formats.kafka.records import RecordColumns

Opened = Callable[[], Iterator[RecordColumns]]


@dataclass
class Streams:
    """Digests of both sides. `run` it once."""

    left: Sequence[Opened]
    """One after the other."""
    right: Opened
    left_digest: Digest = NOTHING
    right_digest: Digest = NOTHING
    shares: tuple[int, ...] = ()
    """How many records each of the left ones has."""
    border: tuple[int, int] = (-1, -1)
    """Up to where both surely agree: nothing is known of that."""
    complete: bool = False
    """Whether both were read to their ends."""

    @property
    def same(self) -> bool:
        return self.left_digest.same_content(self.right_digest)

    def run(self) -> "Streams":
        """Raises Damaged where records cannot be read."""
        for each in self.left:
            one = _digest(each())
            self.left_digest = self.left_digest.then(one)
            self.shares = (*self.shares, one.records)
        self.right_digest = _digest(self.right())
        self.complete = True
        return self


def _digest(records: Iterator[RecordColumns]) -> Digest:
    whole = NOTHING
    for each in records:
        whole = whole.then(digest_of(each))
    return whole
