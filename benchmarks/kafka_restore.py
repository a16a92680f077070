"""How fast does a backup come back? Against Apache's producer and consumer, a bare loop, and confluent-kafka.

    python -m benchmarks.kafka_restore [--megabytes 300] [--rounds 1] [--only NAME,...] [--directory DIR]

One real embedded broker, topics of four partitions written by Apache's ProducerPerformance and archived by a whole
backup; then everything in one run. Restores are whole ones (`KafkaRestore`) into new topics on a warm local Spark with
two workers: their clock runs from the beginning of the first unit to the end of the last, without the proof, which is
run and counted apart. CPU seconds are those of all client processes, the JVM of Spark included, while the job runs.

ProducerPerformance runs with all of Java's optimisations, acks=all and idempotent, counted after its first third: with
the batch size of the archive, making up its records as it does by default; and as fast as we could make it, with
larger batches and requests and its records from a file. The bare loop sends the same archived bytes and does nothing
else. Sizes are payload for all, so that records per second and MB/s have the same ratio. Before each of them the disk
writes what the one before has left. Read the ratios: the broker shares the machine, and all take turns in every round.
"""

import argparse
import itertools
import os
import random
import string
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

from benchmarks.client_cpu import client_cpu_s
from benchmarks.confluent_loop import confluent_records_per_s
from benchmarks.kafka_workload import (
    Load,
    OptimisedKafka,
    consumer_performance,
    create,
    delete,
    fill,
    producer_performance,
)
from benchmarks.raw_produce import Fastest, fastest
from benchmarks.restore_fillings import after_a_first_offset, with_lone_markers
from benchmarks.restore_growth import growth, tell
from benchmarks.timed import Span, TimedEngine
from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.settings import SparkSettings
from logkeep.formats.warm import warm
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.record.backup_view import view_backup
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.kafka.restore.plan import duration
from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.kafka.restore.plan.values import PlanOptions
from logkeep.kafka.restore.prepare import ClockAndTokens, KafkaRestoreOptions, prepare
from logkeep.kafka.restore.run import KafkaRestore, KafkaRestoreDone
from logkeep.model.cache import cache_dir
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain import layout
from logkeep.repository.chain.fold import BackupEntry
from tests.support.kafka.whole_backups import Archive, new_place

WORKERS = 2
SpeedT = TypeVar("SpeedT", float, Fastest)
LOADS = {
    "100": (100, 235_000, "none"),
    "1000": (1000, 235_000, "none"),
    "small": (100, 16_000, "none"),
    "zstd": (100, 235_000, "zstd"),
}
_SAFE: dict[str, str | int] = {"acks": "all", "enable.idempotence": "true", "buffer.memory": 134_217_728}
_BEST: tuple[dict[str, str | int], ...] = (
    {"batch.size": 235_000, "linger.ms": 20},
    {"batch.size": 900_000, "linger.ms": 50, "max.request.size": 4_000_000, "send.buffer.bytes": 4_000_000},
)
_MARKERS = 600
_LEADING = 30_000_000
_CONFLUENT_S = 3.0


def settle() -> None:
    """What an earlier part has left to the kernel to write is not the next one's burden, whoever comes next."""
    os.sync()


class Bench:
    """A broker, a warm engine, a repository, and a directory for what they make."""

    def __init__(self, kafka: OptimisedKafka, engine: SparkEngine, directory: Path, rounds: int) -> None:
        self.kafka, self.directory, self.rounds = kafka, directory, rounds
        self.engine = TimedEngine(engine, directory / "notes", lambda: client_cpu_s(kafka.pid or -1))
        self.archive = Archive(kafka.bootstrap, new_place(directory / "repository"))
        self._settings = ClientSettings(endpoints(kafka.bootstrap))
        self._task = KafkaRestore(self.archive.place, self.archive.place, self._settings, utc_now, random_token)
        self._numbers = itertools.count()

    def backed_up(self, topic: str) -> BackupEntry:
        """By this process: what a backup takes of memory is not to be found in the workers that restore."""
        return self.archive.back_up(topic).entry

    def restored(self, entry: BackupEntry, topic: str, offsets: Offsets) -> tuple[KafkaRestoreDone, Span]:
        """Into a new topic, without the proof."""
        name = self.new_name(topic)
        choice = RestoreSelection((topic,), renames=(f"{topic}={name}",))
        wish = KafkaRestoreOptions(choice, PlanOptions(offsets=offsets, parts=("data",), prove=False))
        view = view_backup(self.archive.place, entry)
        prepared = prepare(view, wish, self._settings, lambda _: self.engine, ClockAndTokens(utc_now, random_token))
        assert not prepared.refusals, prepared.refusals
        self.engine.span()
        settle()
        done = self._task.begin(prepared, wish, self.engine, {})
        assert done.good, done.receipt
        return done, self.engine.span()

    def proven(self, done: KafkaRestoreDone) -> Span:
        """Of the same records: resuming what has ended compares it once more."""
        stored = self._task.stored(done.restore_id)
        settle()
        again = self._task.resume(stored, self._task.view(stored), lambda _: self.engine)
        assert again.good, again.receipt
        return self.engine.span()

    def new_name(self, topic: str) -> str:
        return f"{topic}-{next(self._numbers)}"

    def into_new(self, topic: str, partitions: int, work: Callable[[str], SpeedT]) -> SpeedT:
        """Into a topic of its own that is deleted again."""
        name = self.new_name(topic)
        create(self.kafka, name, partitions)
        settle()
        found = work(name)
        delete(self.kafka, name)
        return found


