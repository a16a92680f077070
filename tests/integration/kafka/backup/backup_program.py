"""Takes a backup in a process of its own, every partition in a unit of its own, and prints what it took.

`KILL_AFTER_CALL` ends the process with SIGKILL after so many calls to the store, `KILL_AFTER_RECEIPT` after so many
receipts; `ENGINE=spark` uses two Spark workers.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from logkeep.engine.inline import InlineEngine
from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.settings import SparkSettings
from logkeep.kafka.backup import plan
from logkeep.model.cache import cache_dir
from logkeep.model.work import Engine
from logkeep.repository.access import open_repository
from logkeep.store.local.store import LocalStore
from tests.integration.kafka.logs.copy_program import peak_kb
from tests.support.faults.plan import Fault, KillAfter, Plan
from tests.support.faults.store import FaultyStore
from tests.support.kafka.whole_backups import Archive


class FailedAttempts:
    """A progress sink that only remembers how many attempts failed."""

    def __init__(self) -> None:
        self.count = 0

    def start(self, label: str, total_bytes: int, total_units: int) -> None: ...

    def update(self, done_bytes: int, done_units: int, failed_attempts: int) -> None:
        self.count = max(self.count, failed_attempts)

    def waiting(self, reason: str) -> None: ...

    def finish(self) -> None: ...


class KillAfterReceipt:
    """A plan for a store: dies when so many receipts are there."""

    def __init__(self, wanted: int) -> None:
        self._left = wanted

    def __call__(self, _number: int, operation: str, name: str) -> Fault | None:
        self._left -= operation == "put_new" and "/journal/" in name
        return Fault(kill=True) if self._left == 0 else None


def chosen_plan() -> Plan:
    if receipts := os.environ.get("KILL_AFTER_RECEIPT"):
        return KillAfterReceipt(int(receipts))
    return KillAfter(int(os.environ.get("KILL_AFTER_CALL", "0")))


@contextmanager
def chosen_engine(failed: FailedAttempts) -> Iterator[Engine]:
    if os.environ.get("ENGINE") != "spark":
        yield InlineEngine(sink=failed)
        return
    settings = SparkSettings(cache_dir(os.environ, Path.home()), "local[2]")
    with closing(SparkEngine(settings, sink=failed)) as engine:
        yield engine


if __name__ == "__main__":
    bootstrap, root, mode, ranges, *topics = sys.argv[1:]
    plan.BUNDLE_RANGES = int(ranges)
    place, failed = open_repository(LocalStore(Path(root))).place("prod"), FailedAttempts()
    counting = FaultyStore(place.store, chosen_plan())
    if os.environ.get("ENGINE") != "spark":
        place = replace(place, store=counting)
    with chosen_engine(failed) as engine:
        archive = Archive(bootstrap, place, engine)
        done = archive.back_up(*topics, resume=mode == "resume", segment_bytes=200_000)
    report = {"id": done.entry.id, "units": len(done.plan.units), "peak_kb": peak_kb()}
    print(json.dumps(report | {"store_calls": len(counting.calls), "failed_attempts": failed.count}))
