"""Encoding of requests that change nodes, and decoding of the answer to a multi. Pure.

kazoo supports neither containers nor nodes with a time to live nor data that is null. Servers accept no ACL change
within a multi, so `set_acl` is a request of its own.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from logkeep.formats.zookeeper.jute import JuteReader, packed_buffer, packed_int, packed_long
from logkeep.formats.zookeeper.transactions import Acls, TransactionType

_PART: Final = struct.Struct(">i?i")
_END: Final = _PART.pack(-1, True, -1)
_REQUEST_HEADER_BYTES: Final = 8
MULTI_BYTES: Final = _REQUEST_HEADER_BYTES + len(_END)
"""Of a multi without parts, with the number and kind that precede every request."""
_CONTAINER_FLAG, _TTL_FLAG = 4, 5


class MultiRequest(NamedTuple):
    kind: int
    payload: bytes

    @property
    def part_bytes(self) -> int:
        """Bytes that it adds to a multi."""
        return _PART.size + len(self.payload)

    @property
    def frame_bytes(self) -> int:
        """Bytes of the request alone, which a server compares with jute.maxbuffer."""
        return _REQUEST_HEADER_BYTES + len(self.payload)

    def __repr__(self) -> str:
        return f"Request(kind={self.kind}, {len(self.payload)} bytes)"


def create(path: bytes, data: bytes | None, acls: Acls) -> MultiRequest:
    return MultiRequest(TransactionType.CREATE, _created(path, data, acls, 0))


def create_container(path: bytes, data: bytes | None, acls: Acls) -> MultiRequest:
    return MultiRequest(TransactionType.CREATE_CONTAINER, _created(path, data, acls, _CONTAINER_FLAG))


def create_with_ttl(path: bytes, data: bytes | None, acls: Acls, ttl_ms: int) -> MultiRequest:
    return MultiRequest(TransactionType.CREATE_TTL, _created(path, data, acls, _TTL_FLAG) + packed_long(ttl_ms))


def set_data(path: bytes, data: bytes | None, version: int) -> MultiRequest:
    return MultiRequest(TransactionType.SET_DATA, _path(path) + packed_buffer(data) + packed_int(version))


def delete(path: bytes, version: int) -> MultiRequest:
    return MultiRequest(TransactionType.DELETE, _path(path) + packed_int(version))


def set_acl(path: bytes, acls: Acls, version: int) -> MultiRequest:
    return MultiRequest(TransactionType.SET_ACL, _path(path) + _acls(acls) + packed_int(version))


def multi(parts: Sequence[MultiRequest]) -> MultiRequest:
    """All of them or none."""
    pieces = [_PART.pack(part.kind, False, -1) + part.payload for part in parts]
    return MultiRequest(TransactionType.MULTI, b"".join(pieces) + _END)


def errors_of_multi(answer: bytes) -> list[int]:
    """Empty if all parts were applied; else a code for every part: 0 for those before the failed one, which were
    undone, and -2 for those after it. Raises Damaged."""
    reader, codes = JuteReader(answer), list[int]()
    while True:
        kind, done, _ = reader.int_(), reader.bool_(), reader.int_()
        if done or kind != TransactionType.ERROR:
            return codes
        codes.append(reader.int_())


def _created(path: bytes, data: bytes | None, acls: Acls, flags: int) -> bytes:
    return _path(path) + packed_buffer(data) + _acls(acls) + packed_int(flags)


def _path(path: bytes) -> bytes:
    return packed_buffer(path or b"/")


def _acls(acls: Acls) -> bytes:
    each = (packed_int(acl.perms) + packed_buffer(acl.scheme) + packed_buffer(acl.id) for acl in acls)
    return packed_int(len(acls)) + b"".join(each)
