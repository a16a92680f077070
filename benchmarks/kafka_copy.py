"""How fast are ranges of a Kafka log archived? Against a bare loop and against Apache's own consumer benchmark.

    python -m benchmarks.kafka_copy [--megabytes 1000] [--rounds 2] [--directory DIR]

One real embedded broker with four partitions, written by Apache's ProducerPerformance, page cache warm. In the same
run, in turns, best of `--rounds`: `copy_ranges` in one and in two processes (fetch, CRC-32C, sha256, durable write,
index, receipt), the bare loop in one and in two processes (fetch, CRC-32C, sha256, O_DIRECT write, fsync; no checks,
no rotation, no index), and ConsumerPerformance, which keeps nothing. Clocks run from the first connection to the last
sync; CPU seconds are those of the Python processes. Read the ratios: the broker shares the machine.
"""

import argparse
import hashlib
import mmap
import multiprocessing
import os
import shutil
import struct
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import google_crc32c
import numpy as np

from benchmarks.kafka_workload import Load, OptimisedKafka, consumer_performance, fill
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.backup.copy.copy_task import copy_ranges
from logkeep.kafka.backup.units import CopyRange, CopyUnit
from logkeep.kafka.client.fetch import FetchLimits, PartitionFetch, encode, parse
from logkeep.model.cache import cache_dir
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.local.store import LocalStore
from tests.support.kafka.copied_logs import whole_range
from tests.support.kafka.plain_client import PlainBrokers, PlainConnection

_FETCH_BYTES = 8 << 20
_RING_BYTES = 4 << 20


@dataclass(frozen=True)
class Done:
    started: float
    ended: float
    cpu_s: float
    size_bytes: int


@dataclass(frozen=True)
class Work:
    """What one process does in one run."""

    ranges: tuple[CopyRange, ...]
    brokers: PlainBrokers
    root: Path
    number: int


def archive(work: Work) -> Done:
    """The product."""
    place = SourceRef(LocalStore(work.root), "benchmark", "prod")
    unit = CopyUnit(f"unit-{work.number}", place, 1, "run", 1, work.ranges, work.brokers)
    started, cpu = time.time(), time.process_time()
    result = copy_ranges(unit, lambda _: None)
    size = sum(segment.stored_bytes for segment in result.segments)
    return Done(started, time.time(), time.process_time() - cpu, size)


def bare_loop(work: Work) -> Done:
    """The least that fetches, checks, hashes and keeps: two connections, one helper thread, O_DIRECT."""
    started, cpu, size = time.time(), time.process_time(), 0
    with ThreadPoolExecutor(1) as helper:
        for wanted in work.ranges:
            size += _bare_partition(wanted, work, helper)
    return Done(started, time.time(), time.process_time() - cpu, size)


def _bare_partition(wanted: CopyRange, work: Work, helper: ThreadPoolExecutor) -> int:
    lanes = [PlainConnection(work.brokers.host, work.brokers.port) for _ in range(2)]
    pending = [helper.submit(int), helper.submit(int)]
    sink = _Sink(work.root / f"bare-{wanted.partition}-{wanted.lo}")
    offset, turn, limits = wanted.lo, 0, FetchLimits(max_bytes=_FETCH_BYTES)
    lanes[0].send(encode([PartitionFetch(wanted.topic_id, wanted.partition, offset)], limits, 1))
    while offset < wanted.hi:
        pending[turn].result()
        records = parse(lanes[turn].receive(), 1).partitions[0].records
        bounds = _bounds(records)
        if bounds:
            offset = bounds[-1][2]
        if offset < wanted.hi:
            lanes[1 - turn].send(encode([PartitionFetch(wanted.topic_id, wanted.partition, offset)], limits, 1))
        pending[turn] = helper.submit(sink.take, records, bounds)
        turn = 1 - turn
    for each in pending:
        each.result()
    for lane in lanes:
        lane.close()
    return sink.close()


def _bounds(records: memoryview) -> list[tuple[int, int, int]]:
    found, at = [], 0
    while at + 61 <= len(records):
        base, length = struct.unpack_from(">qi", records, at)
        end = at + 12 + length
        if end > len(records):
            break
        found.append((at, end, base + struct.unpack_from(">i", records, at + 23)[0] + 1))
        at = end
    return found


