"""What does it cost to compare the last archived batch of every log? Bytes of state, requests, bytes fetched, seconds.

    python -m benchmarks.kafka_last_batches [--partitions 1000] [--batch-bytes 1000 1048576] [--directory DIR]

The first table counts on values: the cluster record of 1,000 and 10,000 logs with and without their last batches, and
the requests to one leader. The second asks one real embedded broker for the last batch of each partition of one topic,
and takes two whole backups: a first one, and one without news, which is the comparison and all other questions.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from uuid import UUID

import msgspec
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.backup.continuity.last_batches import BatchRequest, divide_into_requests, fetch_again
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.logs.log_traits import LogTraits
from logkeep.kafka.record.documents import ClusterRecord, PartitionRecord, TopicRecord
from logkeep.model.cache import cache_dir
from logkeep.repository.chain.documents import seal
from tests.support.kafka.whole_backups import Archive, new_place

ID = UUID(int=7)
SIZES = (1_000, 1 << 20)


def last_batch(size: int) -> LastBatch:
    """Fields of usual length."""
    return LastBatch(
        base_offset=123_456_780,
        last_offset=123_456_789,
        leader_epoch=17,
        size=size,
        crc=3_735_928_559,
        records=10,
        base_time_ms=1_763_424_000_000,
        max_time_ms=1_763_424_000_123,
        attributes=4,
        producer_id=2_011,
        producer_epoch=0,
        base_sequence=123_456,
    )


def record_bytes(logs: int, batch: LastBatch | None) -> int:
    rows = tuple(
        PartitionRecord(
            "orders", p, ID.hex, 0, 123_456_790, 123_456_790, 17, 123_456_790, traits=LogTraits(1 << 20, ("zstd",)),
            last_batch=batch,
        )
        for p in range(logs)
    )  # fmt: skip
    topics = (TopicRecord("orders", ID.hex, False, logs, 3, {}),)
    record = ClusterRecord(
        repository="r", source="s", id=1, cluster_id="c", topics=topics, logs=rows, open_transactions=(), groups=(),
        acls=None, quotas=(),
    )  # fmt: skip
    return len(seal(record))


def count() -> None:
    print("| logs | batch | record before | with last batches | per log | requests | fetched |")
    print("|---|---|---|---|---|---|---|")
    for logs in (1_000, 10_000):
        for size in SIZES:
            batch = last_batch(size)
            before, after = record_bytes(logs, None), record_bytes(logs, batch)
            wanted = {TopicPartition("orders", p): BatchRequest(ID, batch) for p in range(logs)}
            requests = len(list(divide_into_requests(wanted, list(wanted))))
            per_log = (after - before) / logs
            fetched = f"{logs * size / 1e6:,.0f} MB"
            print(f"| {logs:,} | {size:,} B | {before:,} | {after:,} | {per_log:.0f} B | {requests:,} | {fetched} |")


def fill(kafka: EmbeddedKafka, topic: str, partitions: int, size: int) -> None:
    """One batch of about this size in each partition."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(120)
    limits = {"message.max.bytes": 2 << 20, "linger.ms": 0, "queue.buffering.max.kbytes": 262_144}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, **limits})
    value = os.urandom(size - 80)
    for partition in range(partitions):
        while True:
            try:
                producer.produce(topic, value, None, partition)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(300):
        raise SystemExit("the broker did not take everything")


def measure(kafka: EmbeddedKafka, directory: Path, partitions: int, size: int) -> None:
    topic = f"batches-{size}"
    fill(kafka, topic, partitions, size)
    archive = Archive(kafka.bootstrap, new_place(directory / topic))
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        done = archive.back_up(topic)
        seconds.append(time.perf_counter() - began)
    known = {TopicPartition(r.topic, r.partition): r for r in archive.record(done.entry.id).logs}
    with Cluster(ClientSettings(endpoints(kafka.bootstrap))) as cluster:
        found = cluster.metadata([topic]).topic(topic)
        if found is None:
            raise SystemExit(topic)
        wanted = {log: BatchRequest(found.id, r.last_batch) for log, r in known.items() if r.last_batch}
        began = time.perf_counter()
        same = sum(each.at_leader.batch == wanted[log].batch for log, each in fetch_again(cluster, wanted).items())
        took = time.perf_counter() - began
    requests = len(list(divide_into_requests(wanted, list(wanted))))
    idle = min(seconds[1:])
    print(
        f"| {partitions:,} | {size:,} B | {same:,} same | {requests:,} requests | {took:.2f} s | "
        f"first backup {seconds[0]:.1f} s | without news {idle:.1f} s |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--batch-bytes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--directory", type=Path)
    asked = parser.parse_args()
    count()
    print(f"one last batch as JSON: {len(msgspec.json.encode(last_batch(1_000)))} bytes")
    with tempfile.TemporaryDirectory(dir=asked.directory) as name:
        directory = Path(name)
        limits = {"message.max.bytes": str(4 << 20), "num.partitions": "1"}
        with EmbeddedKafka(directory / "broker", cache_dir(os.environ, Path.home()), properties=limits) as kafka:
            for size in asked.batch_bytes:
                measure(kafka, directory, asked.partitions, size)


if __name__ == "__main__":
    main()
