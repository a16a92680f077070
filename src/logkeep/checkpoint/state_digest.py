"""The digest of a partition's state: a sum that each write changes in constant time.

A key with its value counts as SHA-256 of `u32 length of the key · key · value bytes`, read as a big-endian number. The
digest of a state is the sum of its keys modulo 2^256, written as 64 hex digits; an empty state has 64 zeros. The order
of writes does not matter, so the last write of each key gives the same digest as the writes one by one.
"""

import hashlib
from collections.abc import Iterable

_MODULUS = 1 << 256
EMPTY = 0


def entry(key: str, value: bytes) -> int:
    name = key.encode()
    return int.from_bytes(hashlib.sha256(len(name).to_bytes(4, "big") + name + value).digest(), "big")


def changed(digest: int, key: str, old: bytes | None, new: bytes | None) -> int:
    """The digest after a key's value changed; None is a key that is not there."""
    if old is not None:
        digest -= entry(key, old)
    if new is not None:
        digest += entry(key, new)
    return digest % _MODULUS


def digest_of(items: Iterable[tuple[str, bytes]]) -> int:
    return sum((entry(key, value) for key, value in items), EMPTY) % _MODULUS


def as_text(digest: int) -> str:
    return f"{digest:064x}"