class Speed(NamedTuple):
    """Of payload."""

    mb_per_s: float
    cpu_s_per_gb: float | None = None
    """None where it is another program's business."""
    peak_mb: float | None = None
    """Of a worker."""


Round = dict[str, Speed]
"""What everyone did, one right after the other."""


class Comparison:
    """All that is measured of one workload."""

    def __init__(self, bench: Bench, load: Load) -> None:
        self._bench, self._load = bench, load
        self._payload_mb = load.records * load.record_bytes / 1e6
        self._payloads = bench.directory / f"payloads-{load.topic}"
        _write_payloads(self._payloads, load.record_bytes)
        fill(bench.kafka, load)
        self._entry = bench.backed_up(load.topic)

    def round(self, number: int) -> Round:
        """Everyone once: what disturbs the machine for a while disturbs all of them."""
        found: Round = {}
        for offsets in sorted((Offsets.TRANSLATE, Offsets.PRESERVE), reverse=number % 2 == 0):
            done, span = self._bench.restored(self._entry, self._load.topic, offsets)
            found[str(offsets)] = self._speed(span)
            found["proof"] = self._speed(self._bench.proven(done))
            delete(self._bench.kafka, done.plan.topics[0].name)
        return {**found, **self._peers()}

    def _speed(self, span: Span) -> Speed:
        return Speed(self._payload_mb / span.seconds, span.cpu_s / self._payload_mb * 1000, span.peak_mb)

    def _peers(self) -> Round:
        load, bench = self._load, self._bench
        same = {**_SAFE, "batch.size": load.batch_bytes, "linger.ms": 20, "compression.type": load.codec}
        found = {"same": Speed(self._apache(same, None))}
        best = [self._apache({**_SAFE, **more, "compression.type": load.codec}, self._payloads) for more in _BEST]
        found["best"] = max(found["same"], *map(Speed, best))
        settle()
        found["consumer"] = Speed(consumer_performance(bench.kafka, load))
        segments = self._segments()
        share = self._payload_mb * 1e6 / sum(path.stat().st_size for some in segments for path in some)
        for connections in (1, 2):
            work = partial(fastest, bench.kafka.bootstrap, segments=segments, connections=connections)
            bare = bench.into_new(load.topic, load.partitions, work)
            found[f"bare {connections}"] = Speed(bare.mb_per_s * share, bare.cpu_s_per_gb / share)
        found["confluent-kafka"] = Speed(self.confluent())
        return found

    def confluent(self) -> float:
        load = self._load

        def work(name: str) -> float:
            return confluent_records_per_s(self._bench.kafka.bootstrap, name, load, _CONFLUENT_S)

        return self._bench.into_new(load.topic, load.partitions, work) * load.record_bytes / 1e6

    def _apache(self, settings: dict[str, str | int], payloads: Path | None) -> float:
        def work(name: str) -> float:
            return producer_performance(self._bench.kafka, name, self._load, settings, payloads)

        return self._bench.into_new(self._load.topic, self._load.partitions, work) * self._load.record_bytes / 1e6

    def _segments(self) -> list[list[Path]]:
        archive, root = self._bench.archive, self._bench.directory / "repository"
        rows = archive.segments(self._entry.id)
        return [
            [root / layout.segment(archive.place.source, s) for s in segments]
            for log, segments in sorted(rows.items(), key=lambda each: each[0].partition)
        ]


def _write_payloads(file: Path, size: int) -> None:
    chance = random.Random(1)
    file.write_text("\n".join("".join(chance.choices(string.ascii_uppercase, k=size)) for _ in range(2000)))


def compare(bench: Bench, load: Load) -> None:
    """The lines of one workload: the best of each, and the middle of what the rounds give as ratios."""
    comparison = Comparison(bench, load)
    rounds = [comparison.round(number) for number in range(bench.rounds)]
    print(
        f"\n{load.record_bytes} B, {load.codec}, {load.batch_bytes // 1000} kB batches, {load.megabytes} MB of payload"
    )
    print("\n| what | MB/s | thousand records/s | CPU s/GB | peak of a worker, MB |\n|---|---|---|---|---|")
    for name in rounds[0]:
        some = [each[name] for each in rounds]
        speed = max(each.mb_per_s for each in some)
        cpu_s = min((each.cpu_s_per_gb for each in some if each.cpu_s_per_gb is not None), default=None)
        peak = max((each.peak_mb for each in some if each.peak_mb is not None), default=None)
        shown = "" if cpu_s is None else f"{cpu_s:.2f}", "" if peak is None else f"{peak:.0f}"
        print(f"| {name} | {speed:.0f} | {speed * 1e3 / load.record_bytes:,.0f} | {' | '.join(shown)} |")
    print(f"\n| ratio, of {len(rounds)} rounds | least | middle | most |\n|---|---|---|---|")
    ratios = [_ratios(each) for each in rounds]
    for name in ratios[0]:
        values = sorted(each[name] for each in ratios)
        print(f"| {name} | {values[0]:.2f} | {median(values):.2f} | {values[-1]:.2f} |", flush=True)


