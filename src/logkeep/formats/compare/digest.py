"""A digest of a sequence of records that depends on their order and can be combined from parts.

A record is the time that consumers saw, key, value and headers. Its hash is XXH64 of the time (eight bytes,
little-endian) with, as seed, XXH64 of its body: the record's own bytes from the length of its key to its end, with
shortest numbers. There are two such hashes, by two seeds; each is shifted right by 3 and taken modulo
p = 2**61 - 1. A sequence of records has D = D * r + h mod p in both lanes, so that
D(A followed by B) = D(A) * r**|B| + D(B): parts of a log that different tasks read give the digest of the whole,
whatever batches, codecs and objects hold the records. Swapping two records changes it.

Offsets have a third lane of their own, and records with an append time are counted: a restore may write the same
records to other offsets, and reports it. Control records are left out: consumers never see them.

It detects accidents. It does not protect against forgery; the SHA-256 of every object does.
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
    """How many of them have the time at which a broker appended them."""

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
        """Whether both are of the same records in the same order, at any offsets."""
        return (self.records, self.content_a, self.content_b) == (other.records, other.content_a, other.content_b)

    def __str__(self) -> str:
        content = f"{self.content_a:016x}{self.content_b:016x}"
        return f"lk1:{self.records}:{content}:{self.offsets:016x}:{self.append_times}"

    @classmethod
    def parse(cls, text: str) -> "Digest":
        """Raises Damaged if the text is not a digest."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise Damaged("not a digest of records", subject=repr(text[:150]))
        records, a, b, offsets, append_times = found.groups()
        return cls(int(records), int(a, 16), int(b, 16), int(offsets, 16), int(append_times))


NOTHING = Digest()


def warm() -> None:
    """Compile and store every kernel before parallel processes need it."""
    for part in decode(SMALLEST, walk(SMALLEST).batches):
        if isinstance(part, RecordColumns):
            with_offsets(digest_of(part), part.offsets)


SMALLEST = bytes.fromhex(
    "000000000000000000000038ffffffff0234bb9273000000000000000000000000000000000000"
    "00000000ffffffffffffffffffffffffffff000000010c000000010100"
)
"""A batch with one empty record."""


def digest_of(records: RecordColumns) -> Digest:
    """Of all these records except control records."""
    control = records.control
    if control.any():
        records = records.chosen(~control)
    sums = np.zeros(3, np.uint64)
    fold(records.data, records.offsets, records.times_ms, records.spans, sums)
    a, b, offsets = (int(sums[lane]) for lane in (CONTENT_A, CONTENT_B, OFFSETS))
    return Digest(len(records), a, b, offsets, int(np.count_nonzero(records.append_time)))


def with_offsets(digest: Digest, offsets: Longs) -> Digest:
    """The digest of the same records at other offsets."""
    sums = np.zeros(3, np.uint64)
    fold_places(offsets, sums)
    return replace(digest, offsets=int(sums[OFFSETS]))
