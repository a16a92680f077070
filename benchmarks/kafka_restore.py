"""How fast does a backup come back? Against Apache's producer and consumer, a bare loop, and confluent-kafka.

    python -m benchmarks.kafka_restore [--megabytes 300] [--rounds 1] [--only NAME,...] [--directory DIR]

One real embedded broker, topics of four partitions written by Apache's ProducerPerformance and archived by a whole
backup; then everything in one run. Restores are whole ones (`KafkaRestore`) into new topics on a warm local Spark with
two workers: their clock runs from the beginning of the first unit to the end of the last, without the proof, which is
run and counted apart. CPU seconds are those of all client processes, the JVM of Spark included, while the job runs.

ProducerPerformance runs with all of Java's optimisations, acks=all and idempotent, counted after its first third: with
the batch size of the archive, making up its records as it does by default; and as fast as we could make it, with
larger batches and requests and its records from a file. The bare loop sends the same archived bytes and does nothing
else. Sizes are payload for all, so that records per second and MB/s have the same ratio. Read the ratios: the broker
shares the machine.
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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
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
from logkeep.formats.warm import warm
from logkeep.kafka.restore import estimate
from logkeep.kafka.restore.backup_view import view_backup
from logkeep.kafka.restore.choice import Choice
from logkeep.kafka.restore.plan import Wishes
from logkeep.kafka.restore.preparing import Chance, RestoreWish, prepare
from logkeep.kafka.restore.restore import Done, KafkaRestore
from logkeep.kafka.restore.units import Offsets
from logkeep.kafka.settings import ClientSettings, endpoints
from logkeep.model.time import random_token, utc_now
from logkeep.repository import layout
from logkeep.repository.fold import BackupEntry
from logkeep.spark.cache import cache_dir
from logkeep.spark.engine import SparkEngine
from logkeep.spark.settings import SparkSettings
from tests.kafka.whole import Archive, new_place

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


@dataclass(frozen=True)
class Figures:
    """Of one restore or proof: of payload, if it has a load."""

    megabytes: float
    span: Span

    @property
    def speed(self) -> float:
        return self.megabytes / self.span.seconds

    @property
    def cpu_s_per_gb(self) -> float:
        return self.span.cpu_s / self.megabytes * 1000


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

    def restored(self, entry: BackupEntry, topic: str, offsets: Offsets) -> tuple[Done, Span]:
        """Into a new topic, without the proof."""
        name = self.new_name(topic)
        choice = Choice((topic,), renames=(f"{topic}={name}",))
        wish = RestoreWish(choice, Wishes(offsets=offsets, parts=("data",), prove=False))
        view = view_backup(self.archive.place, entry)
        prepared = prepare(view, wish, self._settings, lambda _: self.engine, Chance(utc_now, random_token))
        assert not prepared.refusals, prepared.refusals
        self.engine.span()
        done = self._task.begin(prepared, wish, self.engine, {})
        assert done.good, done.receipt
        return done, self.engine.span()

    def proven(self, done: Done) -> Span:
        """Of the same records: resuming what has ended compares it once more."""
        stored = self._task.stored(done.restore_id)
        again = self._task.resume(stored, self._task.view(stored), lambda _: self.engine)
        assert again.good, again.receipt
        return self.engine.span()

    def new_name(self, topic: str) -> str:
        return f"{topic}-{next(self._numbers)}"

    def into_new(self, topic: str, partitions: int, work: Callable[[str], SpeedT]) -> SpeedT:
        """The best of some rounds, each into a topic of its own that is deleted again."""
        found = []
        for _ in range(self.rounds):
            name = self.new_name(topic)
            create(self.kafka, name, partitions)
            found.append(work(name))
            delete(self.kafka, name)
        return max(found)


class Peer(NamedTuple):
    """Of payload. `cpu_s_per_gb` is None where it is another program's business."""

    speed: float
    cpu_s_per_gb: float | None = None


