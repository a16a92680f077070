"""What does it cost to compare an archived log with the live one? Against `verify --level records` of the same bytes.

    python -m benchmarks.deletion_compare [--records 2000000] [--keys 500000] [--size 100] [--rounds 3]

One log of one real broker, records of `--size` bytes with `--keys` different keys; nothing is compacted. Both tasks run
in turns, each in a process of its own, over the same objects in a directory: wall and CPU seconds, best of `--rounds`,
and the peak memory of the process. The comparison reads the archive and the live log once each. The bar is 0.5 of
`records`, which reads the archive alone.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.kafka_workload import OptimisedKafka
from logkeep.formats.warm import warm
from logkeep.kafka.admin.offsets import log_bounds
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.deletions.compare_task import DeletionUnit, compare_deletions
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.record.backup_view import view_backup
from logkeep.kafka.verify.records import RecordUnit, covered_segments, decode_pieces
from logkeep.model.cache import cache_dir
from logkeep.repository.access import open_repository
from logkeep.repository.chain.commits import read_chain
from logkeep.store.local.store import LocalStore
from tests.support.kafka.whole_backups import Archive, new_place

TOPIC = "compared"


def fill(kafka: OptimisedKafka, records: int, keys: int, size: int) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    config = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(86_400_000)}
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)])[TOPIC].result(60)
    settings = {"linger.ms": 50, "batch.size": 235_000, "batch.num.messages": 100_000}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, **settings})
    value = os.urandom(size - 20)
    for number in range(records):
        while True:
            try:
                producer.produce(TOPIC, value, b"key %012d" % (number % keys), 0)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(120):
        raise SystemExit("the broker did not take everything")


def measured(task: str, root: Path, bootstrap: str) -> dict[str, float]:
    """In this process: the task once to compile and to fill the page cache, then timed."""
    warm()
    place = open_repository(LocalStore(root)).place("prod")
    view = view_backup(place, read_chain(place).completed[-1])
    (cut,) = view.manifest.cut
    segments = tuple(view.rows.to_segments())
    settings, log = ClientSettings(endpoints(bootstrap)), TopicPartition(TOPIC, 0)
    with Cluster(settings) as cluster:
        found = cluster.metadata([TOPIC]).topic(TOPIC)
        start = log_bounds(cluster, [log])[log].start
    if found is None:
        raise SystemExit(TOPIC)
    comparison = DeletionUnit(
        place, cut.log, found.id, cut.start, cut.end, segments, (), SettingsBrokers(settings),
        found.partitions[0].leader, start, (1, 2),
    )  # fmt: skip
    records = RecordUnit(place, list(covered_segments(place.source, view.manifest, iter(segments))))
    began, cpu = time.perf_counter(), time.process_time()
    if task == "records":
        good = decode_pieces(records, lambda _: None).findings == []
    else:
        result = compare_deletions(comparison, lambda _: None)
        good = not result.problem and result.vanished == 0
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    if not good:
        raise SystemExit("it found something")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"wall": took, "cpu": cpu, "peak": peak, "bytes": sum(s.stored_bytes for s in segments)}


def in_a_process(task: str, root: Path, bootstrap: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.deletion_compare", "--task", task]
    done = subprocess.run([*command, "--root", str(root), "--bootstrap", bootstrap], capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    result: dict[str, float] = json.loads(done.stdout)
    return result


def compare(asked: argparse.Namespace, directory: Path) -> None:
    with OptimisedKafka(directory / "broker", cache_dir(os.environ, Path.home())) as kafka:
        fill(kafka, asked.records, asked.keys, asked.size)
        root = directory / "repo"
        Archive(kafka.bootstrap, new_place(root)).back_up(TOPIC)
        rounds = [
            {task: in_a_process(task, root, kafka.bootstrap) for task in ("records", "compare")}
            for _ in range(asked.rounds)
        ]
    best = {
        task: {what: min(each[task][what] for each in rounds) for what in ("wall", "cpu", "peak", "bytes")}
        for task in ("records", "compare")
    }
    megabytes = best["records"]["bytes"] / 1e6
    print(f"{asked.records:,} records of {asked.size} B, {asked.keys:,} keys, {megabytes:,.0f} MB")
    for task, each in best.items():
        speed = f"{megabytes / each['wall']:6.0f} MB/s, {megabytes / each['cpu']:6.0f} MB per CPU second"
        print(f"{task:8} {speed}, peak {each['peak']:.0f} MiB")
    wall, cpu = (best["records"][what] / best["compare"][what] for what in ("wall", "cpu"))
    print(f"compare to records: {wall:.2f} x wall, {cpu:.2f} x CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=500_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--task", choices=("records", "compare"))
    parser.add_argument("--root", type=Path)
    parser.add_argument("--bootstrap")
    asked = parser.parse_args()
    if asked.task:
        print(json.dumps(measured(asked.task, asked.root, asked.bootstrap)))
        return
    with tempfile.TemporaryDirectory(dir=asked.directory) as name:
        compare(asked, Path(name))


if __name__ == "__main__":
    main()
