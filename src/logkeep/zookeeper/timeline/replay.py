"""Replay of a path: load its snapshot, apply its transactions one by one, compare every digest that the server wrote.

If all digests match, the result is the server's own tree. Before 3.6 there are none, and in the window of a fuzzy
snapshot none can match; the result says how many were compared, up to where they matched, and the first mismatch. If a
snapshot does not say where its window ends, the first matching digest shows it: from there on all must match.
Memory: the tree. Raises Damaged for bytes that are not a snapshot or record, or not the next transaction.
"""

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Final

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.compression import opened
from logkeep.formats.zookeeper.names import follows, hex_zxid, parse_name
from logkeep.formats.zookeeper.snapshot import SnapshotReader
from logkeep.formats.zookeeper.transactions import decode
from logkeep.formats.zookeeper.txnlog import bodies
from logkeep.zookeeper.model.archived import ArchivedSnapshot, BackupView
from logkeep.zookeeper.model.tree import Tree, new_tree, require_acls, tree_of, unresolved
from logkeep.zookeeper.model.tree_compare import content_of
from logkeep.zookeeper.timeline.holdings import Border, BorderProof
from logkeep.zookeeper.timeline.plan import RestorePath, Slice

_ZXID_AT: Final = 12
_LONG: Final = struct.Struct(">q")


@dataclass(frozen=True)
class Mismatch:
    """After `zxid` the tree is not the one that the server had."""

    zxid: int
    written: int
    replayed: int


@dataclass(frozen=True)
class ReplayedTree:
    tree: Tree
    transactions: int
    digests_compared: int
    first_mismatch: Mismatch | None
    proven_until: int | None
    """The last transaction whose digest matched, with all compared before it."""
    digests_at: dict[int, int] = field(default_factory=dict)
    """Digests of the replayed tree at the requested zxids."""
    contents_at: dict[int, int] = field(default_factory=dict)
    """The same as `tree_compare.content_of`, as long as no digest that a server wrote was compared."""
    missing_acls: int = 0
    """Nodes of the snapshot whose ACLs are missing in it: only later transactions contain them."""


def replay(view: BackupView, path: RestorePath, *, note_at: Collection[int] = ()) -> ReplayedTree:
    """`note_at`: zxids at which the digest of the tree is recorded."""
    base = path.base.snapshot
    tree = new_tree(with_config=path.with_config) if base is None else snapshot_tree(view, base)
    missing_acls = len(unresolved(tree))
    if base is not None and not base.digest_zxid:
        _finish_last(view, base, tree)
    running = _Running(tree, path, frozenset(note_at))
    for piece in path.slices:
        with view.open(piece.log) as source:
            running.apply(piece, bodies(source))
    if running.at != path.until:
        raise Damaged(f"the logs end at {hex_zxid(running.at)} instead of {hex_zxid(path.until)}")
    tree.zxid = path.until
    require_acls(tree)
    return replace(running.result(), missing_acls=missing_acls)


def snapshot_tree(view: BackupView, snapshot: ArchivedSnapshot) -> Tree:
    """All nodes of a snapshot, with its checksums compared. Not exact until its window is replayed."""
    with view.open(snapshot) as stored, unpacked(stored, snapshot.name) as plain:
        reader = SnapshotReader(plain)
        tree = tree_of(reader.sessions(), reader.acls(), reader.nodes())
        reader.ending()
    tree.zxid = snapshot.zxid
    return tree


def _finish_last(view: BackupView, snapshot: ArchivedSnapshot, tree: Tree) -> None:
    """Apply the transaction that a snapshot is named after again, if a log has it.

    Servers before 3.6 count a multi as processed when its first part is: a snapshot begun at this moment bears the
    multi's zxid and may contain only a part of it. (A server that starts from such a snapshot never gets the rest.)
    """
    for log in sorted(view.logs, key=lambda log: log.member != snapshot.member):
        if log.history == snapshot.history and log.first <= snapshot.zxid <= log.last:
            with view.open(log) as source:
                for body in bodies(source):
                    zxid = _LONG.unpack_from(body, _ZXID_AT)[0]
                    if zxid == snapshot.zxid:
                        tree.apply(decode(body))
                    if zxid >= snapshot.zxid:
                        return


def unpacked(stored: BinaryIO, name: str) -> BinaryIO:
    """The plain bytes of a snapshot: its name says how the server compressed it."""
    parsed = parse_name(name)
    if parsed is None:
        raise Damaged("not the name of a snapshot", subject=name)
    return opened(stored, parsed.packing)


def unproven(path: RestorePath, replayed: ReplayedTree) -> tuple[Border, ...]:
    """Ends of epochs that neither a majority nor the digests of the replay prove."""
    proven = replayed.proven_until
    return tuple(
        border
        for border in path.borders
        if border.proof in (BorderProof.BY_DIGEST, BorderProof.UNPROVEN) and (proven is None or border.after > proven)
    )


class _Running:
    """The state of one replay."""

    def __init__(self, tree: Tree, path: RestorePath, note_at: frozenset[int]) -> None:
        self.tree, self.at = tree, path.base.zxid
        self._settled, self._base = path.base.settled, path.base.snapshot
        self._awaited = path.base.awaits_digest
        self._borders = {border.before: border.after for border in path.borders}
        self._note_at, self._noted, self._contents = note_at, dict[int, int](), dict[int, int]()
        self._transactions = self._compared = 0
        self._proven: int | None = None
        self._mismatch: Mismatch | None = None
        self._settle()

    def apply(self, piece: Slice, records: Iterator[bytes]) -> None:
        """The one loop over transactions: local names, since it runs once per record."""
        tree, settled, first, last = self.tree, self._settled, piece.first, piece.last
        for body in records:
            zxid = _LONG.unpack_from(body, _ZXID_AT)[0]
            if zxid < first:
                continue
            if zxid > last:
                break
            if zxid != self.at + 1 and not self._may_follow(zxid):
                raise Damaged(f"{hex_zxid(zxid)} comes directly after {hex_zxid(self.at)}", subject=piece.log.name)
            transaction = decode(body)
            tree.apply(transaction)
            self.at = zxid
            self._transactions += 1
            if transaction.digest is not None and zxid >= settled:
                self._compare(zxid, transaction.digest)
            if zxid in self._note_at:
                self._note(zxid)
            if zxid == settled:
                self._settle()
        if self.at != last:
            raise Damaged(f"ends at {hex_zxid(self.at)} instead of {hex_zxid(last)}", subject=piece.log.name)

    def _may_follow(self, zxid: int) -> bool:
        return self._borders.get(self.at) == zxid and follows(self.at, zxid)

    def _settle(self) -> None:
        """Compare the digest in the snapshot, if it is of the zxid at which the window ends."""
        base = self._base
        if base is not None and base.digest is not None and self.at == base.digest_zxid == self._settled:
            self._compare(self.at, base.digest)
        if self.at in self._note_at:
            self._note(self.at)

    def _note(self, zxid: int) -> None:
        self._noted[zxid] = self.tree.digest
        if not self._compared:
            self._contents[zxid] = content_of(self.tree)

    def _compare(self, zxid: int, written: int) -> None:
        self._compared += 1
        if self._mismatch is not None:
            return
        if self.tree.agrees(written):
            self._proven, self._awaited = zxid, False
        elif not self._awaited:
            self._mismatch = Mismatch(zxid, written, self.tree.digest)

    def result(self) -> ReplayedTree:
        noted, contents = dict(self._noted), dict(self._contents)
        return ReplayedTree(
            self.tree, self._transactions, self._compared, self._mismatch, self._proven, noted, contents
        )
