"""What crosses process borders in a fold: one log to fold, and its result."""

from dataclasses import dataclass
from typing import Final

import msgspec

from logkeep.formats.compaction.barriers import Barriers
from logkeep.formats.compaction.record_rows import HASH_BITS
from logkeep.model.segments import LogName, Segment
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef

MEMORY_BYTES: Final = 192 << 20
"""The memory for the rows of one slice of keys, while they are sorted."""


@dataclass(frozen=True)
class TombstoneRule:
    """Which tombstones a fold may remove."""

    below: int
    """Every archived group has read all offsets below this one."""
    retention_ms: int
    """The largest `delete.retention.ms` of the kept backups."""
    cuts: tuple[tuple[int, int], ...]
    """The end and the time in ms of every kept cut."""


@dataclass(frozen=True)
class FoldUnit:
    """One log: its rows, in order and without overlaps, and the kept cuts."""

    place: SourceRef
    log: LogName
    rows: tuple[Segment, ...]
    barriers: Barriers
    buried: tuple[tuple[ObjectRef, ...], ...] = ()
    """The objects of each of `barriers.burials`."""
    young_ms: int | None = None
    """The fold keeps the first record of this time or later, and all that follow: `min.compaction.lag.ms` at the newest
    cut."""
    tombstones: TombstoneRule | None = None
    """Which tombstones may be removed; None: none."""
    proven: bool = True
    """Whether no deletion or marker was missed when it was archived."""
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    """Secret: three for the keys of the old objects, three for those of the new ones."""
    memory_bytes: int = MEMORY_BYTES
    hash_bits: int = HASH_BITS
    """The size of the hash that distinguishes keys."""

    @property
    def size_bytes(self) -> int:
        """The bytes that progress counts: the log is read twice, and a third time to write it again. Reading the new
        objects back is not counted."""
        return 3 * sum(row.stored_bytes for row in self.rows)


class LogSum(msgspec.Struct, frozen=True, kw_only=True):
    """What all rows of a log hold."""

    records: int
    """How many records there are, without control records."""
    stored_bytes: int
    digest: str
    """The digest of all records in their order."""
    latest: tuple[tuple[int, int, str], ...]
    """For every kept backup: its id, the number of its latest records, and their digest."""


class FoldOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one log. Nothing is replaced yet."""

    log: LogName
    start: int = 0
    end: int = 0
    """Offsets that are folded."""
    replaced: tuple[tuple[str, Segment], ...] = ()
    """Tokens of old rows, and the row for each."""
    before: LogSum | None = None
    after: LogSum | None = None
    """The sums before the fold, and those of the new objects as read back from the store."""
    unkeyed: int = 0
    collisions: int = 0
    skipped: str = ""
    """Why the log cannot be folded."""
    problem: str = ""
    """What is damaged."""
    where: str = ""
