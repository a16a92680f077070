"""What a backup of an application stores and how much memory it takes: the first one, and one after 1 % was changed.

    python -m benchmarks.checkpoint_bytes [megabytes] [value bytes]

A process fills the state of an application with one partition. Another one opens it and takes a backup, changes 1 % of
the keys, and takes a second one. Prints the bytes that each stored, and the most memory that the process had, above the
interpreter with its libraries. The values are random text of which zstd keeps three quarters.
"""

import base64
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from logkeep.application import Application, Command, Context
from logkeep.application.data_directory import DirectoryLock, open_directory
from logkeep.application.partition_worker import KeepingLimits
from logkeep.application.runtime import Runtime
from logkeep.application.worker_factory import RuntimeOptions
from logkeep.model.ids import BackupId
from logkeep.model.time import utc_now
from logkeep.repository.access import open_repository
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.store.local.store import LocalStore
from tests.support.running_application import new_repository, take

CLIENTS = 8


def application() -> Application:
    made = Application("values", partitions=1)

    @made.on("put")
    def put(command: Command, state: Any, context: Context) -> None:
        state[command.key] = command.value
        context.reply(True)

    return made


@contextmanager
def running(data: Path, place: SourceRef) -> Iterator[Runtime]:
    lock = DirectoryLock(data)
    directory = open_directory(data, "values", 1, utc_now())
    runtime = Runtime(application(), directory, RuntimeOptions(KeepingLimits(), lambda: place))
    runtime.start()
    try:
        yield runtime
    finally:
        runtime.stop()
        lock.release()


def put_all(runtime: Runtime, keys: range, value_bytes: int) -> None:
    def some(first: int) -> None:
        for key in keys[first::CLIENTS]:
            value = base64.b64encode(random.Random(key).randbytes(value_bytes * 3 // 4)).decode()
            runtime.submit("put", f"key-{key}", value)

    threads = [threading.Thread(target=some, args=(n,)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def fill(place: SourceRef, data: Path, count: int, value_bytes: int) -> None:
    data.mkdir()
    with running(data, place) as runtime:
        put_all(runtime, range(count), value_bytes)
        for worker in runtime.workers:
            worker.keep_once(1)


def back_up(place: SourceRef, data: Path, count: int, value_bytes: int) -> None:
    before = _peak_mb()
    with running(data, place) as runtime:
        print(f"the interpreter with its libraries has {before:.0f} MB; started: {_peak_mb() - before:.0f} MB more")
        _take(runtime, place, 1, None, before)
        put_all(runtime, range(0, count, 100), value_bytes)
        _take(runtime, place, 2, 1, before)
    snapshots = sum(path.stat().st_size for path in data.glob("p*/snapshots/*"))
    print(f"snapshots on the disk: {snapshots / 1e6:.1f} MB")


def _take(runtime: Runtime, place: SourceRef, backup_id: int, base: int | None, before: float) -> None:
    assert take(place, runtime, backup_id, base=base, seconds=600).state == "completed"
    entry = read_chain(place).entry(BackupId(backup_id))
    assert entry is not None
    new, stored = entry.summary.new_bytes / 1e6, entry.summary.stored_bytes / 1e6
    print(f"backup {backup_id}: {new:.1f} MB new of {stored:.1f} MB; at most {_peak_mb() - before:.0f} MB more so far")


def _peak_mb() -> float:
    """Not getrusage's: that of the process which started this one counts there."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    value_bytes = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    count = megabytes * 1_000_000 // value_bytes
    with tempfile.TemporaryDirectory() as scratch:
        new_repository(Path(scratch, "repository"))
        for step in ("fill", "back_up"):
            command = [sys.executable, "-m", "benchmarks.checkpoint_bytes", step, scratch, str(count), str(value_bytes)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    if sys.argv[1:2] in (["fill"], ["back_up"]):
        place = open_repository(LocalStore(Path(sys.argv[2], "repository"))).place("values")
        step = {"fill": fill, "back_up": back_up}[sys.argv[1]]
        step(place, Path(sys.argv[2], "data"), int(sys.argv[3]), int(sys.argv[4]))
        sys.stdout.flush()
        os._exit(0)
    main()
