"""A digest of records that keeps their order and can be put together from parts.

What a record is: the time that consumers saw, key, value, headers. Its hash is XXH64 of the time (eight bytes,
little-endian) with, as seed, XXH64 of its body: the record's own bytes from the length of its key to its end, with
shortest numbers. There are two such hashes, by two seeds; each is shifted right by 3 and taken modulo p = 2**61 -
1. A sequence of records has D = D * r + h mod p in both lanes, so that D(A followed by B) = D(A) * r**|B| + D(B):
parts of a log that were read by different tasks give the digest of the whole, in whatever batches, codecs and
objects the records lie. Swapping two records changes it.

Offsets are in a third lane by themselves, and how many records show an append time is counted: a restore may place
the same records elsewhere, and says so. Control records are not records to a consumer and are left out.

It finds every accident; it is no seal against a forger, who is met by the SHA-256 of every object.
"""

import re
from dataclasses import dataclass, replace

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.compare.digest_kernels import CONTENT_A, CONTENT_B, MULTIPLIER, OFFSETS, PRIME, fold, fold_places
from logkeep.formats.kafka.batches import Longs, walk
from logkeep.formats.kafka.records import RecordColumns, decode

_FORM = re.compile(r"lk1:([0-9]{1,19}):([0-9a-f]{16})([0-9a-f]{16}):([0-9a-f]{16}):([0-9]{1,19})")


@dataclass(frozen=True)
class Digest:
    """Of a sequence of records."""

    records: int = 0
    content_a: int = 0
    content_b: int = 0
    offsets: int = 0
    append_times: int = 0
    """How many of them show the time at which a broker appended them."""

    def then(self, later: "Digest") -> "Digest":
        """The digest of these records followed by those."""
        factor = pow(MULTIPLIER, later.records, PRIME)
        return Digest(
            self.records + later.records,
            (self.content_a * factor + later.content_a) % PRIME,
            (self.content_b * factor + later.content_b) % PRIME,
            (self.offsets * factor + later.offsets) % PRIME,
            self.append_times + later.append_times,
        )

    def same_content(self, other: "Digest") -> bool:
        """Whether both are of the same records in the same order, wherever they lie."""
        return (self.records, self.content_a, self.content_b) == (other.records, other.content_a, other.content_b)

    def __str__(self) -> str:
        content = f"{self.content_a:016x}{self.content_b:016x}"
        return f"lk1:{self.records}:{content}:{self.offsets:016x}:{self.append_times}"

    @classmethod
    def parse(cls, text: str) -> "Digest":
        """Raises Damaged for what is no digest."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise Damaged("not a digest of records", subject=repr(text[:150]))
        records, a, b, offsets, append_times = found.groups()
        return cls(int(records), int(a, 16), int(b, 16), int(offsets, 16), int(append_times))


NOTHING = Digest()


def warm() -> None:
    """Have every kernel compiled and stored, once, before processes that all need it begin."""
    for part in decode(SMALLEST, walk(SMALLEST).batches):
        if isinstance(part, RecordColumns):
            moved(digest_of(part), part.offsets)


SMALLEST = bytes.fromhex(
    "000000000000000000000038ffffffff0234bb9273000000000000000000000000000000000000"
    "00000000ffffffffffffffffffffffffffff000000010c000000010100"
)
"""A batch with one record of nothing."""


def digest_of(records: RecordColumns) -> Digest:
    """Of all these records, but control records."""
    control = records.control
    if control.any():
        records = records.chosen(~control)
    sums = np.zeros(3, np.uint64)
    fold(records.data, records.offsets, records.times_ms, records.spans, sums)
    a, b, offsets = (int(sums[lane]) for lane in (CONTENT_A, CONTENT_B, OFFSETS))
    return Digest(len(records), a, b, offsets, int(np.count_nonzero(records.append_time)))


def moved(digest: Digest, offsets: Longs) -> Digest:
    """Of the same records, at these offsets."""
    sums = np.zeros(3, np.uint64)
    fold_places(offsets, sums)
    return replace(digest, offsets=int(sums[OFFSETS]))
