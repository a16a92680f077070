"""Transactions as Arrow tables with one row per change, for filters, counts and SQL.

A multi has one row per part; if one part failed, none was applied, and the column says so. The end of a session is one
row, and one more for each ephemeral node that it deletes, if the server wrote their names (3.6 and later). A kernel
fills in the numbers; there is no loop over transactions.
"""

import io
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from logkeep.errors import Damaged
from logkeep.formats.arrow_start import start_arrow
from logkeep.formats.zookeeper import change_kernels as kernels
from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.formats.zookeeper.transactions import TransactionType, decode
from logkeep.formats.zookeeper.txnlog import TransactionColumns, scan, tables
from logkeep.formats.zookeeper.txnlog_kernels import Longs

start_arrow()

OPS: Final[dict[int, str]] = {
    TransactionType.CREATE: "create",
    TransactionType.CREATE2: "create",
    TransactionType.CREATE_CONTAINER: "createContainer",
    TransactionType.CREATE_TTL: "createTTL",
    TransactionType.DELETE: "delete",
    TransactionType.DELETE_CONTAINER: "deleteContainer",
    TransactionType.SET_DATA: "setData",
    TransactionType.RECONFIG: "reconfig",
    TransactionType.SET_ACL: "setACL",
    TransactionType.CHECK: "check",
    TransactionType.MULTI: "multi",
    TransactionType.ERROR: "error",
    TransactionType.CREATE_SESSION: "createSession",
    TransactionType.CLOSE_SESSION: "closeSession",
}
SCHEMA: Final = pa.schema(
    [
        ("zxid", pa.int64()),
        ("time", pa.timestamp("ms", "UTC")),
        ("session", pa.int64()),
        ("cxid", pa.int32()),
        ("txn", pa.string()),
        ("part", pa.int32()),
        ("op", pa.string()),
        ("path", pa.binary()),
        ("data_bytes", pa.int64()),
        ("version", pa.int32()),
        ("ephemeral", pa.bool_()),
        ("applied", pa.bool_()),
        ("error", pa.int32()),
        ("record_bytes", pa.int64()),
    ]
)
"""Paths are bytes, as in the file (the root is `/`); `as_text` converts them."""

_MOST_ROWS: Final = 1 << 16
_TIMES_MS: Final = (-62_135_510_400_000, 253_402_214_399_999)
"""The years 1 to 9999 without their first and last day: a clock may have said anything, and calendars know no more, in
whatever zone the time is shown."""


def changes(records: TransactionColumns, most_rows: int = _MOST_ROWS) -> Iterator[pa.RecordBatch]:
    """All changes of some records, in order. Raises Damaged or FormatTooNew for a body that is not a transaction."""
    data = np.frombuffer(records.data, np.uint8)
    rows = np.empty((min(most_rows, 2 * len(records.zxid) + 16), kernels.COLUMNS), np.int64)
    at, status = 0, kernels.ROOM
    while status == kernels.ROOM:
        status, at, count = kernels.explode(data, records.body_at, records.body_bytes, records.kind, at, rows)
        if count:
            yield _batch(records, data, rows[:count])
        elif status == kernels.ROOM:  # one transaction has more changes than there are rows
            rows = np.empty((2 * len(rows), kernels.COLUMNS), np.int64)
    if status == kernels.BAD:
        raise _decode_error(records, at)


def warm() -> None:
    """Compile and store every kernel before parallel processes need it."""
    for records in tables(io.BytesIO(_SMALLEST_LOG)):
        list(changes(records))
    scan(io.BytesIO(_SMALLEST_LOG + b"damage"), deep=True)


_SMALLEST_LOG: Final = bytes.fromhex(
    "5a4b4c4700000002000000000000000000000000010c00960000002600000000000000000000000000000000"
    "00000001000000000000000000000002000000022f6142"
)
"""The deletion of one node."""


def as_text(paths: pa.Array) -> pa.Array:
    """As text for display. Java encodes characters beyond 16 bits in its own way: such bytes are escaped."""
    try:
        return paths.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if path is None else shown(path) for path in paths.to_pylist()], pa.string())


def hexadecimal(numbers: pa.Array) -> pa.Array:
    """Numbers as ZooKeeper's tools show them; each is written once, however often it is there."""
    known = numbers.dictionary_encode()
    words = [hex(number & 0xFFFF_FFFF_FFFF_FFFF) for number in known.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(known.indices, pa.array(words, pa.string())).cast(pa.string())


def _batch(records: TransactionColumns, data: npt.NDArray[np.uint8], rows: Longs) -> pa.RecordBatch:
    of = rows[:, kernels.RECORD]
    columns = [
        pa.array(records.zxid[of]),
        pa.array(np.clip(records.time_ms[of], *_TIMES_MS)).cast(SCHEMA.field("time").type),
        pa.array(records.session[of]),
        pa.array(records.cxid[of].astype(np.int32)),
        _op_names(records.kind[of]),
        pa.array(rows[:, kernels.PART].astype(np.int32)),
        _op_names(rows[:, kernels.KIND]),
        _paths(data, rows),
        _optional(rows[:, kernels.DATA_SIZE]),
        _optional(rows[:, kernels.VERSION]).cast(pa.int32()),
        pa.array(rows[:, kernels.EPHEMERAL] == 1),
        pa.array(rows[:, kernels.APPLIED] == 1),
        _optional(rows[:, kernels.CODE]).cast(pa.int32()),
        pa.array(records.body_bytes[of]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _optional(numbers: Longs) -> pa.Array:
    return pa.array(numbers, mask=numbers == kernels.NONE)


def _op_names(kinds: Longs) -> pa.Array:
    known, indices = np.unique(kinds, return_inverse=True)
    words = pa.array([OPS[int(kind)] for kind in known], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(indices.astype(np.int32)), words).cast(pa.string())


def _paths(data: npt.NDArray[np.uint8], rows: Longs) -> pa.Array:
    ends = np.cumsum(np.maximum(rows[:, kernels.PATH_SIZE], 0))
    into = np.empty(int(ends[-1]), np.uint8)
    kernels.gather(data, rows, ends, into)
    offsets = np.concatenate([np.zeros(1, np.int32), ends.astype(np.int32)])
    there = np.packbits(rows[:, kernels.PATH_AT] != kernels.NONE, bitorder="little")
    buffers = [pa.py_buffer(there), pa.py_buffer(offsets), pa.py_buffer(into)]
    return pa.Array.from_buffers(pa.binary(), len(rows), buffers)


def _decode_error(records: TransactionColumns, row: int) -> Damaged:
    """Raise the error of `decode`; if it finds none, kernel and decoder disagree, which is an error too."""
    begin = int(records.body_at[row])
    decode(bytes(records.data[begin : begin + int(records.body_bytes[row])]))
    return Damaged("a transaction cannot be taken apart", subject=hex_zxid(int(records.zxid[row])))
