"""What a look at a transaction log found, as values: stretches of good records, damage, and how the file ends."""

import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

HEADER: Final = struct.pack(">4siq", b"ZKLG", 2, 0)
"""What every log begins with."""


class DamageKind(StrEnum):
    BAD_HEADER = "bad-header"
    CHECKSUM = "checksum"
    LENGTH = "length"
    """An impossible length, or one that neither checksum nor end mark agree with; also zeros with something behind."""
    END_MARK = "end-mark"
    ORDER = "order"
    """A zxid that is not above the one before it."""
    GAP = "gap"
    """A whole record whose zxid does not follow the one before it."""
    TORN = "torn"
    """No good record comes behind it: the writing of the last one was cut off, or it was damaged later."""


@dataclass(frozen=True)
class LogDamage:
    """Something is wrong at a byte. What lies between `after_zxid` and `resumes_zxid` is not in the file."""

    position: int
    kind: DamageKind
    after_zxid: int
    """The last good one before it; 0 when there is none."""
    resumes_at: int | None = None
    """Where the next good record begins; None when there is none, or none was found with reasonable effort."""
    resumes_zxid: int | None = None

    @property
    def lost(self) -> tuple[int, int] | None:
        """First and last zxid that are lost, where both belong to one epoch; None where that cannot be told."""
        if self.resumes_zxid is None or not self.after_zxid or self.resumes_zxid >> 32 != self.after_zxid >> 32:
            return None
        return self.after_zxid + 1, self.resumes_zxid - 1


@dataclass(frozen=True)
class RecordStretch:
    """Good records one behind the other: bytes `[start, end)` of the file. Numbers are 0 when there are no records."""

    start: int
    end: int
    records: int = 0
    first_zxid: int = 0
    last_zxid: int = 0
    min_time_ms: int = 0
    max_time_ms: int = 0
    last_adler: int = 0


class Padding(StrEnum):
    """What stands behind the last record that was looked at."""

    NOTHING = "nothing"
    ZEROS = "zeros"
    RECORDS = "records"
    """More good records: `until_zxid` was reached."""
    DAMAGE = "damage"


@dataclass(frozen=True)
class ScannedLog:
    """Numbers are of the good records before the first damage, and 0 when there are none."""

    size_bytes: int
    """Of the header and these records: what is worth keeping of the file. 0 when the header itself is bad."""
    records: int
    first_zxid: int
    last_zxid: int
    min_time_ms: int
    max_time_ms: int
    last_adler: int
    with_digests: bool
    """Whether its transactions say what the digest of the tree was after them: servers since 3.6."""
    damage: tuple[LogDamage, ...]
    padding: Padding
    behind: tuple[RecordStretch, ...] = ()
    """Good records behind damage, from a deep scan: logs of their own, for nothing joins them to what is before."""
