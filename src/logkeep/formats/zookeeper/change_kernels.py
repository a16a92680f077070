"""Kernels that read the changes of transactions: one row per change, also for the parts of a multi.

Bodies are those of checked records, but not trusted: each length is checked before it is used. A record that does not
fit is returned; `transactions.decode` then says what is wrong with it.
"""

from logkeep.formats.jit import inlined, kernel
from logkeep.formats.zookeeper.txnlog_kernels import U64, Bytes, Longs, Number, int32

RECORD, PART, KIND, PATH_AT, PATH_SIZE, DATA_SIZE, VERSION, EPHEMERAL, APPLIED, CODE = range(10)
"""RECORD: its index among the given ones. PART: within the transaction. APPLIED: 0 in a multi that failed."""
COLUMNS = 10
NONE = -(1 << 62)
"""No number; as PATH_AT: no path."""

DONE, ROOM, BAD = range(3)

CREATE, DELETE, SET_DATA, SET_ACL, CHECK, MULTI, CREATE2, RECONFIG = 1, 2, 5, 7, 13, 14, 15, 16
CONTAINER, DELETE_CONTAINER, TTL, ERROR, OPEN_SESSION, CLOSE_SESSION = 19, 20, 21, -1, -10, -11
HEADER_BYTES = 32
DIGEST_BYTES = 12


@inlined
def buffer_end(data: Bytes, at: Number, end: Number) -> Number:
    """The end of the buffer that begins here; -1 if it does not fit."""
    if end - at < 4:
        return -1
    size = int32(data, at)
    if size < -1 or size > end - at - 4:
        return -1
    return at + 4 + max(size, 0)


@inlined
def acls_end(data: Bytes, at: Number, end: Number) -> Number:
    if end - at < 4:
        return -1
    count = int32(data, at)
    at += 4
    if count < -1 or count > (end - at) // 12:
        return -1
    for _ in range(max(count, 0)):
        if end - at < 4:
            return -1
        at = buffer_end(data, at + 4, end)
        if at >= 0:
            at = buffer_end(data, at, end)
        if at < 0:
            return -1
    return at


@inlined
def blank(row: Longs, record: Number, part: Number, kind: Number) -> None:
    row[:] = NONE
    row[RECORD], row[PART], row[KIND] = record, part, kind
    row[EPHEMERAL], row[APPLIED] = 0, 1


@inlined
def number_at(data: Bytes, at: Number, end: Number, row: Longs, column: int) -> Number:
    if end - at < 4:
        return -1
    row[column] = int32(data, at)
    return at + 4


@inlined
def path_at(data: Bytes, at: Number, end: Number, row: Longs) -> Number:
    after = buffer_end(data, at, end)
    if after < 0 or int32(data, at) < 0:
        return -1
    row[PATH_AT], row[PATH_SIZE] = at + 4, after - at - 4
    return after


@inlined
def data_at(data: Bytes, at: Number, end: Number, row: Longs) -> Number:
    after = buffer_end(data, at, end)
    if after >= 0 and int32(data, at) >= 0:
        row[DATA_SIZE] = after - at - 4
    return after


@inlined
def created(data: Bytes, at: Number, end: Number, kind: Number, row: Longs) -> Number:
    """After the path. Logs of 3.3 and older have no cversion."""
    row[VERSION] = 0
    at = data_at(data, at, end, row)
    if at >= 0:
        at = acls_end(data, at, end)
    if at < 0:
        return -1
    if kind in (CONTAINER, TTL):
        size = 4 if kind == CONTAINER else 12
        return at + size if end - at >= size else -1
    if end - at < 1:
        return -1
    row[EPHEMERAL] = 1 if data[U64(at)] != 0 else 0
    at += 1
    if end - at in (0, DIGEST_BYTES):
        return at
    return at + 4 if end - at >= 4 else -1


@inlined
def simple(data: Bytes, at: Number, end: Number, kind: Number, row: Longs) -> Number:
    """Where a change that is neither a multi nor of a session ends; -1 if it does not fit."""
    if kind == ERROR:
        return number_at(data, at, end, row, CODE)
    at = path_at(data, at, end, row)
    if at < 0 or kind in (DELETE, DELETE_CONTAINER):
        return at
    if kind in (CREATE, CREATE2, CONTAINER, TTL):
        return created(data, at, end, kind, row)
    if kind in (SET_DATA, RECONFIG):
        at = data_at(data, at, end, row)
    elif kind == SET_ACL:
        at = acls_end(data, at, end)
    elif kind != CHECK:
        return -1
    return -1 if at < 0 else number_at(data, at, end, row, VERSION)