class Comparison:
    """All that is measured of one workload."""

    def __init__(self, bench: Bench, load: Load) -> None:
        self._bench, self._load = bench, load
        self._payload_mb = load.records * load.record_bytes / 1e6
        fill(bench.kafka, load)
        self._entry = bench.backed_up(load.topic)

    def ours(self) -> dict[str, Figures]:
        """The best restore of both kinds and the best proof; kinds take turns, so that what disturbs hits both."""
        best: dict[str, Figures] = {}
        for _ in range(self._bench.rounds):
            for offsets in (Offsets.TRANSLATE, Offsets.PRESERVE):
                done, span = self._bench.restored(self._entry, self._load.topic, offsets)
                proof = self._bench.proven(done)
                delete(self._bench.kafka, done.plan.topics[0].name)
                for name, each in ((str(offsets), span), ("proof", proof)):
                    found = Figures(self._payload_mb, each)
                    best[name] = max(best.get(name, found), found, key=lambda f: f.speed)
        return best

    def peers(self) -> dict[str, Peer]:
        load, bench = self._load, self._bench
        same = {**_SAFE, "batch.size": load.batch_bytes, "linger.ms": 20, "compression.type": load.codec}
        found = {"same": Peer(self._apache(same, None))}
        payloads = bench.directory / f"payloads-{load.topic}"
        _write_payloads(payloads, load.record_bytes)
        best = [self._apache({**_SAFE, **more, "compression.type": load.codec}, payloads) for more in _BEST]
        found["best"] = max(found["same"], *map(Peer, best))
        found["consumer"] = Peer(max(consumer_performance(bench.kafka, load) for _ in range(bench.rounds)))
        segments = self._segments()
        wire_mb = sum(path.stat().st_size for some in segments for path in some) / 1e6
        for connections in (1, 2):
            work = partial(fastest, bench.kafka.bootstrap, segments=segments, connections=connections)
            bare, share = bench.into_new(load.topic, load.partitions, work), self._payload_mb / wire_mb
            found[f"bare {connections}"] = Peer(bare.mb_per_s * share, bare.cpu_s_per_gb / share)
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
    """The lines of one workload."""
    comparison = Comparison(bench, load)
    ours, peers, confluent = comparison.ours(), comparison.peers(), comparison.confluent()
    records = 1e3 / load.record_bytes
    print(
        f"\n{load.record_bytes} B, {load.codec}, {load.batch_bytes // 1000} kB batches, {load.megabytes} MB of payload"
    )
    print("\n| what | MB/s | thousand records/s | CPU s/GB | peak of a worker, MB |\n|---|---|---|---|---|")
    for name, figures in ours.items():
        print(
            f"| {name} | {figures.speed:.0f} | {figures.speed * records:,.0f} | {figures.cpu_s_per_gb:.2f}"
            f" | {figures.span.peak_mb:.0f} |"
        )
    for name, (speed, cpu_s) in {**peers, "confluent-kafka": Peer(confluent)}.items():
        print(f"| {name} | {speed:.0f} | {speed * records:,.0f} | {'' if cpu_s is None else f'{cpu_s:.2f}'} | |")
    translate, preserve, proof = (ours[name] for name in ("translate", "preserve", "proof"))
    bare, same = max(peers["bare 1"], peers["bare 2"]), peers["same"].speed
    ratios = {
        "restore ÷ ProducerPerformance, same batch size": translate.speed / same,
        "restore ÷ ProducerPerformance, its best": translate.speed / peers["best"].speed,
        "bare loop ÷ ProducerPerformance, same batch size": bare.speed / same,
        "restore ÷ bare loop": translate.speed / bare.speed,
        "restore ÷ bare loop, CPU per GB": translate.cpu_s_per_gb / (bare.cpu_s_per_gb or 1),
        "time of preserve ÷ translate": translate.speed / preserve.speed,
        "proof ÷ ConsumerPerformance": proof.speed / peers["consumer"].speed,
        "restore ÷ confluent-kafka in a loop": translate.speed / confluent,
    }
    print("\n| ratio | |\n|---|---|")
    for name, ratio in ratios.items():
        print(f"| {name} | {ratio:.2f} |", flush=True)


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
        ("markers", _MARKERS, estimate.MARKERS_PER_S, with_lone_markers),
        ("leading", _LEADING, estimate.FILLERS_PER_S, after_a_first_offset),
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
