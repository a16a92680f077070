"""One pass over a snapshot file: checks its checksums and node order, and finds its hash and fuzzy end.

Memory is bounded by the largest node. Raises Damaged for anything that no server writes.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO, cast

from logkeep.errors import Damaged
from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.compression import opened
from logkeep.formats.zookeeper.names import parse_name
from logkeep.formats.zookeeper.snapshot import NodeRow, SnapshotReader

_CHUNK = 1 << 20


@dataclass(frozen=True)
class SnapshotFacts:
    size_bytes: int
    sha256: str
    """Of the file as it is stored, compressed or not."""
    nodes: int
    fuzzy_end: int | None
    digest: int | None
    digest_zxid: int


class Hashed:
    """A source whose bytes are hashed and counted while they are read."""

    def __init__(self, source: BinaryIO) -> None:
        self._source, self._hash = source, hashlib.sha256()
        self.size_bytes = 0

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._hash.update(data)
        self.size_bytes += len(data)
        return data

    def drain(self) -> None:
        while self.read(_CHUNK):
            pass

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def read_facts(source: Hashed, name: str) -> SnapshotFacts:
    """`name` says how the server compressed it. The whole source has been read when this returns."""
    parsed = parse_name(name)
    if parsed is None:
        raise Damaged("not the name of a snapshot", subject=name)
    reader = SnapshotReader(opened(cast("BinaryIO", source), parsed.packing))
    reader.sessions()
    reader.acls()
    nodes, largest = _count_nodes(reader.nodes())
    ending = reader.ending()
    source.drain()
    return SnapshotFacts(
        source.size_bytes,
        source.sha256,
        nodes,
        ending.fuzzy_end(parsed.zxid, largest),
        ending.digest,
        ending.digest_zxid,
    )


def _count_nodes(rows: Iterable[NodeRow]) -> tuple[int, int]:
    """Number of nodes, and the largest zxid in them. A server writes a node and then all below it, so every node's
    parent is the node before it or an ancestor of that. A node that was created while the snapshot was written may
    refer to an ACL list that is not in it: only a replay shows whether it stays unknown."""
    before, count, largest = None, 0, 0
    for row in rows:
        if not _in_order(before, row.path):
            raise Damaged("a node comes before its parent", subject=shown(row.path))
        before, count, largest = row.path, count + 1, max(largest, row.czxid, row.mzxid, row.pzxid)
    return count, largest


def _in_order(before: bytes | None, path: bytes) -> bool:
    if before is None or path == b"":
        return before is None and path == b""
    parent = path[: path.rindex(b"/")] if b"/" in path else b""
    return before == parent or before.startswith(parent + b"/")