@inlined
def alone(data: Bytes, at: Number, end: Number, kind: Number, row: Longs) -> Number:
    if kind == OPEN_SESSION:
        return at + 4 if end - at >= 4 else -1
    return simple(data, at, end, kind, row)


@inlined
def closed(data: Bytes, at: Number, end: Number, record: Number, rows: Longs, row: Number) -> tuple[Number, Number]:
    """A session's end, and a deletion for each ephemeral node that it names. Returns where it ends, and the next row.

    A row of -1: there is no room.
    """
    blank(rows[U64(row)], record, 0, CLOSE_SESSION)
    row += 1
    left = end - at
    if left == 0 or (left == DIGEST_BYTES and int32(data, at) != 1):
        return at, row
    if left < 4:
        return -1, row
    count = int32(data, at)
    at += 4
    if count < -1 or count > (end - at) // 4:
        return -1, row
    if row + count > rows.shape[0]:
        return at, -1
    for part in range(max(count, 0)):
        blank(rows[U64(row)], record, part + 1, DELETE)
        at = path_at(data, at, end, rows[U64(row)])
        row += 1
        if at < 0:
            return -1, row
    return at, row


@inlined
def multi(  # noqa: PLR0911 - a compiled function has no exceptions to raise: each check returns its answer
    data: Bytes, at: Number, end: Number, record: Number, rows: Longs, row: Number
) -> tuple[Number, Number]:
    """As `closed`. One failed part, and none of them changed anything."""
    if end - at < 4:
        return -1, row
    count, begin, applied = int32(data, at), row, 1
    at += 4
    if count < -1 or count > (end - at) // 8:
        return -1, row
    if row + count > rows.shape[0]:
        return at, -1
    for part in range(max(count, 0)):
        if end - at < 8:
            return -1, row
        kind, after = int32(data, at), buffer_end(data, at + 4, end)
        if after < 0:
            return -1, row
        found = rows[U64(row)]
        blank(found, record, part, kind)
        if kind == ERROR:
            applied = 0
            found[CODE] = int32(data, at + 8) if after - at - 8 == 4 else 0
        elif simple(data, at + 8, after, kind, found) != after:
            return -1, row
        at = after
        row += 1
    rows[begin:row, APPLIED] = applied
    return at, row


def _explode_us(_data: Bytes, body_at: Longs, body_bytes: Longs, _kinds: Longs, begin: int, _rows: Longs) -> int:
    return 30 * (len(body_at) - begin) + int(body_bytes[begin:].sum()) // 2


@kernel(_explode_us)
def explode(
    data: Bytes, body_at: Longs, body_bytes: Longs, kinds: Longs, begin: int, rows: Longs
) -> tuple[int, int, int]:
    """Fill `rows` from record `begin` on. Returns why it stopped, the record it stopped at, and the rows that are full.

    ROOM: `rows` cannot hold the record where it stopped.
    """
    row = 0
    for record in range(begin, body_at.shape[0]):
        if row >= rows.shape[0]:
            return ROOM, record, row
        kind, end = kinds[record], body_at[record] + body_bytes[record]
        at, following = body_at[record] + HEADER_BYTES, row + 1
        if kind == MULTI:
            at, following = multi(data, at, end, record, rows, row)
        elif kind == CLOSE_SESSION:
            at, following = closed(data, at, end, record, rows, row)
        else:
            found = rows[U64(row)]
            blank(found, record, 0, kind)
            at = alone(data, at, end, kind, found)
        if following < 0:
            return ROOM, record, row
        if at < 0 or end - at not in (0, DIGEST_BYTES):
            return BAD, record, row
        if kind == ERROR:
            rows[U64(row), APPLIED] = 0
        row = following
    return DONE, body_at.shape[0], row


@kernel(lambda _data, rows, _ends, into: 2 * len(rows) + len(into))
def gather(data: Bytes, rows: Longs, ends: Longs, into: Bytes) -> None:
    """Copy the paths of rows one after the other; `ends` has the end of each."""
    for row in range(rows.shape[0]):
        size = max(rows[row, PATH_SIZE], 0)
        begin, at = ends[row] - size, rows[row, PATH_AT]
        for index in range(size):
            into[begin + index] = data[at + index]
