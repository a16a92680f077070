"""An application on the log in files: commands per second and pauses, without and during a backup.

    python -m benchmarks.checkpoints [rounds] [keys]

Eight clients in this process move money between two partitions. Each round counts for three seconds without a backup,
then for three in which backups follow each other without a pause. Prints the ratio of both, of commands per second and
of the 99.9th percentile of the time to a reply, and the median of all rounds. The state has `keys` keys of 100 bytes.
"""

import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from logkeep.application.data_directory import DirectoryLock, open_directory
from logkeep.application.partition_worker import KeepingLimits
from logkeep.application.runtime import Runtime, RuntimeOptions
from logkeep.model.time import utc_now
from logkeep.repository.access import open_repository
from logkeep.repository.chain.commits import SourceRef
from tests.support.running_application import bank, new_repository, take

CLIENTS, SPAN_S = 8, 3.0


def _client(runtime: Runtime, number: int, end: float, times: list[float]) -> None:
    count = 0
    while (start := time.perf_counter()) < end:
        runtime.submit("move", f"a{number}-{count % 500}", {"amount": 1, "to": f"b{number}-{count % 500}"})
        times.append(time.perf_counter() - start)
        count += 1


def _span(runtime: Runtime) -> list[float]:
    """The times to reply of all commands within the span."""
    times: list[float] = []
    end = time.perf_counter() + SPAN_S
    threads = [threading.Thread(target=_client, args=(runtime, n, end, times)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def _backups(place: SourceRef, runtime: Runtime, stop: threading.Event, first: int, done: list[int]) -> None:
    while not stop.is_set():
        backup_id = first + len(done)
        assert take(place, runtime, backup_id, base=backup_id - 1 or None).state == "completed"
        done.append(backup_id)


def _p999(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.999)] * 1000


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    keys = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    with tempfile.TemporaryDirectory() as scratch:
        store, data = new_repository(Path(scratch, "repository")), Path(scratch, "data")
        place = open_repository(store).place("bank")
        data.mkdir()
        lock = DirectoryLock(data)
        limits = KeepingLimits(snapshot_every_bytes=4 << 20)
        directory = open_directory(data, "bank", 2, utc_now())
        runtime = Runtime(bank(), directory, RuntimeOptions(limits, lambda: open_repository(store).place("bank")))
        runtime.start()
        _fill(runtime, keys)
        speeds, pauses, done = [], [], list[int]()
        for _ in range(rounds):
            without = _span(runtime)
            stop = threading.Event()
            backing = threading.Thread(target=_backups, args=(place, runtime, stop, 1, done))
            backing.start()
            during = _span(runtime)
            stop.set()
            backing.join()
            speeds.append(len(during) / len(without))
            pauses.append(_p999(during) / _p999(without))
            print(
                f"{len(without) / SPAN_S:.0f} commands/s, {len(during) / SPAN_S:.0f} during backups;"
                f" p99.9 {_p999(without):.1f} ms, {_p999(during):.1f} ms; {len(done)} backups so far"
            )
        print(f"median: speed × {statistics.median(speeds):.2f}, p99.9 × {statistics.median(pauses):.2f}")
        runtime.stop()
        lock.release()


def _fill(runtime: Runtime, keys: int) -> None:
    def fill(start: int) -> None:
        for number in range(start, keys, CLIENTS):
            runtime.submit("add", f"fill-{number:080}", number)

    threads = [threading.Thread(target=fill, args=(n,)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
