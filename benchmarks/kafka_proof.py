"""How fast is a restored topic proven? Beside it, in the same minutes, Apache's ConsumerPerformance on the same topic.

    python benchmarks/kafka_proof.py [--megabytes 400] [--rounds 3]

Each topic is archived first and then proven against its archive, in two processes: fetched back, CRC-32C checked, its
records decoded and digested, the archive read, checked and compared. `same batches` is a restore that could send every
batch as it was, `other batches` decodes both sides, as after re-encoding. ConsumerPerformance reads and keeps nothing;
it counts payload, so the proof's speed is in payload too. CPU seconds are per GB of payload, of both processes.
"""

import argparse
import multiprocessing
import os
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.kafka_workload import Load, OptimisedKafka, consumer_performance, fill
from logkeep.formats.compare import record_compare
from logkeep.formats.kafka.batches import Headers
from logkeep.formats.warm import warm
from logkeep.kafka.backup.claims import join_claims
from logkeep.kafka.backup.copy.copy_task import copy_ranges
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.restore.facts.units import Offsets, Producer, ReplayLog, SourceLog
from logkeep.kafka.restore.proof.compare import prove
from logkeep.model.cache import cache_dir
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.local.store import LocalStore
from tests.support.kafka.copied_logs import unit_of, whole_range
from tests.support.kafka.plain_client import PlainBrokers

LOADS = ((100, 235_000, "none"), (1000, 235_000, "none"), (100, 16_000, "none"), (100, 235_000, "zstd"))


@dataclass(frozen=True)
class Work:
    place: SourceRef
    bootstrap: str
    logs: tuple[ReplayLog, ...]
    decode_both: bool


@dataclass(frozen=True)
class Done:
    started: float
    ended: float
    cpu_s: float
    peak_mb: float


def _never(left: Headers, right: Headers) -> record_compare.Flags:
    return np.zeros(min(len(left), len(right)), np.bool_)


def proven(work: Work) -> Done:
    """A task, as a worker runs it. A process that has compiled its kernels begins."""
    warm()
    kept = record_compare._alike  # the only way to have every batch decoded twice
    if work.decode_both:
        record_compare._alike = _never
    started, cpu = time.time(), time.process_time()
    brokers = SettingsBrokers(ClientSettings(endpoints(work.bootstrap)))
    for log in work.logs:
        proof = prove(log, work.place, brokers, None, log.first.end, lambda _: None)
        assert proof.good, proof
    record_compare._alike = kept
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Done(started, time.time(), time.process_time() - cpu, peak_mb)


def measure(kafka: OptimisedKafka, load: Load, place: SourceRef, rounds: int) -> None:
    fill(kafka, load)
    logs = archived(kafka, load, place)
    payload = load.records * load.record_bytes
    best: dict[str, tuple[float, float, float]] = {}
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(proven, [Work(place, kafka.bootstrap, (), decode_both=False)] * 2))
        for _ in range(rounds):
            for name, both in (("same batches", False), ("other batches", True)):
                works = [Work(place, kafka.bootstrap, tuple(logs[i::2]), both) for i in range(2)]
                done = list(pool.map(proven, works))
                wall = max(d.ended for d in done) - min(d.started for d in done)
                row = payload / 1e6 / wall, sum(d.cpu_s for d in done) / payload * 1e9, max(d.peak_mb for d in done)
                best[name] = max(best.get(name, (0.0, 0.0, 0.0)), row)
            apache = consumer_performance(kafka, load), 0.0, 0.0
            best["ConsumerPerformance"] = max(best.get("ConsumerPerformance", apache), apache)
    print(f"\n{load.record_bytes} B records, {load.codec}, {load.batch_bytes:,} B batches")
    for name, (speed, cpu_s, peak_mb) in best.items():
        ratio = speed / best["ConsumerPerformance"][0]
        print(f"{name:20}{speed:8.0f} MB/s{cpu_s:8.2f} CPU s/GB{ratio:8.2f} x Apache{peak_mb:8.0f} MB", flush=True)


def archived(kafka: OptimisedKafka, load: Load, place: SourceRef) -> list[ReplayLog]:
    brokers = PlainBrokers("127.0.0.1", kafka.port)
    ranges = [whole_range(brokers, load.topic, p) for p in range(load.partitions)]
    result = copy_ranges(unit_of(load.topic, place, brokers, ranges), lambda _: None)
    return [
        ReplayLog(
            sources=(
                SourceLog(
                    log=one.log, start=one.span.start, end=one.span.end, segments=tuple(one.segments),
                    transactional=False,
                ),
            ),
            topic=load.topic, topic_id=brokers.topic_id(load.topic).hex, partition=one.log.partition,
            offsets=Offsets.PRESERVE, base=0, producer=Producer(producer_id=1, epoch=0, position=0),
        )
        for one in join_claims([result])
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="logkeep-proof-") as name:
        store = LocalStore(Path(name) / "repository")
        store.create()
        place = SourceRef(store, "repository-1", "prod")
        with OptimisedKafka(Path(name) / "broker", cache_dir(os.environ, Path.home())) as kafka:
            for size, batch, codec in LOADS:
                load = Load(f"r{size}-{batch}-{codec}", size, asked.megabytes, batch, codec)
                measure(kafka, load, place, asked.rounds)


if __name__ == "__main__":
    main()
