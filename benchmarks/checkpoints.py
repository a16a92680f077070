"""An application on the log in files: commands per second and pauses, without and during a backup.

    python -m benchmarks.checkpoints [rounds] [keys]

Eight clients in this process move money between two partitions. Each round counts for three seconds without a backup,
then for three in which backups follow each other without a pause, asked for by another process. Prints the ratios of
both: commands per second, commands per second of the processor (of this process), and the 99.9th percentile of the time
to a reply; and the medians of all rounds. The state has `keys` keys of 100 bytes.
"""

import select
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from logkeep.application.control import ControlServer
from logkeep.application.control_client import ControlClient
from logkeep.application.data_directory import DirectoryLock, open_directory
from logkeep.application.partition_worker import KeepingLimits
from logkeep.application.runtime import Runtime
from logkeep.application.worker_factory import RuntimeOptions
from logkeep.checkpoint.archive.take import TakeOptions, take
from logkeep.checkpoint.steps import run
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import open_repository
from logkeep.store.local.store import LocalStore
from tests.support.running_application import bank, new_repository

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


def _coordinate(repository: Path, data: Path, first: int) -> None:
    """The process of a coordinator: one backup after the other until its input ends. Prints how many."""
    place, port = open_repository(LocalStore(repository)).place("bank"), ControlClient(data)
    print("ready", flush=True)
    backup_id = first
    while not select.select([sys.stdin], [], [], 0)[0]:
        options = TakeOptions(BackupId(backup_id), timeout=timedelta(seconds=60))
        taken = run(take(place, port, options, utc_now, random_token), threading.Event().wait)
        assert taken.state == "completed", taken.reason
        backup_id += 1
    print(backup_id - first)


@contextmanager
def _coordinator(repository: Path, data: Path, done: list[int]) -> Iterator[None]:
    command = (sys.executable, "-m", "benchmarks.checkpoints", "coordinate", repository, data, str(1 + sum(done)))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        done.append(int(process.communicate()[0]))


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    keys = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    with tempfile.TemporaryDirectory() as scratch:
        store, data = new_repository(Path(scratch, "repository")), Path(scratch, "data")
        data.mkdir()
        lock = DirectoryLock(data)
        limits = KeepingLimits(snapshot_every_bytes=4 << 20)
        directory = open_directory(data, "bank", 2, utc_now())
        runtime = Runtime(bank(), directory, RuntimeOptions(limits, lambda: open_repository(store).place("bank")))
        runtime.start()
        server = ControlServer(runtime, data)
        _fill(runtime, keys)
        pairs, done = list[tuple[_Span, _Span]](), list[int]()
        for _ in range(rounds):
            without = _span(runtime)
            with _coordinator(Path(scratch, "repository"), data, done):
                during = _span(runtime)
            pairs.append((without, during))
            print(_line("without", without), _line(f"during {done[-1]} backups", during), sep="; ", flush=True)
        speed = statistics.median(during.per_s / without.per_s for without, during in pairs)
        cpu = statistics.median(during.per_cpu_s / without.per_cpu_s for without, during in pairs)
        pause = statistics.median(during.p999_ms / without.p999_ms for without, during in pairs)
        print(f"median: speed × {speed:.2f}, per CPU second × {cpu:.2f}, p99.9 × {pause:.2f}")
        server.close()
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
    if sys.argv[1:2] == ["coordinate"]:
        _coordinate(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
