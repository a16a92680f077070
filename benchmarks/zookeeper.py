"""How fast are ZooKeeper's files checked, replayed and backed up? Peers run in the same minutes, on the same core.

    python -m benchmarks.zookeeper [--parts verify replay backup] [--transactions 200000] [--rounds 5] [--large-gb 2]

Logs are made of setData transactions of 100 B and 1 kB, as 3.9 writes them, and end in holes as a server leaves them.
Every process runs on one core. Bytes are used bytes: padding counts for nobody. Times are CPU seconds with those of
the kernel, the best of `--rounds`.
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import zookeeper_backup, zookeeper_replay, zookeeper_verify
from benchmarks.zookeeper_files import Workload

PARTS: dict[str, Callable[[Workload], None]] = {
    "verify": zookeeper_verify.measure,
    "replay": zookeeper_replay.measure,
    "backup": zookeeper_backup.measure,
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments.add_argument("--transactions", type=int, default=200_000)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--large-gb", type=float, default=2.0)
    chosen = arguments.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        workload = Workload(Path(folder), chosen.transactions, chosen.rounds, int(chosen.large_gb * 1e9))
        for part in chosen.parts:
            print(f"\n{part}")
            PARTS[part](workload)


if __name__ == "__main__":
    main()
