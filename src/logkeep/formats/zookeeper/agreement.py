"""Compares the records of one transaction in the logs of two members.

Nearly always the bytes are equal. A failed multi is the exception: a member that applies it before writing it, as
observers do, marks all its parts as failed first. The parts themselves do not change.
"""

from logkeep.formats.zookeeper.jute import JuteReader
from logkeep.formats.zookeeper.transactions import HEADER, TransactionType

_Parts = list[tuple[int, bytes | None]]


def same_transaction(one: bytes, other: bytes) -> bool:
    """Whether two bodies of records are the same transaction. Raises Damaged if one is not a transaction."""
    if one == other:
        return True
    if len(one) != len(other) or one[: HEADER.size] != other[: HEADER.size] or _kind(one) != TransactionType.MULTI:
        return False
    (ours, our_end), (theirs, their_end) = _parts(one), _parts(other)
    if our_end != their_end or not (_failed(ours) and _failed(theirs)):
        return False
    return all(_same_part(*pair) for pair in zip(ours, theirs, strict=True))


def _same_part(one: tuple[int, bytes | None], other: tuple[int, bytes | None]) -> bool:
    return one[1] == other[1] and (one[0] == other[0] or TransactionType.ERROR in (one[0], other[0]))


def _failed(parts: _Parts) -> bool:
    return any(kind == TransactionType.ERROR for kind, _ in parts)


def _kind(body: bytes) -> int:
    return int(HEADER.unpack_from(body)[4]) if len(body) >= HEADER.size else 0


def _parts(body: bytes) -> tuple[_Parts, bytes]:
    """Kinds and records, and the bytes after them."""
    reader = JuteReader(body, HEADER.size)
    parts = [(reader.int_(), reader.buffer()) for _ in range(reader.count(8))]
    return parts, body[reader.position :]
