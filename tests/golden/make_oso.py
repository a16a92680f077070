"""Writes `oso`: archives that OSO's crate kafka-backup-core 0.25.2 made of a real broker. Once; they are kept for ever.

After `make oso`: `LOGKEEP_OSO_PROGRAM=$PWD/.cache/oso/debug/oso_archive .venv/bin/python -m tests.golden.make_oso`.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import TopicPartition

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.cache import cache_dir
from tests.support.kafka.group_commits import commit
from tests.support.kafka.topic_matrix import Matrix
from tests.support.oso.program import take_backup

PLACE = Path(__file__).parent / "oso"
TOPIC, GROUP, CODECS = "orders", "readers", ("none", "zstd", "lz4")
T = 1_700_000_000_000
Golden = tuple[bytes | None, bytes | None, int, list[tuple[str, bytes | None]]]


def records() -> Iterator[Golden]:
    """Key, value, time, headers; offsets count from 0."""
    for key in (None, b"", b"k"):
        for value in (None, b"", b"v" * 40):
            yield key, value, T, [("a", b"1"), ("a", None), ("", b""), ("ä", b"\xff")]
    for number in range(5):
        yield b"k%d" % number, b"late", T - number, []


def main() -> None:
    with TemporaryDirectory() as scratch:
        directory = Path(scratch)
        with EmbeddedKafka(directory / "broker", cache_dir(os.environ, Path.home())) as kafka:
            made = Matrix(kafka)
            made.create(TOPIC, 2, {"retention.ms": "-1"})
            producer = made.producer()
            for key, value, time_ms, headers in records():
                producer.produce(TOPIC, value, key, 0, headers=list(headers), timestamp=time_ms)
            producer.flush(30)
            commit(kafka.bootstrap, GROUP, [TopicPartition(TOPIC, 0, 7)])
            for codec in CODECS:
                options = {"compression": codec, "segment_max_records": 6, "consumer_group_snapshot": True}
                folder = take_backup(kafka.bootstrap, directory / "a", codec, TOPIC, **options)
                shutil.copytree(folder, PLACE / codec, ignore=shutil.ignore_patterns("offsets.db"))


if __name__ == "__main__":
    main()
