"""Writes snapshots that every ZooKeeper version from 3.4 on loads.

`exact_snapshot` yields the bytes in pieces; the digest block states that the tree is the one after `zxid`.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping

from logkeep.formats.zookeeper.jute import packed_buffer, packed_int, packed_long
from logkeep.formats.zookeeper.snapshot import CHECKSUM, CHECKSUM_END, DBID, HEADER, MAGIC, STAT, VERSION, NodeRow
from logkeep.formats.zookeeper.transactions import DIGEST_VERSION, Acls

_PIECE_BYTES = 1 << 20


def exact_snapshot(
    sessions: Mapping[int, int],
    acls: Mapping[int, Acls],
    nodes: Iterable[NodeRow],
    *,
    zxid: int,
    digest: int | None,
) -> Iterator[bytes]:
    """`nodes`: parents first, the root with the path ``b""``. The file must be named after `zxid`.

    Without a digest it ends as written by 3.5, which every server loads; with a digest, a 3.9 server whose digests are
    turned off does not load it.
    """
    adler, piece = zlib.adler32(b""), bytearray()
    for part in _content(sessions, acls, nodes):
        piece += part
        if len(piece) >= _PIECE_BYTES:
            adler = zlib.adler32(piece, adler)
            yield bytes(piece)
            piece.clear()
    blocks = [b""]
    if digest is not None:
        signed = digest - (1 << 64) if digest >> 63 else digest
        blocks += [packed_long(zxid) + packed_int(DIGEST_VERSION) + packed_long(signed), packed_long(zxid)]
    for block in blocks:
        adler = zlib.adler32(piece + block, adler)
        checksum = CHECKSUM.pack(adler, CHECKSUM_END)
        adler = zlib.adler32(checksum, adler)
        yield bytes(piece) + block + checksum
        piece.clear()


def _content(sessions: Mapping[int, int], acls: Mapping[int, Acls], nodes: Iterable[NodeRow]) -> Iterator[bytes]:
    yield HEADER.pack(MAGIC, VERSION, DBID)
    yield packed_int(len(sessions))
    for session, timeout_ms in sorted(sessions.items()):
        yield packed_long(session) + packed_int(timeout_ms)
    yield packed_int(len(acls))
    for number, entries in sorted(acls.items()):
        yield packed_long(number) + packed_int(len(entries))
        for each in entries:
            yield packed_int(each.perms) + packed_buffer(each.scheme) + packed_buffer(each.id)
    for node in nodes:
        yield packed_buffer(node.path) + packed_buffer(node.data) + packed_long(node.acl_id) + STAT.pack(*node[3:])
    yield packed_buffer(b"/")
