"""Replaying logs: reading, decoding and applying transactions, with the digest of the tree kept after each; memory."""

import itertools
import subprocess
import sys
from functools import partial
from pathlib import Path

from benchmarks.zookeeper_files import PAYLOADS, Workload, create_bodies, write_log
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Create, Transaction, decode
from logkeep.formats.zookeeper.txnlog import bodies
from logkeep.zookeeper.model.tree import Tree, new_tree

_PEAK = """
import io, sys
from benchmarks.zookeeper_files import peak_mb
from logkeep.formats.jit import compile_from_now_on
from logkeep.formats.zookeeper.transactions import decode
from logkeep.formats.zookeeper.txnlog import bodies, header
from logkeep.zookeeper.model.tree import new_tree
compile_from_now_on()
list(bodies(io.BytesIO(header())))
tree = new_tree(with_config=True)
before = peak_mb()
with open(sys.argv[1], "rb") as source:
    for body in bodies(source):
        tree.apply(decode(body))
print(before, peak_mb())
"""
_NODE_PAYLOADS = {"100 B": 100, "10 kB": 10_000}


def measure(workload: Workload) -> None:
    """`mixed`: a quarter creates, half sets, a quarter deletes, 100 B."""
    logs = {label: workload.log(payload) for label, payload in PAYLOADS.items()}
    for label, log in {**logs, "mixed": workload.mixed_log()}.items():
        seconds = workload.best(partial(_replayed, log))
        print(f"  {label:6}replay {seconds:8.2f} s {workload.transactions / seconds:12,.0f} txn/s")
    for label, payload in _NODE_PAYLOADS.items():
        _memory(workload, label, payload)


def _memory(workload: Workload, label: str, payload: int) -> None:
    """Of a tree of as many nodes as there are transactions, or of 1 GB of data."""
    nodes = min(workload.transactions, 1_000_000_000 // payload)
    log = workload.folder / "log.nodes"
    write_log(log, itertools.islice(create_bodies(payload), nodes))
    done = subprocess.run([sys.executable, "-c", _PEAK, str(log)], check=True, capture_output=True, text=True)
    before, peak = map(float, done.stdout.split())
    data_mb = nodes * payload / (1 << 20)
    beside_kb = (peak - before - data_mb) * 1024 / nodes
    print(
        f"  {nodes:,} znodes of {label}: peak {peak - before:.0f} MB above the interpreter with its libraries, "
        f"{data_mb:.0f} MB of it data, {beside_kb:.2f} kB per znode beside"
    )
    log.unlink()


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