def _ratios(of: Round) -> dict[str, float]:
    restore, preserve = of["translate"], of["preserve"]
    bare = max(of["bare 1"], of["bare 2"])
    return {
        "restore ÷ ProducerPerformance, same batch size": restore.mb_per_s / of["same"].mb_per_s,
        "restore ÷ ProducerPerformance, its best": restore.mb_per_s / of["best"].mb_per_s,
        "bare loop ÷ ProducerPerformance, same batch size": bare.mb_per_s / of["same"].mb_per_s,
        "bare loop ÷ ProducerPerformance, its best": bare.mb_per_s / of["best"].mb_per_s,
        "restore ÷ bare loop": restore.mb_per_s / bare.mb_per_s,
        "restore ÷ bare loop, CPU per GB": (restore.cpu_s_per_gb or 0) / (bare.cpu_s_per_gb or 1),
        "time of preserve ÷ translate": restore.mb_per_s / preserve.mb_per_s,
        "proof ÷ ConsumerPerformance": of["proof"].mb_per_s / of["consumer"].mb_per_s,
        "restore ÷ confluent-kafka in a loop": restore.mb_per_s / of["confluent-kafka"].mb_per_s,
    }


def memory(bench: Bench, megabytes: int) -> None:
    """What workers need that have done nothing else yet: to send batches as they are, then to decode them all."""
    load = Load("memory", 100, megabytes)
    fill(bench.kafka, load)
    done, sent = bench.restored(bench.backed_up(load.topic), load.topic, Offsets.TRANSLATE)
    proven = bench.proven(done)
    print("\n| new workers | peak of one, MB |\n|---|---|")
    print(f"| sending as it is | {sent.peak_mb:.0f} |\n| the proof after it | {proven.peak_mb:.0f} |", flush=True)


def fillings(bench: Bench) -> None:
    """What keeping offsets costs where there is something to fill, in one partition."""
    print("\n| filling, one partition | per second | what the plan reckons with |\n|---|---|---|")
    for topic, count, known, make in (
        ("markers", _MARKERS, duration.MARKERS_PER_S, with_lone_markers),
        ("leading", _LEADING, duration.FILLERS_PER_S, after_a_first_offset),
    ):
        create(bench.kafka, topic, 1)
        make(bench.kafka.bootstrap, topic, count)
        entry = bench.backed_up(topic)
        done, span = bench.restored(entry, topic, Offsets.PRESERVE)
        bench.proven(done)
        print(f"| {topic} | {count / span.seconds:,.0f} | {known:,.0f} |", flush=True)


def growing(bench: Bench, record_bytes: int, megabytes: int) -> None:
    """What a restore costs once, and what each GB costs."""

    def restored(size: int) -> list[Span]:
        load = Load(f"growing-{record_bytes}-{size}", record_bytes, size)
        fill(bench.kafka, load)
        entry, spans = bench.backed_up(load.topic), []
        for _ in range(bench.rounds):
            done, span = bench.restored(entry, load.topic, Offsets.TRANSLATE)
            delete(bench.kafka, done.plan.topics[0].name)
            spans.append(span)
        delete(bench.kafka, load.topic)
        return spans

    tell(f"{record_bytes} B, growing topics", growth(megabytes, restored))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default=",".join([*LOADS, "growth", "fillings"]), help="some of these")
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    cache, wanted = cache_dir(os.environ, Path.home()), options.only.split(",")
    warm()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.directory)))
        kafka = stack.enter_context(OptimisedKafka(directory / "broker", cache))
        engine = stack.enter_context(closing(SparkEngine(SparkSettings(cache, f"local[{WORKERS}]"))))
        bench = Bench(kafka, engine, directory, options.rounds)
        print(f"load average {os.getloadavg()[0]:.1f} at the beginning")
        began = time.monotonic()
        memory(bench, options.megabytes)
        for name in (name for name in LOADS if name in wanted):
            size, batch, codec = LOADS[name]
            compare(bench, Load(f"load-{name}", size, options.megabytes, batch, codec))
        if "growth" in wanted:
            for size in (100, 1000):
                growing(bench, size, options.megabytes)
        if "fillings" in wanted:
            fillings(bench)
        print(f"\nload average {os.getloadavg()[0]:.1f} at the end, after {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
