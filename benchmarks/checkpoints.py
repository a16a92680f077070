"""An application on the log in files: commands per second and pauses, without and during a backup.

    python -m benchmarks.checkpoints [rounds] [keys]

Eight clients in this process move money between two partitions. Each round counts for three seconds without a backup,
then for three in which backups follow each other without a pause. Prints the ratios of both: commands per second,
commands per second of the processor, and the 99.9th percentile of the time to a reply; and the medians of all rounds.
The state has `keys` keys of 100 bytes.
"""

import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from logkeep.application.data_directory import DirectoryLock, open_directory
from logkeep.application.partition_worker import KeepingLimits
from logkeep.application.runtime import Runtime
from logkeep.application.worker_factory import RuntimeOptions
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


class _Span(NamedTuple):
    times: list[float]
    """To the reply of each command."""
    cpu_s: float

    @property
    def p999_ms(self) -> float:
        return sorted(self.times)[int(len(self.times) * 0.999)] * 1000

    @property
    def per_s(self) -> float:
        return len(self.times) / SPAN_S

    @property
    def per_cpu_s(self) -> float:
        return len(self.times) / self.cpu_s


def _span(runtime: Runtime) -> _Span:
    times: list[float] = []
    began = time.process_time()
    end = time.perf_counter() + SPAN_S
    threads = [threading.Thread(target=_client, args=(runtime, n, end, times)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _Span(times, time.process_time() - began)


def _line(label: str, span: _Span) -> str:
    return f"{label} {span.per_s:.0f} commands/s, {span.per_cpu_s:.0f} per CPU s, p99.9 {span.p999_ms:.1f} ms"


def _backups(place: SourceRef, runtime: Runtime, stop: threading.Event, first: int, done: list[int]) -> None:
    while not stop.is_set():
        backup_id = first + len(done)
        assert take(place, runtime, backup_id, base=backup_id - 1 or None).state == "completed"
        done.append(backup_id)


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
        pairs, done = list[tuple[_Span, _Span]](), list[int]()
        for _ in range(rounds):
            without = _span(runtime)
            stop = threading.Event()
            backing = threading.Thread(target=_backups, args=(place, runtime, stop, 1, done))
            backing.start()
            during = _span(runtime)
            stop.set()
            backing.join()
            pairs.append((without, during))
            print(_line("without", without), _line("during backups", during), f"{len(done)} backups so far", sep="; ")
        speed = statistics.median(during.per_s / without.per_s for without, during in pairs)
        cpu = statistics.median(during.per_cpu_s / without.per_cpu_s for without, during in pairs)
        pause = statistics.median(during.p999_ms / without.p999_ms for without, during in pairs)
        print(f"median: speed × {speed:.2f}, per CPU second × {cpu:.2f}, p99.9 × {pause:.2f}")
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
