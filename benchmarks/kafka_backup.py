"""How fast is a whole backup of a Kafka cluster? Against Apache's consumer, a bare loop, and Spark's own connector.

    python -m benchmarks.kafka_backup [--gigabytes 8] [--rounds 2] [--peer-megabytes 1000] [--directory DIR]

One real embedded broker, topics of four partitions written by Apache's ProducerPerformance, all in one run. Backups
are whole ones through `KafkaBackup.run` on a warm local Spark: their clock runs from the beginning of the first unit
(its first fetch) to the end of the last (its last sync); CPU seconds are those of all client processes, the JVM of
Spark included, while the job runs. ConsumerPerformance keeps nothing; the bare loop fetches, checks CRC-32C, hashes and
writes with O_DIRECT in two processes and knows nothing else. Read the ratios: the broker shares the machine.
"""

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.client_cpu import client_cpu_s
from benchmarks.cost_line import line
from benchmarks.kafka_copy import Work, bare_loop, measure
from benchmarks.kafka_workload import Load, OptimisedKafka, consumer_performance, fill
from benchmarks.session_start import Nothing, do_nothing
from benchmarks.timed import TimedEngine
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.settings import SparkSettings
from logkeep.kafka.logs.batch_check import check_logs
from logkeep.model.cache import cache_dir
from logkeep.model.ids import backup_id
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.checks import hash_objects
from logkeep.repository.verify.run import Verifier
from tests.support.kafka.copied_logs import whole_range
from tests.support.kafka.plain_client import PlainBrokers
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.servers.spark_connectors import CONNECTORS

WORKERS = 2


@dataclass(frozen=True)
class Figures:
    """Of one backup."""

    gigabytes: float
    seconds: float
    """First fetch to last sync."""
    whole_s: float
    """The whole run: facts, copy, parts, manifest, commit."""
    cpu_s: float
    """Of all client processes while the job runs: workers, driver, and the JVM of Spark."""
    peak_mb: float

    @property
    def speed(self) -> float:
        return self.gigabytes * 1000 / self.seconds


