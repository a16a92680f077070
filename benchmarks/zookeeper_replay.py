"""Replaying logs: reading, decoding and applying transactions, with the digest of the tree kept after each."""

from functools import partial
from pathlib import Path

from benchmarks.zookeeper_files import PAYLOADS, Workload
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Create, Transaction, decode
from logkeep.formats.zookeeper.txnlog import bodies
from logkeep.zookeeper.tree import Tree, new_tree


def measure(workload: Workload) -> None:
    """`mixed`: a quarter creates, half sets, a quarter deletes, 100 B."""
    logs = {label: workload.log(payload) for label, payload in PAYLOADS.items()}
    for label, log in {**logs, "mixed": workload.mixed_log()}.items():
        seconds = workload.best(partial(_replayed, log))
        print(f"  {label:6}replay {seconds:8.2f} s {workload.transactions / seconds:12,.0f} txn/s")


def _replayed(log: Path) -> None:
    tree = _with_nodes()
    with log.open("rb") as source:
        for body in bodies(source):
            tree.apply(decode(body))


def _with_nodes() -> Tree:
    tree = new_tree(with_config=True)
    for path in (b"/bench", *(b"/bench/node-%010d" % number for number in range(1000))):
        tree.apply(Transaction(1, 1, 1, 1, 1, Create(path, b"", OPEN_ACL, ephemeral=False, parent_cversion=-1), None))
    return tree
