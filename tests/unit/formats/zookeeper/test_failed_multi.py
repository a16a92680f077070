"""A multi that failed, as a leader writes it that had applied it already: parts called failed that still hold all."""

import struct

from logkeep.formats.zookeeper.transactions import FailedTxn, Multi, TransactionType, decode
from tests.support.zookeeper.encoding import buffer


def test_parts_that_are_called_failed_may_hold_what_they_were() -> None:
    create = buffer(b"/a") + buffer(b"data") + struct.pack(">i", 0) + struct.pack(">?i", False, 1)
    code = struct.pack(">i", -101)
    parts = [
        (TransactionType.ERROR, create),
        (TransactionType.ERROR, code),
        (TransactionType.ERROR, struct.pack(">i", -2)),
    ]
    vector = struct.pack(">i", len(parts)) + b"".join(struct.pack(">i", k) + buffer(record) for k, record in parts)
    body = struct.pack(">qiqqi", 7, 1, 0x100000150, 1_794_821_362_457, TransactionType.MULTI) + vector
    change = decode(body).change
    assert isinstance(change, Multi)
    assert not change.applied
    assert [part.change for part in change.parts] == [FailedTxn(0), FailedTxn(-101), FailedTxn(-2)]
