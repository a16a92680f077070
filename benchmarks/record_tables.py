"""How fast are datasets and tables of a real topic? Against Spark's own sources, confluent-kafka and our `verify`.

    python -m benchmarks.record_tables [--megabytes 400] [--rounds 3] [--sizes 100 1000] [--only avro] [--directory DIR]

One embedded broker, a topic of four partitions written by Apache's ProducerPerformance (no keys, no headers, random
letters), its backup and its Parquet dataset. Each line is one comparison; a ratio above 1 means that ours is faster.
`--only` names the comparisons that are made: avro, scan, arrow, contains.

    avro           `kafka backup --format avro`, codec null, on warm Spark workers (first unit to last) against Spark's
                   Kafka connector that writes Avro without compression: the second job of its session (the first one
                   is shown too). It checks the CRC of batches as we do, and writes a CRC beside each file; it syncs
                   nothing, so a line shows it with its files synced. Limits of the machine, in two processes: the bare
                   loop of `kafka_copy` (fetch, check, hash, write with O_DIRECT, sync), and as many bytes written and
                   synced alone. The sides take turns; the best of the rounds counts
    scan           `spark.read.format("logkeep")` of the backup against Spark's Kafka source of the topic and
                   `spark.read.parquet` of the dataset, all in one session, without a sink
    arrow          `logkeep.open(…).topic(…).scan()` in this process against confluent-kafka's consumer, whose messages
                   become Arrow columns; CPU seconds of this process, the threads of librdkafka included
    contains       `show --contains` of a text that no record has against `verify --level records`, CPU seconds

With `avro` comes the most resident memory of a worker while it wrote Avro, deflate too, and Parquet, and how much of it
are pages of library files, which all processes share.
"""

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

import logkeep
from benchmarks.client_cpu import client_cpu_s
from benchmarks.kafka_copy import Done, Work, bare_loop, run_together
from benchmarks.kafka_workload import Load, OptimisedKafka, fill
from benchmarks.timed import Span, TimedEngine
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.inline import InlineEngine
from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.settings import SparkSettings
from logkeep.formats.warm import warm
from logkeep.kafka.dataset_upkeep.verify import read_back
from logkeep.kafka.datasets.formats import DatasetOptions
from logkeep.kafka.datasets.run import DatasetExport, ExportOptions
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.scan.find import RecordQuestion, find_records
from logkeep.kafka.scan.open_backup import open_backup
from logkeep.kafka.scan.search import RecordSearch
from logkeep.kafka.scan.values import ScanCounters
from logkeep.kafka.verify.records import check_records
from logkeep.model.cache import cache_dir
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier
from logkeep.store.local.store import LocalStore
from tests.support.kafka.copied_logs import whole_range
from tests.support.kafka.dataset_exports import Datasets
from tests.support.kafka.plain_client import PlainBrokers
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.servers.spark_connectors import CONNECTORS

WORKERS = 2
_SEGMENT_BYTES = 1 << 30
_TOGETHER = 10_000
_WARM_UP_MEGABYTES = 300
"""A unit has up to 128 MiB: each worker must have one, and load its kernels in it."""
PEER = "Spark's connector"
COMPARISONS = ("avro", "scan", "arrow", "contains")


