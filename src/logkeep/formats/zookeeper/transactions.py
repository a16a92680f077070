"""What one transaction changes: the body of a log record, decoded.

`decode` takes the body as it lies in the log, header and digest included. Changes are tuples of the fields in their
order in the file; a change of a multi has no header of its own. A multi with one failed part changed nothing at all,
though its other parts keep their types: `Multi.applied` says so, and nothing else should be asked.
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.jute import JuteReader

HEADER: Final = struct.Struct(">qiqqi")
"""session, cxid, zxid, time in ms, kind."""
DIGEST_BYTES: Final = 12
DIGEST_VERSION: Final = 2
NO_CVERSION: Final = -1


class Kind(IntEnum):
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


class Create(NamedTuple):
    """Also create2, containers (`container`) and nodes with a time to live (`ttl_ms` is not None)."""

    path: bytes
    data: bytes | None
    acls: Acls
    ephemeral: bool
    parent_cversion: int
    """-1: one more than the parent has (logs of 3.3 and older)."""
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


class Check(NamedTuple):
    path: bytes
    version: int


class Failed(NamedTuple):
    code: int


class CreateSession(NamedTuple):
    timeout_ms: int


class CloseSession(NamedTuple):
    """`paths`: ephemerals that went with it; None where the version does not write them."""

    paths: tuple[bytes, ...] | None


Simple = Create | Delete | SetData | SetAcl | Check | Failed


class Part(NamedTuple):
    kind: int
    change: Simple


class Multi(NamedTuple):
    parts: tuple[Part, ...]

    @property
    def applied(self) -> bool:
        return all(part.kind != Kind.ERROR for part in self.parts)


Change = Simple | CreateSession | CloseSession | Multi


class Transaction(NamedTuple):
    session: int
    cxid: int
    zxid: int
    time_ms: int
    kind: int
    change: Change
    digest: int | None
    """Of the whole tree after it, as the server saw it; unsigned. None where none was written."""


def decode(body: bytes) -> Transaction:
    """Raises Damaged for what is no transaction of any version, however its checksum looks."""
    if len(body) < HEADER.size:
        raise Damaged(f"a transaction of {len(body)} bytes")
    session, cxid, zxid, time_ms, kind = HEADER.unpack_from(body)
    reader = JuteReader(body, HEADER.size)
    change = _close_session(reader) if kind == Kind.CLOSE_SESSION else _change(reader, kind, 0)
    return Transaction(session, cxid, zxid, time_ms, kind, change, _digest(reader))


def _digest(reader: JuteReader) -> int | None:
    if reader.left == 0:
        return None
    if reader.left != DIGEST_BYTES:
        raise Damaged(f"{reader.left} bytes are left behind a transaction")
    version = reader.int_()
    digest = reader.long()
    return digest & 0xFFFF_FFFF_FFFF_FFFF if version == DIGEST_VERSION else None


def _close_session(reader: JuteReader) -> CloseSession:
    """Versions before 3.6 write nothing, later ones the paths; a digest may follow either. Their lengths differ."""
    if reader.left in (0, DIGEST_BYTES):
        return CloseSession(None)
    return CloseSession(tuple(_path(reader) for _ in range(reader.count(4))))


def _change(reader: JuteReader, kind: int, depth: int) -> Change:
    if kind in (Kind.CREATE, Kind.CREATE2):
        return _create(reader)
    if kind in (Kind.SET_DATA, Kind.RECONFIG):
        return SetData(_path(reader), reader.buffer(), reader.int_())
    if kind in (Kind.DELETE, Kind.DELETE_CONTAINER):
        return Delete(_path(reader))
    if kind == Kind.ERROR:
        return Failed(reader.int_())
    if depth == 0 and kind in (Kind.MULTI, Kind.CREATE_SESSION):
        return _multi(reader) if kind == Kind.MULTI else CreateSession(reader.int_())
    return _rare(reader, kind)


def _rare(reader: JuteReader, kind: int) -> Change:
    if kind == Kind.SET_ACL:
        return SetAcl(_path(reader), acls(reader), reader.int_())
    if kind == Kind.CHECK:
        return Check(_path(reader), reader.int_())
    if kind in (Kind.CREATE_CONTAINER, Kind.CREATE_TTL):
        path, data, allowed, cversion = _path(reader), reader.buffer(), acls(reader), reader.int_()
        if kind == Kind.CREATE_CONTAINER:
            return Create(path, data, allowed, ephemeral=False, parent_cversion=cversion, container=True)
        return Create(path, data, allowed, ephemeral=False, parent_cversion=cversion, ttl_ms=reader.long())
    raise Damaged(f"a transaction of the unknown kind {kind}")


def _create(reader: JuteReader) -> Create:
    path, data, allowed, ephemeral = _path(reader), reader.buffer(), acls(reader), reader.bool_()
    old = reader.left in (0, DIGEST_BYTES)
    return Create(path, data, allowed, ephemeral, NO_CVERSION if old else reader.int_())


def _multi(reader: JuteReader) -> Multi:
    parts = []
    for _ in range(reader.count(8)):
        kind, record = reader.int_(), reader.buffer()
        inner = JuteReader(record or b"")
        change = _change(inner, kind, 1)
        if inner.left:
            raise Damaged(f"{inner.left} bytes are left behind a part of a multi")
        assert not isinstance(change, CreateSession | CloseSession | Multi)  # noqa: S101 - depth 1 makes none
        parts.append(Part(kind, change))
    return Multi(tuple(parts))


def _path(reader: JuteReader) -> bytes:
    path = reader.buffer()
    if path is None:
        raise Damaged("a path that is null")
    return b"" if path == b"/" else path


def acls(reader: JuteReader) -> Acls:
    return tuple(Acl(reader.int_(), reader.buffer() or b"", reader.buffer() or b"") for _ in range(reader.count(12)))
