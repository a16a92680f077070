"""Replays of what a real server wrote, with every digest compared that it left."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from logkeep.formats.zookeeper.snapshot import SnapshotTail
from logkeep.formats.zookeeper.transactions import Multi, Transaction, decode
from logkeep.zookeeper.model.tree import Tree


@dataclass
class Replay:
    """What a replay met. `wrong` holds the zxids whose digest did not fit."""

    transactions: int = 0
    compared: int = 0
    wrong: list[int] = field(default_factory=list)
    kinds: Counter[int] = field(default_factory=Counter)
    half_failed: int = 0

    def run(self, tree: Tree, bodies: Iterable[bytes], *, until: int | None = None, exact_from: int | None = 0) -> Tree:
        """Apply what is behind the tree's zxid. Before `exact_from` no digest is asked for, with None never.

        Without digests (before 3.6) the transaction that a snapshot is named after comes again, first of all: the
        snapshot may hold a half of it. To a whole tree that changes nothing.
        """
        stands_at = tree.zxid
        for body in bodies:
            transaction = decode(body)
            again = transaction.zxid == stands_at == tree.zxid and transaction.digest is None
            if transaction.zxid <= tree.zxid and not again:
                continue
            if until is not None and transaction.zxid > until:
                break
            tree.apply(transaction)
            self._compare(tree, transaction, exact_from)
        return tree

    def count(self, transaction: Transaction) -> None:
        self.transactions += 1
        self.kinds[transaction.kind] += 1
        if isinstance(transaction.change, Multi) and not transaction.change.applied:
            self.half_failed += any(part.kind != -1 for part in transaction.change.parts)

    def _compare(self, tree: Tree, transaction: Transaction, exact_from: int | None) -> None:
        self.count(transaction)
        if transaction.digest is not None and exact_from is not None and transaction.zxid >= exact_from:
            self.compared += 1
            if not tree.agrees(transaction.digest):
                self.wrong.append(transaction.zxid)


def fuzzy_end(tree: Tree, ending: SnapshotTail) -> int | None:
    """Of a snapshot that was just loaded."""
    largest = max(max(node.czxid, node.mzxid, node.pzxid) for node in tree.nodes.values())
    return ending.fuzzy_end(tree.zxid, largest)


def transactions_in(bodies: Iterable[bytes]) -> Iterator[Transaction]:
    return map(decode, bodies)
