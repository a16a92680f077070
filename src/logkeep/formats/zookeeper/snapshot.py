"""Reads snapshots: sessions, ACLs, nodes, and the Adler-32 checksums at the end.

`SnapshotReader` streams: memory is bounded by the largest node. Call `sessions()`, `acls()`, `nodes()`, then
`ending()`. Every step raises Damaged if the bytes are not a snapshot; only `ending` checks the checksums.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, NamedTuple

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.jute import JuteReader
from logkeep.formats.zookeeper.transactions import DIGEST_VERSION, Acls, acls

MAGIC: Final = b"ZKSN"
VERSION: Final = 2
DBID: Final = -1
HEADER: Final = struct.Struct(">4siq")
STAT: Final = struct.Struct(">qqqqiiiqq")
"""czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeral owner, pzxid."""
CHECKSUM_END: Final = b"\0\0\0\1/"
CHECKSUM: Final = struct.Struct(">q5s")
OPEN_ACL_ID: Final = -1
"""Of a node with all permissions for everyone; it is in no map."""
_LAST_BLOCK: Final = 8 + CHECKSUM.size
_CHUNK: Final = 1 << 20
_INT: Final = struct.Struct(">i")
_ACL_AND_STAT: Final = struct.Struct(">qqqqqiiiqq")


class NodeRow(NamedTuple):
    """A node as in the file."""

    path: bytes
    data: bytes | None
    acl_id: int
    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    owner: int
    pzxid: int


@dataclass(frozen=True)
class SnapshotTail:
    """What follows the nodes. `digest_zxid` is 0 and `digest` None if none was recorded."""

    size_bytes: int
    checksums: int
    """1: as 3.4 and 3.5 write; 2: with a digest (3.6); 3: with the last processed zxid too (3.9)."""
    digest_zxid: int = 0
    digest: int | None = None
    last_processed: int | None = None

    def fuzzy_end(self, name_zxid: int, largest_in_nodes: int) -> int | None:
        """The last transaction that it may contain in part; None if only a lower bound is known.

        That is so before 3.6, with digests turned off, and in what a learner writes after it was synced.
        """
        if self.digest_zxid:
            return max(self.digest_zxid, self.last_processed or 0, name_zxid, largest_in_nodes)
        return None


class SnapshotReader:
    """`source` gives the unpacked bytes."""

    def __init__(self, source: BinaryIO) -> None:
        self._source, self._buffer, self._at = source, b"", 0
        self._adler, self._summed = zlib.adler32(b""), 0
        """`_summed`: how much of the buffer the checksum covers already."""
        self._before = 0
        magic, version, _ = HEADER.unpack(self._take(HEADER.size))
        if magic != MAGIC or version != VERSION:
            raise Damaged("not a snapshot: it does not begin with ZKSN and version 2")

    @property
    def position(self) -> int:
        return self._before + self._at

    def sessions(self) -> dict[int, int]:
        """Sessions and their timeouts in ms."""
        return {self._long(): self._int() for _ in range(self._count())}

    def acls(self) -> dict[int, Acls]:
        """Lists of ACLs by the ids that nodes refer to."""
        return {self._long(): self._acl_list() for _ in range(self._count())}

    def nodes(self) -> Iterator[NodeRow]:
        """All nodes, parents first; the root has the path ``b""``."""
        stat = _ACL_AND_STAT
        while (path := self._bytes()) != b"/":
            if path is None:
                raise Damaged("a node without a path", subject=f"byte {self.position}")
            data = self._bytes()
            self._need(stat.size)
            row = stat.unpack_from(self._buffer, self._at)
            self._at += stat.size
            yield NodeRow(path, data, *row)

    def ending(self) -> SnapshotTail:
        """The checksums and what is between them. Bytes after the last one are damage too.

        3.9 with digests turned off writes the last zxid right after the first checksum: the remaining size decides.
        """
        self._check_checksum()
        checksums, digest_zxid, digest, last = 1, 0, None, None
        left = self._left(_LAST_BLOCK + 1)
        if left and left != _LAST_BLOCK:
            digest_zxid, digest = self._digest()
            checksums += 1
            left = self._left(_LAST_BLOCK + 1)
        if left:
            last = self._long()
            self._check_checksum()
            checksums += 1
        if self._left(1):
            raise Damaged("there are bytes after the last checksum", subject=f"byte {self.position}")
        return SnapshotTail(self.position, checksums, digest_zxid, digest, last)

    def _digest(self) -> tuple[int, int | None]:
        """Its zxid and value; the first version was text, which is no longer compared."""
        zxid, version = self._long(), self._int()
        stored = self._long() if version >= DIGEST_VERSION else self._bytes()
        self._check_checksum()
        if not zxid or version != DIGEST_VERSION or not isinstance(stored, int):
            return zxid, None
        return zxid, stored & 0xFFFF_FFFF_FFFF_FFFF

    def _check_checksum(self) -> None:
        self._sum()
        expected = self._adler
        stored, end = CHECKSUM.unpack(self._take(CHECKSUM.size))
        if stored != expected or end != CHECKSUM_END:
            where = f"byte {self.position - CHECKSUM.size}"
            raise Damaged("a checksum does not match the bytes before it", subject=where)

    def _sum(self) -> None:
        self._adler = zlib.adler32(memoryview(self._buffer)[self._summed : self._at], self._adler)
        self._summed = self._at

    def _need(self, size: int) -> None:
        """Have `size` bytes in the buffer. Bytes before them are added to the checksum and dropped."""
        if len(self._buffer) - self._at >= size:
            return
        self._sum()
        pieces, have = [self._buffer[self._at :]], len(self._buffer) - self._at
        while have < size and (more := self._source.read(_CHUNK)):
            pieces.append(more)
            have += len(more)
        self._before += self._at
        # Also where it is too short: what is left shows that the file does not end here.
        self._buffer, self._at, self._summed = b"".join(pieces), 0, 0
        if have < size:
            raise Damaged("the file ends too early", subject=f"byte {self._before + have}")

    def _take(self, size: int) -> bytes:
        self._need(size)
        taken = self._buffer[self._at : self._at + size]
        self._at += size
        return taken

    def _int(self) -> int:
        self._need(4)
        (value,) = _INT.unpack_from(self._buffer, self._at)
        self._at += 4
        return int(value)

    def _long(self) -> int:
        return int.from_bytes(self._take(8), signed=True)

    def _count(self) -> int:
        count = self._int()
        if count < 0:
            raise Damaged(f"a list of {count} entries", subject=f"byte {self.position}")
        return count

    def _bytes(self) -> bytes | None:
        size = self._int()
        if size < 0:
            if size != -1:
                raise Damaged(f"a length of {size} bytes", subject=f"byte {self.position}")
            return None
        return self._take(size)

    def _acl_list(self) -> Acls:
        """Lists are short: read entry by entry, so that the buffer stays small."""
        count = max(self._int(), 0)
        found = b"".join(self._acl_bytes() for _ in range(count))
        return acls(JuteReader(_INT.pack(count) + found))

    def _acl_bytes(self) -> bytes:
        pieces = [self._take(4)]
        for _ in range(2):
            size = self._int()
            pieces.append(_INT.pack(size))
            pieces.append(self._take(max(size, 0)))
        return b"".join(pieces)

    def _left(self, most: int) -> int:
        """How many bytes are left, at most `most`."""
        try:
            self._need(most)
        except Damaged:
            return len(self._buffer) - self._at
        return most
