"""The result of scanning a transaction log: stretches of good records, damage, and how the file ends."""

import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

HEADER: Final = struct.pack(">4siq", b"ZKLG", 2, 0)
"""The header of every log."""


class DamageKind(StrEnum):
    BAD_HEADER = "bad-header"
    CHECKSUM = "checksum"
    LENGTH = "length"
    """An impossible length, or one that neither checksum nor end mark confirms; also zeros followed by data."""
    END_MARK = "end-mark"
    ORDER = "order"
    """A zxid that is not greater than the one before."""
    GAP = "gap"
    """A complete record whose zxid does not follow the one before."""
    TORN = "torn"
    """No good record follows: the last write was interrupted, or the file was damaged later."""


@dataclass(frozen=True)
class LogDamage:
    """Damage at a byte. Transactions between `after_zxid` and `resumes_zxid` are lost."""

    position: int
    kind: DamageKind
    after_zxid: int
    """The last good zxid before it; 0 if there is none."""
    resumes_at: int | None = None
    """The position of the next good record; None if there is none, or none was found with limited effort."""
    resumes_zxid: int | None = None

    @property
    def lost(self) -> tuple[int, int] | None:
        """First and last lost zxid, if both belong to one epoch; None if unknown."""
        if self.resumes_zxid is None or not self.after_zxid or self.resumes_zxid >> 32 != self.after_zxid >> 32:
            return None
        return self.after_zxid + 1, self.resumes_zxid - 1


@dataclass(frozen=True)
class RecordStretch:
    """Consecutive good records: bytes `[start, end)` of the file. Numbers are 0 without records."""

    start: int
    end: int
    records: int = 0
    first_zxid: int = 0
    last_zxid: int = 0
    min_time_ms: int = 0
    max_time_ms: int = 0
    last_adler: int = 0


class Padding(StrEnum):
    """What follows the last record that was read."""

    NOTHING = "nothing"
    ZEROS = "zeros"
    RECORDS = "records"
    """More good records: `until_zxid` was reached."""
    DAMAGE = "damage"


@dataclass(frozen=True)
class ScannedLog:
    """Numbers are of the good records before the first damage, and 0 without records."""

    size_bytes: int
    """Of the header and these records. 0 if the header itself is bad."""
    records: int
    first_zxid: int
    last_zxid: int
    min_time_ms: int
    max_time_ms: int
    last_adler: int
    with_digests: bool
    """Whether transactions have the digest of the tree after them: servers since 3.6."""
    damage: tuple[LogDamage, ...]
    padding: Padding
    behind: tuple[RecordStretch, ...] = ()
    """Good records after damage, from a deep scan: separate logs, because nothing connects them to those before."""
