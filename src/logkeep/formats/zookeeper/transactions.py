"""Decodes transactions: the bodies of log records.

`decode` takes a body with header and digest. Changes are tuples of the fields in their order in the file; a change of a
multi has no header of its own. A multi with a failed part changed nothing at all, though its other parts keep their
types: use `Multi.applied`.
"""

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.zookeeper.jute import NULL, JuteReader

HEADER: Final = struct.Struct(">qiqqi")
"""session, cxid, zxid, time in ms, kind."""
_DIGEST: Final = struct.Struct(">iQ")
DIGEST_BYTES: Final = _DIGEST.size
DIGEST_VERSION: Final = 2
NO_CVERSION: Final = -1
_CODE_BYTES: Final = 4


class TransactionType(IntEnum):
    CREATE = 1
    DELETE = 2
    SET_DATA = 5
    SET_ACL = 7
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    RECONFIG = 16
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    ERROR = -1
    CREATE_SESSION = -10
    CLOSE_SESSION = -11


class Acl(NamedTuple):
    perms: int
    scheme: bytes
    id: bytes


Acls = tuple[Acl, ...]
OPEN_ACL: Final[Acls] = (Acl(31, b"world", b"anyone"),)
_OPEN_ACL_BYTES: Final = struct.pack(">iii5si6s", 1, 31, 5, b"world", 6, b"anyone")
_ONE: Final = struct.pack(">i", 1)


class Create(NamedTuple):
    """Also create2, containers (`container`) and nodes with a time to live (`ttl_ms` is not None)."""

    path: bytes
    data: bytes | None
    acls: Acls
    ephemeral: bool
    parent_cversion: int
    """-1: one more than the parent's (logs of 3.3 and older)."""
    container: bool = False
    ttl_ms: int | None = None


class Delete(NamedTuple):
    path: bytes


class SetData(NamedTuple):
    """Also a reconfiguration, which sets the data of /zookeeper/config."""

    path: bytes
    data: bytes | None
    version: int


class SetAcl(NamedTuple):
    path: bytes
    acls: Acls
    version: int


class CheckVersion(NamedTuple):
    path: bytes
    version: int


class FailedTxn(NamedTuple):
    code: int


class CreateSession(NamedTuple):
    timeout_ms: int


class CloseSession(NamedTuple):
    """`paths`: ephemeral nodes deleted with it; None if the version does not write them."""

    paths: tuple[bytes, ...] | None


Simple = Create | Delete | SetData | SetAcl | CheckVersion | FailedTxn


class MultiPart(NamedTuple):
    kind: int
    change: Simple


class Multi(NamedTuple):
    parts: tuple[MultiPart, ...]

    @property
    def applied(self) -> bool:
        return all(part.kind != TransactionType.ERROR for part in self.parts)


Change = Simple | CreateSession | CloseSession | Multi
ChangeT = TypeVar("ChangeT")


class Transaction(NamedTuple):
    session: int
    cxid: int
    zxid: int
    time_ms: int
    kind: int
    change: Change
    digest: int | None
    """Of the whole tree after it, as the server computed it; unsigned. None if none was written."""


def decode(body: bytes) -> Transaction:
    """Raises Damaged if the bytes are not a transaction, and FormatTooNew for an unknown kind."""
    if len(body) < HEADER.size:
        raise Damaged(f"a transaction of {len(body)} bytes")
    session, cxid, zxid, time_ms, kind = HEADER.unpack_from(body)
    reader = JuteReader(body, HEADER.size)
    change = _decoder(_ALONE, kind)(reader)
    rest = reader.rest()
    return Transaction(session, cxid, zxid, time_ms, kind, change, _digest(rest) if rest else None)


def acls(reader: JuteReader) -> Acls:
    """Most lists allow everything to everyone: they share one tuple, which null means too."""
    if reader.skipped(_OPEN_ACL_BYTES) or reader.skipped(NULL):
        return OPEN_ACL
    return tuple(Acl(reader.int_(), reader.buffer() or b"", reader.buffer() or b"") for _ in range(reader.count(12)))