class _Sink:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT)
        self._ring = mmap.mmap(-1, _RING_BYTES)
        self._filled = self._size = 0
        self._hash = hashlib.sha256()

    def take(self, records: memoryview, bounds: list[tuple[int, int, int]]) -> int:
        plain = np.frombuffer(records, np.uint8)
        for start, end, _ in bounds:
            assert google_crc32c.value(plain[start + 21 : end]) == struct.unpack_from(">I", records, start + 17)[0]
        rest = records[: bounds[-1][1]] if bounds else records[:0]
        self._hash.update(rest)
        self._size += len(rest)
        while len(rest):
            taken = min(len(rest), _RING_BYTES - self._filled)
            self._ring[self._filled : self._filled + taken] = rest[:taken]
            self._filled, rest = self._filled + taken, rest[taken:]
            if self._filled == _RING_BYTES:
                os.write(self._file, self._ring)
                self._filled = 0
        return self._size

    def close(self) -> int:
        os.write(self._file, memoryview(self._ring)[: -(-self._filled // 4096) * 4096])
        os.ftruncate(self._file, self._size)
        os.fsync(self._file)
        os.close(self._file)
        return self._size


def run_together(task: Callable[[Work], Done], works: list[Work], pool: ProcessPoolExecutor) -> Done:
    """All processes as one: from the first start to the last end. What they wrote is removed."""
    root = works[0].root
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    done = list(pool.map(task, works))
    shutil.rmtree(root)
    started, ended = min(each.started for each in done), max(each.ended for each in done)
    return Done(started, ended, sum(each.cpu_s for each in done), sum(each.size_bytes for each in done))


def measure(task: Callable[[Work], Done], works: list[Work], pool: ProcessPoolExecutor) -> tuple[float, float]:
    """MB/s over all processes and CPU seconds per GB."""
    done = run_together(task, works, pool)
    return done.size_bytes / 1e6 / (done.ended - done.started), done.cpu_s / (done.size_bytes / 1e9)


def compare(kafka: EmbeddedKafka, directory: Path, record_bytes: int, megabytes: int, rounds: int) -> None:
    load = Load(f"records-{record_bytes}", record_bytes, megabytes)
    fill(kafka, load)
    brokers = PlainBrokers("127.0.0.1", kafka.port)
    ranges = [whole_range(brokers, load.topic, p) for p in range(load.partitions)]
    best: dict[str, tuple[float, float]] = {}
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(time.sleep, [0.5, 0.5]))
        for _ in range(rounds):
            for name, task in (("copy_ranges", archive), ("bare loop", bare_loop)):
                for processes in (1, 2):
                    shares = [tuple(ranges[i::processes]) for i in range(processes)]
                    works = [Work(share, brokers, directory / "out", i) for i, share in enumerate(shares)]
                    key = f"{name}, {processes} process{'es' if processes > 1 else ''}"
                    best[key] = max(best.get(key, (0.0, 0.0)), measure(task, works, pool))
            apache = consumer_performance(kafka, load)
            best["ConsumerPerformance"] = max(best.get("ConsumerPerformance", (0.0, 0.0)), (apache, 0.0))
    report(record_bytes, best)


def report(record_bytes: int, best: dict[str, tuple[float, float]]) -> None:
    apache, bare = best["ConsumerPerformance"][0], best["bare loop, 2 processes"][0]
    print(f"\n{record_bytes} B records")
    print(f"{'':26}{'MB/s':>8}{'CPU s/GB':>10}{'x Apache':>10}{'x bare loop (2)':>17}")
    for name, (speed, cpu) in best.items():
        print(f"{name:26}{speed:8.0f}{cpu:10.2f}{speed / apache:10.2f}{speed / bare:17.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        directory = Path(name)
        with OptimisedKafka(directory / "broker", cache_dir(os.environ, Path.home())) as kafka:
            for record_bytes in (100, 1000):
                compare(kafka, directory, record_bytes, options.megabytes, options.rounds)


if __name__ == "__main__":
    main()