class Bench:
    """A broker, a warm engine, and a directory for what they make."""

    def __init__(self, kafka: EmbeddedKafka, engine: SparkEngine, directory: Path, rounds: int) -> None:
        self.kafka, self.directory, self.rounds = kafka, directory, rounds
        self.engine = TimedEngine(engine, directory / "notes", lambda: client_cpu_s(kafka.pid or -1))

    def backup(self, *topics: str) -> Figures:
        """A first backup into an empty repository, which is removed again."""
        root = self.directory / "repository"
        archive = Archive(self.kafka.bootstrap, new_place(root), self.engine)
        started = time.monotonic()
        done = archive.back_up(*topics)
        whole, span = time.monotonic() - started, self.engine.span()
        shutil.rmtree(root)
        return Figures(done.entry.summary.stored_bytes / 1e9, span.seconds, whole, span.cpu_s, span.peak_mb)

    def best_backup(self, *topics: str) -> Figures:
        return min((self.backup(*topics) for _ in range(self.rounds)), key=lambda f: f.seconds)

    def bare(self, topic: str, partitions: int) -> tuple[float, float]:
        """MB/s of the bare loop in two processes, and its CPU seconds per GB."""
        brokers = PlainBrokers("127.0.0.1", self.kafka.port)
        ranges = [whole_range(brokers, topic, p) for p in range(partitions)]
        works = [Work(tuple(ranges[i::WORKERS]), brokers, self.directory / "bare", i) for i in range(WORKERS)]
        with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
            list(pool.map(time.sleep, [0.5] * WORKERS))
            return max(measure(bare_loop, works, pool) for _ in range(self.rounds))

    def compare(self, load: Load) -> None:
        """One line of the table."""
        fill(self.kafka, load)
        ours = self.best_backup(load.topic)
        bare, bare_cpu = self.bare(load.topic, load.partitions)
        apache = max(consumer_performance(self.kafka, load) for _ in range(self.rounds))
        what = f"{load.record_bytes} B, {load.codec}, {load.batch_bytes // 1000} kB batches"
        print(
            f"| {what}, {load.partitions} partitions | {ours.gigabytes:.2f} | {ours.speed:.0f} | {bare:.0f}"
            f" | {apache:.0f} | {ours.speed / bare:.2f}"
            f" | {ours.speed / apache:.2f} | {(cpu := ours.cpu_s / ours.gigabytes):.2f} | {cpu / bare_cpu:.2f}"
            f" | {ours.peak_mb:.0f} |",
            flush=True,
        )

    def slope(self, topics: list[str]) -> None:
        """Fixed cost and cost per gigabyte, from doubling sizes."""
        print("\n| GB | first fetch to last sync, s | whole run, s | peak of a worker, MB |\n|---|---|---|---|")
        points, count = [], 1
        while count <= len(topics):
            found = self.best_backup(*topics[:count])
            points.append((found.gigabytes, found.whole_s))
            print(
                f"| {found.gigabytes:.2f} | {found.seconds:.2f} | {found.whole_s:.2f} | {found.peak_mb:.0f} |",
                flush=True,
            )
            count *= 2
        fixed, per_gb = line(points)
        print(f"\nwhole run = {fixed:.2f} s + {per_gb:.2f} s per GB\n", flush=True)

    def verify(self, topic: str) -> None:
        """`--level data` against SHA-256 of the same objects alone, both on the same warm workers."""
        root = self.directory / "repository"
        archive = Archive(self.kafka.bootstrap, new_place(root), self.engine)
        done = archive.back_up(topic)
        self.engine.span()
        gigabytes = done.entry.summary.stored_bytes / 1e9
        seconds = {}
        for name, task in (("SHA-256 alone", hash_objects), ("verify --level data", check_logs)):
            verifier = Verifier(archive.place, self.engine, this_process("ab"), utc_now, random_token, task)
            spans = []
            for _ in range(self.rounds):
                verifier.verify(backup_id(done.entry.id), "data")
                spans.append(self.engine.span().seconds)
            seconds[name] = min(spans)
        alone = seconds["SHA-256 alone"]
        for name, taken in seconds.items():
            print(f"| {name} | {gigabytes / taken * 1000:.0f} | {alone / taken:.2f} |", flush=True)
        shutil.rmtree(root)

    def idle(self, topic: str, spark_start_s: float) -> None:
        """The command itself, when nothing has changed since the last backup: with and without Spark."""
        root = self.directory / "repository"
        Archive(self.kafka.bootstrap, new_place(root), self.engine).back_up(topic)
        self.engine.span()
        command = [sys.executable, "-m", "logkeep.cli", "kafka", "backup", "-r", str(root), "--source", "prod"]
        for more in ([], ["--engine", "spark"]):
            started = time.monotonic()
            what = ["--bootstrap-servers", self.kafka.bootstrap, "--topics", topic, "--quiet", *more]
            subprocess.run([*command, *what], check=True)
            name = " ".join(["idle run", *more])
            print(f"| {name} | {time.monotonic() - started:.2f} | {spark_start_s:.2f} |", flush=True)
        shutil.rmtree(root)

    def peer(self, load: Load, jars: list[Path]) -> None:
        """Spark's Kafka connector writing Avro, and ours, on the same topic."""
        fill(self.kafka, load)
        ours, out = self.best_backup(load.topic), self.directory / "peer"
        out.mkdir()
        arguments = [self.kafka.bootstrap, load.topic, str(out), ",".join(map(str, jars))]
        said = subprocess.run(
            [sys.executable, "-m", "benchmarks.spark_connector", *arguments],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        seconds, cpu, _ = map(float, said.split()[-3:])
        speed = load.megabytes / seconds
        print(
            f"| Spark connector to Avro, {load.record_bytes} B | {speed:.0f} | {ours.speed / speed:.1f} |"
            f" {cpu / load.megabytes * 1000 / (ours.cpu_s / ours.gigabytes):.1f} |",
            flush=True,
        )
        shutil.rmtree(out)


def run(bench: Bench, gigabytes: int, peer_megabytes: int, jars: list[Path], spark_start_s: float) -> None:
    print("| records | GB | backup, MB/s | bare loop | ConsumerPerformance | x bare | x Apache", end="")
    print(" | CPU s/GB | x bare CPU | peak MB |\n|---|---|---|---|---|---|---|---|---|---|")
    for record_bytes in (100, 1000):
        bench.compare(Load(f"large-{record_bytes}", record_bytes, gigabytes * 1000))
    for load in (
        Load("small-batches-100", 100, peer_megabytes, batch_bytes=16_000),
        Load("zstd-1000", 1000, peer_megabytes, codec="zstd"),
        Load("many-partitions", 1000, 200, partitions=500),
    ):
        bench.compare(load)
    print("\n| checking | MB/s | x SHA-256 |\n|---|---|---|")
    bench.verify("large-100")
    print("\n| command | seconds | start of Spark to the end of its first unit, s |\n|---|---|---|")
    bench.idle("large-1000", spark_start_s)
    print("\n| peer | MB/s | ours is faster, x | its CPU per GB over ours, x |\n|---|---|---|---|")
    for record_bytes in (100, 1000):
        bench.peer(Load(f"peer-{record_bytes}", record_bytes, peer_megabytes), jars)
    parts = [Load(f"part-{i}", 1000, 1000) for i in range(gigabytes)]
    for part in parts:
        fill(bench.kafka, part)
    bench.slope([part.topic for part in parts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--peer-megabytes", type=int, default=1000)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    cache = cache_dir(os.environ, Path.home())
    jars = CONNECTORS.files(cache)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.directory)))
        kafka = stack.enter_context(OptimisedKafka(directory / "broker", cache))
        engine = stack.enter_context(closing(SparkEngine(SparkSettings(cache, f"local[{WORKERS}]"))))
        started = time.monotonic()
        engine.map(do_nothing, range(WORKERS), Nothing, label="start", weight=lambda _: 1)
        spark_start_s = time.monotonic() - started
        bench = Bench(kafka, engine, directory, options.rounds)
        fill(kafka, Load("warm-up", 1000, 50))
        bench.backup("warm-up")
        run(bench, options.gigabytes, options.peer_megabytes, jars, spark_start_s)


if __name__ == "__main__":
    main()
