"""The tree of znodes, to which transactions are applied exactly as a server applies them.

The digest of the whole tree is kept up to date, so that after every transaction it can be compared with the one that
the server wrote: if all digests match, the replay gives the server's own tree. Transactions that a fuzzy snapshot
already contains may be applied again; they then fail in part, as they do in the server, and that is no error.
"""

import struct
import zlib
from collections.abc import Container, Iterable, Iterator
from typing import Final

from logkeep.errors import Damaged
from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.snapshot import OPEN_ACL_ID, NodeRow
from logkeep.formats.zookeeper.transactions import (
    NO_CVERSION,
    OPEN_ACL,
    Acl,
    Acls,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    Multi,
    SetAcl,
    SetData,
    Simple,
    Transaction,
)
from logkeep.model.plurals import plural
from logkeep.zookeeper.model.paths import CONFIG

READ_ONLY_ACL: Final[Acls] = (Acl(1, b"world", b"anyone"),)
UNRESOLVED_ACL: Final[Acls] = (Acl(0, b"", b"unresolved"),)
"""In place of a list that is not known yet. Compare by identity."""
CONTAINER_OWNER: Final = -(1 << 63)
TTL_MARK: Final = -(1 << 56)
"""Highest byte of a node's owner, all ones: the node has a time to live, which is in the lower bytes."""
_COUNTED: Final = struct.Struct(">qqqqqiiiq")
_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_SYSTEM: Final = b"/zookeeper/"
_CHARSETS: Final = ("utf-8", "ascii", "latin-1", "gb18030", "gbk", "cp1252")
"""A Java server up to Java 17 may have encoded paths in any of these for its digest: it uses its locale's."""


class Node:
    """One znode. `summed` is the CRC of its path and data, from which its digest is made in one step."""

    __slots__ = (
        "acls", "aversion", "ctime", "cversion", "czxid", "data", "digest", "mtime", "mzxid", "owner", "pzxid",
        "summed", "version",
    )  # fmt: skip

    def __init__(self, data: bytes | None, acls: Acls, zxid: int, time_ms: int, owner: int) -> None:
        self.data, self.acls, self.owner = data, acls, owner
        self.czxid = self.mzxid = self.pzxid = zxid
        self.ctime = self.mtime = time_ms
        self.version = self.cversion = self.aversion = 0
        self.summed = self.digest = 0


class Tree:
    """`zxid`: the last transaction that was applied. Paths are bytes, the root is ``b""``."""

    def __init__(self) -> None:
        self.nodes: dict[bytes, Node] = {}
        self.sessions: dict[int, int] = {}
        self.ephemerals: dict[int, set[bytes]] = {}
        self.digest = 0
        self.zxid = 0
        self.charset = _CHARSETS[0]

    def agrees(self, digest: int) -> bool:
        """Whether this is the digest of the tree as a server counts it. If paths are not ASCII, other charsets are
        tried too, and the tree keeps the one that matches."""
        if digest == self.digest:
            return True
        wide = [path for path in self.nodes if not path.isascii()]
        if not wide:
            return False
        before = self.charset
        for charset in (*_CHARSETS, before):
            self._recount(wide, charset)
            if digest == self.digest:
                return True
        return False

    def _recount(self, paths: Iterable[bytes], charset: str) -> None:
        self.charset = charset
        for path in paths:
            node = self.nodes[path]
            node.summed = self._summed(path, node.data)
            self._count(path, node)

    def _summed(self, path: bytes, data: bytes | None) -> int:
        if not path.isascii() and self.charset != "utf-8":
            path = path.decode(errors="replace").encode(self.charset, errors="replace")
        return zlib.crc32(data or b"", zlib.crc32(path))

    def add(self, path: bytes, node: Node) -> None:
        """Add a node of a snapshot unchanged."""
        self.nodes[path] = node
        node.summed = self._summed(path, node.data)
        self._count(path, node)
        if node.owner and is_ephemeral(node.owner, self.sessions):
            self.ephemerals.setdefault(node.owner, set()).add(path)

    def apply(self, transaction: Transaction) -> None:
        change = transaction.change
        if type(change) is SetData:
            self._set_data(change, transaction)
        elif isinstance(change, Multi):
            if change.applied:
                for _, part in change.parts:
                    self._change(part, transaction)
        elif isinstance(change, CreateSession):
            self.sessions[transaction.session] = change.timeout_ms
        elif isinstance(change, CloseSession):
            self._close(transaction.session, change.paths or (), transaction.zxid)
        else:
            self._change(change, transaction)
        self.zxid = transaction.zxid

    def _change(self, change: Simple, transaction: Transaction) -> None:
        if isinstance(change, Create):
            self._create(change, transaction)
        elif isinstance(change, SetData):
            self._set_data(change, transaction)
        elif isinstance(change, Delete):
            self._delete(change.path, transaction.zxid)
        elif isinstance(change, SetAcl) and (node := self.nodes.get(change.path)) is not None:
            node.acls, node.aversion = change.acls, change.version
            self._count(change.path, node)

    def _set_data(self, change: SetData, transaction: Transaction) -> None:
        path, data, version = change
        node = self.nodes.get(path)
        if node is None:
            return
        node.data, node.version = data, version
        node.mzxid, node.mtime = transaction.zxid, transaction.time_ms
        node.summed = self._summed(path, data)
        self._count(path, node)

    def _create(self, change: Create, transaction: Transaction) -> None:
        path = change.path
        above = path[: path.rindex(b"/")] if b"/" in path else b""
        parent = self.nodes.get(above)
        if parent is None:
            return
        present = self.nodes.get(path)
        if present is not None:  # the fuzzy snapshot already contains it
            present.acls = change.acls
            if change.parent_cversion > parent.cversion:
                self._set_cversion(above, parent, change.parent_cversion, transaction.zxid)
            return
        cversion = parent.cversion + 1 if change.parent_cversion == NO_CVERSION else change.parent_cversion
        if cversion > parent.cversion or transaction.digest is None:  # versions before 3.6 lower it too
            self._set_cversion(above, parent, cversion, transaction.zxid)
        node = Node(change.data, change.acls, transaction.zxid, transaction.time_ms, _owner(change, transaction))
        self.add(path, node)

    def _set_cversion(self, path: bytes, parent: Node, cversion: int, zxid: int) -> None:
        parent.cversion, parent.pzxid = cversion, zxid
        self._count(path, parent)

    def _delete(self, path: bytes, zxid: int) -> None:
        above = path[: path.rindex(b"/")] if b"/" in path else b""
        parent = self.nodes.get(above)
        if parent is not None and zxid > parent.pzxid:
            parent.pzxid = zxid
            self._count(above, parent)
        node = self.nodes.pop(path, None)
        if node is None:
            return
        self.digest = (self.digest - node.digest) & _MASK
        if node.owner and (of_session := self.ephemerals.get(node.owner)) is not None:
            of_session.discard(path)

    def _close(self, session: int, paths: Iterable[bytes], zxid: int) -> None:
        for path in paths:
            self._delete(path, zxid)
        for path in self.ephemerals.pop(session, set()):
            self._delete(path, zxid)
        self.sessions.pop(session, None)

    def _count(self, path: bytes, node: Node) -> None:
        """Update what a node contributes to the digest of the tree."""
        if path.startswith(_SYSTEM):
            return
        counted = zlib.crc32(
            _COUNTED.pack(
                node.czxid, node.mzxid, node.pzxid, node.ctime, node.mtime,
                node.version, node.cversion, node.aversion, node.owner,
            ),
            node.summed,
        )  # fmt: skip
        self.digest = (self.digest + counted - node.digest) & _MASK
        node.digest = counted


