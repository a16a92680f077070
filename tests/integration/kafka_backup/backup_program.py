"""Takes a backup in a process of its own, every partition in a unit of its own, and prints its id and memory."""

import sys
from pathlib import Path

from logkeep.kafka import plan
from logkeep.repository.opening import open_repository
from logkeep.store.local import LocalStore
from tests.integration.copy_program import peak_kb
from tests.kafka.whole import Archive

if __name__ == "__main__":
    bootstrap, root, mode, ranges, *topics = sys.argv[1:]
    plan.BUNDLE_RANGES = int(ranges)
    archive = Archive(bootstrap, open_repository(LocalStore(Path(root))).place("prod"))
    done = archive.back_up(*topics, resume=mode == "resume", segment_bytes=200_000)
    print(done.entry.id, len(done.plan.units), peak_kb())