@dataclass(frozen=True)
class Bench:
    kafka: EmbeddedKafka
    engine: TimedEngine
    directory: Path
    jars: str
    rounds: int

    def dataset(self, topic: str, form: str, codec: str = "") -> Span:
        """Written into an empty directory, which stays for the best round's readers."""
        root = self.directory / form
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        source = Datasets(root, self.kafka.bootstrap).cluster_source(topic)
        options = ExportOptions(form, "committed", DatasetOptions(_SEGMENT_BYTES, codec=codec))
        DatasetExport(DatasetTarget(LocalStore(root), root), options, read_back).run(source, lambda _: self.engine)
        return self.engine.span()

    def best_dataset(self, topic: str, form: str, codec: str = "") -> Span:
        return min((self.dataset(topic, form, codec) for _ in range(self.rounds)), key=lambda span: span.seconds)

    def compare(self, load: Load, only: Collection[str]) -> None:
        fill(self.kafka, load)
        topic, records = load.topic, load.records
        if "avro" in only:
            self._compare_avro(load)
        if not {*only} - {"avro"}:
            return
        root = self.directory / "repository"
        shutil.rmtree(root, ignore_errors=True)
        archive = Archive(self.kafka.bootstrap, new_place(root))
        done = archive.back_up(topic)
        if "scan" in only:
            self.dataset(topic, "parquet")
            scans = self._spark_scans(load, root)
            _row(f"table scan {topic}", records, {name: wall for name, (wall, _) in scans.items()})
            _row(f"  its CPU seconds {topic}", records, {name: cpu for name, (_, cpu) in scans.items()})
        if "arrow" in only:
            ours, theirs = _both(lambda: _scanned(root, topic), lambda: _consumed(self.kafka, load), self.rounds)
            _row(f"arrow scan {topic}", records, {"ours": ours, "confluent-kafka": theirs})
        if "contains" in only:
            engine = InlineEngine()
            verifier = Verifier(archive.place, engine, this_process("ab"), utc_now, random_token, deeper=check_records)
            backup = BackupId(done.entry.id)
            ours, theirs = _both(
                lambda: _searched(archive, topic), lambda: verifier.verify(backup, "records"), self.rounds
            )
            _row(f"contains {topic}", records, {"ours": ours, "verify": theirs})

    def _compare_avro(self, load: Load) -> None:
        topic, rounds = load.topic, list[dict[str, float]]()
        wall, cpu, spans = dict[str, float](), dict[str, float](), list[Span]()
        for _ in range(self.rounds):
            began = time.monotonic()
            spans.append(avro := self.dataset(topic, "avro", "null"))
            seconds, spent = {"ours": avro.seconds, "ours, whole run": time.monotonic() - began}, {"ours": avro.cpu_s}
            for name, (taken, cpu_s) in {**self._connector(topic), **self._limits(load)}.items():
                seconds[name], spent[name] = taken, cpu_s
            rounds.append(seconds)
            wall = {name: min(taken, wall.get(name, taken)) for name, taken in seconds.items()}
            cpu = {name: min(taken, cpu.get(name, taken)) for name, taken in spent.items()}
        _row(f"avro dataset {topic}", load.records, wall)
        _row(f"  its CPU seconds {topic}", load.records, cpu)
        ratios = ", ".join(f"{each[PEER] / each['ours']:.2f}" for each in rounds)
        print(f"  ratio of each round: {ratios}", flush=True)
        most = {"avro": max(spans, key=lambda span: span.peak_mb)}
        most |= {"deflate": self.best_dataset(topic, "avro", "deflate"), "parquet": self.best_dataset(topic, "parquet")}
        peaks = (f"{name} {span.peak_mb:.0f} ({span.files_mb:.0f} of files)" for name, span in most.items())
        print(f"  peak of a worker, MB: {', '.join(peaks)}", flush=True)

    def _connector(self, topic: str) -> dict[str, tuple[float, float]]:
        """Seconds and CPU seconds of two jobs in one new session; the second one also with its files synced."""
        out = self.directory / "connector"
        out.mkdir()
        said = _program("benchmarks.spark_connector", self.kafka.bootstrap, topic, str(out), self.jars, "2")
        shutil.rmtree(out)
        (first, first_cpu, _), (second, second_cpu, sync) = (
            tuple(map(float, each.split())) for each in said.splitlines()[-2:]
        )
        return {
            PEER: (second, second_cpu),
            f"{PEER}, synced": (second + sync, second_cpu),
            f"{PEER}, first job": (first, first_cpu),
        }

    def _limits(self, load: Load) -> dict[str, tuple[float, float]]:
        """What two processes take for the same bytes that do nothing else: seconds, and CPU seconds."""
        brokers = PlainBrokers("127.0.0.1", self.kafka.port)
        ranges = [whole_range(brokers, load.topic, p) for p in range(load.partitions)]
        works = [Work(tuple(ranges[i::WORKERS]), brokers, self.directory / "limits", i) for i in range(WORKERS)]
        size = sum(path.stat().st_size for path in (self.directory / "avro").rglob("*.data")) // WORKERS
        tasks: dict[str, Callable[[Work], Done]] = {
            "first write": partial(write_alone, size_bytes=size),
            "bare loop": bare_loop,
            "write and sync": partial(write_alone, size_bytes=size),
        }
        with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
            list(pool.map(time.sleep, [0.5] * WORKERS))
            done = {name: run_together(task, works, pool) for name, task in tasks.items()}
        del done["first write"]  # it may have to wait for memory that other files have
        return {name: (each.ended - each.started, each.cpu_s) for name, each in done.items()}

    def _spark_scans(self, load: Load, repository: Path) -> dict[str, tuple[float, float]]:
        files = self.directory / "parquet" / "topics" / load.topic
        where = [self.kafka.bootstrap, load.topic, str(repository), str(files), self.jars]
        said = _program("benchmarks.spark_scans", *where, str(self.rounds), str(load.record_bytes)).splitlines()[-1]
        found = (each.partition("=") for each in said.split(";"))
        return {name: (float(times.split(",")[0]), float(times.split(",")[1])) for name, _, times in found}


