"""How fast do small batches come back? Batches of 1, 10 and 100 records: merged, unmerged, and Apache's producer.

    python -m benchmarks.small_batches [--records 60000] [--codecs none,lz4] [--rounds 1]

One real embedded broker, one partition. The records of 100 bytes are written in batches of exactly 1, 10 and 100, and
archived by a whole backup. Then, in each round and one after the other, into new topics: the restore as it is planned
now; the restore of the same plan without a rule, which sends every batch by itself as earlier releases did; and
ProducerPerformance with all of Java's optimisations, acks=all, idempotent, and a `batch.size` for as many records.
Restores run in this process, without the proof. Read the ratios: the broker shares the machine.
"""

import argparse
import itertools
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import msgspec
from confluent_kafka import Producer

from benchmarks.kafka_workload import Load, OptimisedKafka, create, delete, producer_performance
from logkeep.engine.inline import InlineEngine
from logkeep.formats.warm import warm
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.record.backup_view import KafkaBackupView, view_backup
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.kafka.restore.plan.values import PlanOptions
from logkeep.kafka.restore.prepare import ClockAndTokens, KafkaRestoreOptions, PreparedKafkaRestore, prepare
from logkeep.kafka.restore.run import KafkaRestore
from logkeep.model.cache import cache_dir
from logkeep.model.time import random_token, utc_now
from tests.support.kafka.whole_backups import Archive, new_place

RECORD_BYTES = 100
_SAFE: dict[str, str | int] = {"acks": "all", "enable.idempotence": "true", "linger.ms": 0}


def written(kafka: OptimisedKafka, topic: str, records: int, together: int, codec: str) -> None:
    create(kafka, topic, 1)
    settings = {"batch.num.messages": together, "linger.ms": 50, "compression.type": codec, "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, **settings})
    for _ in range(records):
        producer.produce(topic, os.urandom(RECORD_BYTES // 4) * 4, partition=0)
        if len(producer) > 50_000:
            producer.poll(0.1)
    assert producer.flush(600) == 0


class Restores:
    """Restores of one backup into one new topic after the other."""

    def __init__(self, kafka: OptimisedKafka, archive: Archive, view: KafkaBackupView) -> None:
        self._kafka, self._archive, self._view = kafka, archive, view
        self._settings, self._numbers = ClientSettings(endpoints(kafka.bootstrap)), itertools.count()

    def records_per_s(self, topic: str, records: int, *, merge: bool) -> float:
        name = f"{topic}-back-{next(self._numbers)}"
        selection = RestoreSelection((topic,), renames=(f"{topic}={name}",))
        options = PlanOptions(offsets=Offsets.TRANSLATE, parts=("data",), prove=False)
        wish = KafkaRestoreOptions(selection, options)
        clock = ClockAndTokens(utc_now, random_token)
        prepared = prepare(self._view, wish, self._settings, lambda _: InlineEngine(), clock)
        if not merge:
            prepared = _unmerged(prepared)
        place = self._archive.place
        task = KafkaRestore(place, place, self._settings, utc_now, random_token)
        os.sync()
        started = time.monotonic()
        done = task.begin(prepared, wish, InlineEngine(), {})
        took_s = time.monotonic() - started
        assert done.good, done.receipt
        delete(self._kafka, name)
        return records / took_s


def _unmerged(prepared: PreparedKafkaRestore) -> PreparedKafkaRestore:
    logs = tuple(msgspec.structs.replace(log, merge=msgspec.UNSET) for log in prepared.plan.logs)
    return replace(prepared, checked=replace(prepared.checked, plan=msgspec.structs.replace(prepared.plan, logs=logs)))


def apache_records_per_s(kafka: OptimisedKafka, topic: str, records: int, together: int, codec: str) -> float:
    load = Load(topic, RECORD_BYTES, records * RECORD_BYTES // 1_000_000 or 1, partitions=1)
    create(kafka, topic, 1)
    batch_bytes = 1 if together == 1 else 61 + together * (RECORD_BYTES + 8)
    settings = {**_SAFE, "batch.size": batch_bytes, "compression.type": codec}
    found = producer_performance(kafka, topic, load, settings)
    delete(kafka, topic)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=60_000)
    parser.add_argument("--codecs", default="none")
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    warm()
    cache = cache_dir(os.environ, Path.home())
    print(f"{'records of 100 B in batches of':<34}{'merged':>12}{'unmerged':>12}{'Apache':>12}   records/s, and ratios")
    with tempfile.TemporaryDirectory() as directory, OptimisedKafka(Path(directory, "broker"), cache) as kafka:
        for codec, together in itertools.product(asked.codecs.split(","), (1, 10, 100)):
            topic = f"small-{codec}-{together}"
            written(kafka, topic, asked.records, together, codec)
            archive = Archive(kafka.bootstrap, new_place(Path(directory, topic)))
            restores = Restores(kafka, archive, view_backup(archive.place, archive.back_up(topic).entry))
            rows = [
                (
                    restores.records_per_s(topic, asked.records, merge=True),
                    restores.records_per_s(topic, asked.records, merge=False),
                    apache_records_per_s(kafka, f"{topic}-apache-{number}", asked.records, together, codec),
                )
                for number in range(asked.rounds)
            ]
            merged, unmerged, apache = (median(column) for column in zip(*rows, strict=True))
            what = f"{together} ({codec})"
            ratios = f"{merged / unmerged:.1f} x unmerged, {merged / apache:.1f} x Apache"
            print(f"{what:<34}{merged:>12,.0f}{unmerged:>12,.0f}{apache:>12,.0f}   {ratios}", flush=True)


if __name__ == "__main__":
    main()
