"""Transactions and logs as bytes, written down from the format's description: the judge of what decodes them."""

import struct
import zlib
from collections.abc import Iterable

from logkeep.formats.zookeeper.transactions import (
    Acls,
    Change,
    CheckVersion,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    FailedTxn,
    Multi,
    SetAcl,
    SetData,
    Transaction,
)

LOG_HEADER = bytes.fromhex("5a4b4c47 00000002 0000000000000000")
CREATE_CONTAINER, CREATE_TTL = 19, 21


def buffer(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def _acls(acls: Acls) -> bytes:
    entries = (struct.pack(">i", acl.perms) + buffer(acl.scheme) + buffer(acl.id) for acl in acls)
    return struct.pack(">i", len(acls)) + b"".join(entries)


def _shown(path: bytes) -> bytes:
    """The root is written as a slash."""
    return path or b"/"


def _created(kind: int, change: Create) -> bytes:
    begin = buffer(_shown(change.path)) + buffer(change.data) + _acls(change.acls)
    if kind == CREATE_CONTAINER:
        return begin + struct.pack(">i", change.parent_cversion)
    if kind == CREATE_TTL:
        return begin + struct.pack(">iq", change.parent_cversion, change.ttl_ms)
    return begin + struct.pack(">?i", change.ephemeral, change.parent_cversion)


def changed(kind: int, change: Change) -> bytes:  # noqa: PLR0911 - one for each row of the table of formats
    """What stands behind the header."""
    match change:
        case Create():
            return _created(kind, change)
        case SetData(path, data, version):
            return buffer(_shown(path)) + buffer(data) + struct.pack(">i", version)
        case SetAcl(path, acls, version):
            return buffer(_shown(path)) + _acls(acls) + struct.pack(">i", version)
        case Delete(path):
            return buffer(_shown(path))
        case CheckVersion(path, version):
            return buffer(_shown(path)) + struct.pack(">i", version)
        case FailedTxn(number) | CreateSession(number):
            return struct.pack(">i", number)
        case CloseSession(paths):
            if paths is None:
                return b""
            return struct.pack(">i", len(paths)) + b"".join(buffer(_shown(path)) for path in paths)
        case Multi(parts):
            written = (struct.pack(">i", part.kind) + buffer(changed(part.kind, part.change)) for part in parts)
            return struct.pack(">i", len(parts)) + b"".join(written)


def body(transaction: Transaction) -> bytes:
    header = struct.pack(
        ">qiqqi", transaction.session, transaction.cxid, transaction.zxid, transaction.time_ms, transaction.kind
    )
    digest = b"" if transaction.digest is None else struct.pack(">iQ", 2, transaction.digest)
    return header + changed(transaction.kind, transaction.change) + digest


def record(body_bytes: bytes) -> bytes:
    return struct.pack(">qi", zlib.adler32(body_bytes), len(body_bytes)) + body_bytes + b"B"


def set_data(zxid: int, data: bytes = b"x", *, time_ms: int = 1_700_000_000_000, path: bytes = b"/a") -> bytes:
    """A record that sets data, as servers before 3.6 write it."""
    return record(body(Transaction(7, 3, zxid, time_ms, 5, SetData(path, data, 1), None)))


def log_of(records: Iterable[bytes], padding: int = 0) -> bytes:
    return LOG_HEADER + b"".join(records) + bytes(padding)