def write_alone(work: Work, size_bytes: int) -> Done:
    """One file, through the page cache, and synced."""
    piece = os.urandom(1 << 20)
    started, cpu = time.time(), time.process_time()
    with (work.root / f"plain-{work.number}").open("wb", buffering=0) as file:
        for left in range(size_bytes, 0, -len(piece)):
            file.write(piece[:left])
        os.fsync(file.fileno())
    return Done(started, time.time(), time.process_time() - cpu, size_bytes)


def _program(module: str, *words: str) -> str:
    environ = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-m", module, *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environ).stdout


def _scanned(repository: Path, topic: str) -> None:
    with logkeep.open(str(repository)) as opened:
        for _ in opened.backup("latest").topic(topic).scan().to_batches():
            pass


def _consumed(kafka: EmbeddedKafka, load: Load) -> None:
    """The same columns, some thousand records at a time."""
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "bench", "enable.auto.commit": False}
    consumer = Consumer({**settings, "fetch.message.max.bytes": 1 << 20})
    with closing(consumer):
        consumer.assign([TopicPartition(load.topic, number, 0) for number in range(load.partitions)])
        for _ in _columns(consumer, load.records):
            pass


def _columns(consumer: Consumer, records: int) -> Iterator[pa.RecordBatch]:
    while records > 0:
        messages = consumer.consume(_TOGETHER, 10)
        records -= len(messages)
        columns = [
            pa.array([m.partition() for m in messages], pa.int32()),
            pa.array([m.offset() for m in messages], pa.int64()),
            pa.array([m.timestamp()[1] for m in messages], pa.timestamp("ms", tz="UTC")),
            pa.array([m.key() for m in messages], pa.binary()),
            pa.array([m.value() for m in messages], pa.binary()),
            pa.array([m.headers() or [] for m in messages], pa.list_(pa.struct({"k": pa.string(), "v": pa.binary()}))),
        ]
        yield pa.RecordBatch.from_arrays(columns, names=["partition", "offset", "time", "key", "value", "headers"])


def _searched(archive: Archive, topic: str) -> None:
    question = RecordQuestion(topic, search=RecordSearch(contains=b"a text that no record has"))
    with open_backup(archive.place, "latest", "show", utc_now, random_token) as view:
        found = find_records(view, question, ScanCounters())
    assert found.records == ()


def _both(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The least CPU seconds of each, in turns."""
    best = [float("inf")] * 2
    for _ in range(rounds):
        for number, work in enumerate((ours, theirs)):
            began = time.process_time()
            work()
            best[number] = min(best[number], time.process_time() - began)
    return best[0], best[1]


def _row(name: str, records: int, seconds: dict[str, float]) -> None:
    """Records per second of each, and how many times faster ours is."""
    ours = seconds["ours"]
    shown = [f"{each} {records / taken / 1e6:.2f} ({taken / ours:.2f} x)" for each, taken in seconds.items()]
    print(f"{name}, M records/s: {', '.join(shown)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--only", nargs="+", choices=COMPARISONS, default=COMPARISONS)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    cache = cache_dir(os.environ, Path.home())
    warm()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.directory)))
        kafka = stack.enter_context(OptimisedKafka(directory / "broker", cache))
        spark = stack.enter_context(closing(SparkEngine(SparkSettings(cache, f"local[{WORKERS}]"))))
        engine = TimedEngine(spark, directory / "notes", lambda: client_cpu_s(kafka.pid or -1))
        bench = Bench(kafka, engine, directory, ",".join(map(str, CONNECTORS.files(cache))), options.rounds)
        fill(kafka, Load("warm-up", 1000, _WARM_UP_MEGABYTES))
        for _ in range(WORKERS):
            bench.dataset("warm-up", "avro")
        for size in options.sizes:
            bench.compare(Load(f"{size}-bytes", size, options.megabytes), options.only)


if __name__ == "__main__":
    main()