def _owner(change: Create, transaction: Transaction) -> int:
    if change.container:
        return CONTAINER_OWNER
    if change.ttl_ms is not None:
        return TTL_MARK | change.ttl_ms
    return transaction.session if change.ephemeral else 0


def is_ephemeral(owner: int, sessions: Container[int] = ()) -> bool:
    """Whether a session owns the node: containers and nodes with a time to live have special owners.

    Session ids given by server 255 look like a time to live, so a known session id always counts as one.
    """
    return owner in sessions or (owner not in (0, CONTAINER_OWNER) and owner >> 56 != -1)


def new_tree(*, with_config: bool) -> Tree:
    """The tree of a server that starts without snapshot and log; `/zookeeper/config` exists since 3.5."""
    tree = Tree()
    system = [b"", b"/zookeeper", b"/zookeeper/quota"]
    for path in system:
        tree.add(path, Node(b"", OPEN_ACL, 0, 0, 0))
    if with_config:
        config = Node(b"", READ_ONLY_ACL, 0, 0, 0)
        config.aversion = -1
        tree.add(CONFIG, config)
    return tree


def tree_of(sessions: dict[int, int], acls: dict[int, Acls], rows: Iterable[NodeRow]) -> Tree:
    """The tree of a snapshot. It is not exact for any zxid until it is replayed to its fuzzy end.

    A node may refer to a list of ACLs that was created while the snapshot was written and is missing in it; the
    transaction that created it is then in the log. Raises Damaged for a node that comes before its parent.
    """
    tree, known = Tree(), acls | {OPEN_ACL_ID: OPEN_ACL}
    tree.sessions = dict(sessions)
    for row in rows:
        if row.path and row.path[: row.path.rfind(b"/")] not in tree.nodes:
            raise Damaged("a node comes before its parent", subject=shown(row.path))
        node = Node(row.data, known.get(row.acl_id, UNRESOLVED_ACL), row.czxid, row.ctime, row.owner)
        node.mzxid, node.pzxid, node.mtime = row.mzxid, row.pzxid, row.mtime
        node.version, node.cversion, node.aversion = row.version, row.cversion, row.aversion
        tree.add(row.path, node)
    return tree


def unresolved(tree: Tree) -> list[bytes]:
    """Nodes whose ACLs are not known."""
    return [path for path, node in tree.nodes.items() if node.acls is UNRESOLVED_ACL]


def require_acls(tree: Tree) -> None:
    """Raises Damaged if ACLs are still unknown after the replay to the fuzzy end."""
    if left := unresolved(tree):
        raise Damaged(f"the ACLs of {plural(len(left), 'node')} are not in the backup", subject=shown(left[0]))


def rows_of(tree: Tree) -> tuple[dict[int, Acls], Iterator[NodeRow]]:
    """The tree as rows of a snapshot: lists of ACLs under new ids, and the nodes, parents first."""
    require_acls(tree)
    ids: dict[Acls, int] = {}
    for node in tree.nodes.values():
        if node.acls != OPEN_ACL and node.acls not in ids:
            ids[node.acls] = len(ids) + 1
    return {number: acls for acls, number in ids.items()}, _rows(tree, ids | {OPEN_ACL: OPEN_ACL_ID})


def _rows(tree: Tree, ids: dict[Acls, int]) -> Iterator[NodeRow]:
    for path in sorted(tree.nodes, key=lambda path: path.replace(b"/", b"\0")):
        node = tree.nodes[path]
        yield NodeRow(
            path, node.data, ids[node.acls], node.czxid, node.mzxid, node.ctime, node.mtime,
            node.version, node.cversion, node.aversion, node.owner, node.pzxid,
        )  # fmt: skip
