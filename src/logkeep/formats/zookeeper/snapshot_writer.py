"""Snapshots, written: one that every version from 3.4 on loads, and that says exactly where it stands.

`exact_snapshot` yields the bytes piece by piece; the digest block claims that the tree is the one after `zxid`.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping

from logkeep.formats.zookeeper.jute import packed_buffer, packed_int, packed_long
from logkeep.formats.zookeeper.snapshot import DBID, HEADER, MAGIC, SEAL, SEAL_END, STAT, VERSION, NodeRow
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
    """`nodes`: parents first, the root with the path ``b""``. Its file is to be named after `zxid`.

    Without a digest it ends as 3.5 would have ended it, which every server loads; with one, not a 3.9 whose digests
    are turned off.
    """
    adler, piece = zlib.adler32(b""), bytearray()
    for part in _unsealed(sessions, acls, nodes):
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
        seal = SEAL.pack(adler, SEAL_END)
        adler = zlib.adler32(seal, adler)
        yield bytes(piece) + block + seal
        piece.clear()


def _unsealed(sessions: Mapping[int, int], acls: Mapping[int, Acls], nodes: Iterable[NodeRow]) -> Iterator[bytes]:
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
