"""Members of an ensemble write a failed multi in two ways, and everything else in one."""

import struct

import pytest

from logkeep.formats.zookeeper.agreement import same_transaction
from logkeep.formats.zookeeper.transactions import FailedTxn, Multi, MultiPart, TransactionType, decode
from tests.support.zookeeper.encoding import buffer

HEAD = struct.pack(">qiqqi", 0x300000BEEF0000, 23, 0x1_0000_01BD, 1_794_820_254_447, 14)
DIGEST = bytes.fromhex("00000002 00000007f8a31c22")
CREATE = buffer(b"/load7/d06/n8") + buffer(b"data") + bytes.fromhex("00000001 0000001f") + buffer(b"world")
CREATE += buffer(b"anyone") + bytes.fromhex("00 00000008")
NO_NODE, NOT_TRIED = bytes.fromhex("ffffff9b"), bytes.fromhex("fffffffe")


def multi(*parts: tuple[int, bytes], head: bytes = HEAD, end: bytes = DIGEST) -> bytes:
    packed = b"".join(struct.pack(">i", kind) + buffer(record) for kind, record in parts)
    return head + struct.pack(">i", len(parts)) + packed + end


LEADER = multi((1, CREATE), (-1, NO_NODE), (-1, NOT_TRIED))
OBSERVER = multi((-1, CREATE), (-1, NO_NODE), (-1, NOT_TRIED))


def test_an_observers_failed_multi_is_read_and_changed_nothing() -> None:
    change = decode(OBSERVER).change
    assert change == Multi(
        (
            MultiPart(TransactionType.ERROR, FailedTxn(0)),
            MultiPart(TransactionType.ERROR, FailedTxn(-101)),
            MultiPart(TransactionType.ERROR, FailedTxn(-2)),
        )
    )
    assert isinstance(change, Multi)
    assert not change.applied
    assert decode(OBSERVER).digest == decode(LEADER).digest


def test_both_ways_are_the_same_transaction() -> None:
    assert same_transaction(LEADER, OBSERVER)
    assert same_transaction(OBSERVER, LEADER)
    assert same_transaction(LEADER, LEADER)


@pytest.mark.parametrize(
    "other",
    (
        multi((-1, CREATE), (-1, NO_NODE), (-1, NO_NODE)),
        multi((-1, CREATE.replace(b"data", b"DATA")), (-1, NO_NODE), (-1, NOT_TRIED)),
        multi((15, CREATE), (-1, NO_NODE), (-1, NOT_TRIED)),
        multi((-1, CREATE), (-1, NO_NODE), (-1, NOT_TRIED), end=bytes(12)),
        multi((-1, CREATE), (-1, NO_NODE), (-1, NOT_TRIED), head=HEAD[:-5] + b"\1" + HEAD[-4:]),
        multi((1, CREATE), (2, NO_NODE), (5, NOT_TRIED)),
        LEADER[:-1],
        b"",
    ),
)
def test_whatever_else_differs_is_another_one(other: bytes) -> None:
    assert not same_transaction(LEADER, other)


def test_a_multi_that_was_applied_has_one_way_only() -> None:
    applied = multi((1, CREATE), (2, buffer(b"/gone")))
    assert same_transaction(applied, applied)
    assert not same_transaction(applied, multi((-1, CREATE), (2, buffer(b"/gone"))))