def _digest(rest: bytes) -> int | None:
    if len(rest) != DIGEST_BYTES:
        raise Damaged(f"{len(rest)} bytes are left after a transaction")
    version, digest = _DIGEST.unpack(rest)
    return digest if version == DIGEST_VERSION else None


def _path(reader: JuteReader) -> bytes:
    path = reader.buffer()
    if path is None:
        raise Damaged("a path that is null")
    return b"" if path == b"/" else path


def _create(reader: JuteReader) -> Create:
    path, data, allowed, ephemeral = _path(reader), reader.buffer(), acls(reader), reader.bool_()
    old = reader.left in (0, DIGEST_BYTES)
    return Create(path, data, allowed, ephemeral, NO_CVERSION if old else reader.int_())


def _create_container(reader: JuteReader) -> Create:
    path, data, allowed, cversion = _path(reader), reader.buffer(), acls(reader), reader.int_()
    return Create(path, data, allowed, ephemeral=False, parent_cversion=cversion, container=True)


def _create_with_ttl(reader: JuteReader) -> Create:
    path, data, allowed, cversion = _path(reader), reader.buffer(), acls(reader), reader.int_()
    return Create(path, data, allowed, ephemeral=False, parent_cversion=cversion, ttl_ms=reader.long())


def _delete(reader: JuteReader) -> Delete:
    return Delete(_path(reader))


def _set_data(reader: JuteReader) -> SetData:
    return SetData(_path(reader), reader.buffer(), reader.int_())


def _set_acl(reader: JuteReader) -> SetAcl:
    return SetAcl(_path(reader), acls(reader), reader.int_())


def _check(reader: JuteReader) -> CheckVersion:
    return CheckVersion(_path(reader), reader.int_())


def _failed(reader: JuteReader) -> FailedTxn:
    return FailedTxn(reader.int_())


def _create_session(reader: JuteReader) -> CreateSession:
    return CreateSession(reader.int_())


def _close_session(reader: JuteReader) -> CloseSession:
    """Versions before 3.6 write nothing, later ones the paths; a digest may follow either.

    12 bytes are a digest, or one path of four bytes: the first number is a version or the number of paths.
    """
    if reader.left == 0 or (reader.left == DIGEST_BYTES and not reader.comes(_ONE)):
        return CloseSession(None)
    return CloseSession(tuple(_path(reader) for _ in range(reader.count(4))))


def _multi(reader: JuteReader) -> Multi:
    parts = []
    for _ in range(reader.count(8)):
        kind, record = reader.int_(), reader.buffer()
        parts.append(MultiPart(kind, _part(kind, record or b"")))
    return Multi(tuple(parts))


def _part(kind: int, record: bytes) -> Simple:
    """Followers and observers may mark a part as failed before they write it, without changing its record."""
    if kind == TransactionType.ERROR and len(record) != _CODE_BYTES:
        return FailedTxn(0)
    inner = JuteReader(record)
    change = _decoder(_IN_MULTI, kind)(inner)
    if inner.left:
        raise Damaged(f"{inner.left} bytes are left after a part of a multi")
    return change


_IN_MULTI: Final[dict[int, Callable[[JuteReader], Simple]]] = {
    TransactionType.CREATE: _create,
    TransactionType.CREATE2: _create,
    TransactionType.CREATE_CONTAINER: _create_container,
    TransactionType.CREATE_TTL: _create_with_ttl,
    TransactionType.DELETE: _delete,
    TransactionType.DELETE_CONTAINER: _delete,
    TransactionType.SET_DATA: _set_data,
    TransactionType.RECONFIG: _set_data,
    TransactionType.SET_ACL: _set_acl,
    TransactionType.CHECK: _check,
    TransactionType.ERROR: _failed,
}
_ALONE: Final[dict[int, Callable[[JuteReader], Change]]] = {
    **_IN_MULTI,
    TransactionType.MULTI: _multi,
    TransactionType.CREATE_SESSION: _create_session,
    TransactionType.CLOSE_SESSION: _close_session,
}


def _decoder(known: Mapping[int, Callable[[JuteReader], ChangeT]], kind: int) -> Callable[[JuteReader], ChangeT]:
    try:
        return known[kind]
    except KeyError:
        raise FormatTooNew(f"a transaction of the unknown kind {kind}") from None
