"""Copies whole partitions in a process of its own and prints the most memory it ever held, in kB."""

import sys
from pathlib import Path

from logkeep.kafka.backup.copy.copy_task import copy_ranges
from logkeep.model.segments import Codec
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.local.store import LocalStore
from tests.support.kafka.copied_logs import unit_of, whole_range
from tests.support.kafka.plain_client import PlainBrokers


def peak_kb() -> int:
    """Of this program alone: `getrusage` would count what its parent held before the start."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    port, topic, partitions, root = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    codec = Codec(sys.argv[5])
    store = LocalStore(root)
    store.create()
    place = SourceRef(store, "repository-1", "prod")
    brokers = PlainBrokers("127.0.0.1", port)
    wanted = [whole_range(brokers, topic, p) for p in range(partitions)]
    result = copy_ranges(unit_of("memory", place, brokers, wanted, codec=codec), lambda _: None)
    print(peak_kb(), sum(s.plain_bytes for s in result.segments))
