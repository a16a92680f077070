"""How fast is a backup of a Kafka topic to S3? Beside a plain boto3 upload of as much, and a backup to a directory.

    python -m benchmarks.s3_backup [--megabytes 500] [--rounds 2]

One real broker and one real S3 server (SeaweedFS) on this host: they share its cores with the client, so read the
ratios. The backup runs in process, one unit at a time, from the first question to the commit, and once more as the
command with its start. The upload is `upload_fileobj` as it comes (parts of 8 MiB, ten threads) of as many objects as
the topic has partitions. Each round has a new S3 server: this one does not reuse the space of deleted objects at once.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from benchmarks.kafka_workload import PARTITIONS, Load, OptimisedKafka, fill
from benchmarks.s3_stream import BUCKET, boto3_upload
from logkeep.model.cache import cache_dir
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.chain.format import StoreFacts
from logkeep.store.access import open_store
from logkeep.store.retrying import RetryingStore
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.servers.s3 import S3Server, seaweed

_TOPIC = "events"
_PIECE_BYTES = 4 << 20


class Bench:
    def __init__(self, kafka: OptimisedKafka, server: S3Server, directory: Path, size_bytes: int) -> None:
        self.kafka, self.server, self.directory, self.size_bytes = kafka, server, directory, size_bytes

    def plain_upload(self) -> None:
        piece = os.urandom(_PIECE_BYTES)
        for _ in range(PARTITIONS):
            boto3_upload(self.server, piece, self.size_bytes // PARTITIONS)

    def backup_to_s3(self) -> None:
        store = RetryingStore(open_store(self.server.url(BUCKET, random_token())))
        repository = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token)
        Archive(self.kafka.bootstrap, repository.place("prod")).back_up(_TOPIC)

    def command_to_s3(self) -> None:
        url = self.server.url(BUCKET, random_token())
        create_repository(open_store(url), StoreFacts(True, True, True), utc_now(), random_token)
        where = ["-r", url, "--source", "prod", "--bootstrap-servers", self.kafka.bootstrap, "--topics", _TOPIC]
        command = [sys.executable, "-m", "logkeep.cli", "kafka", "backup", *where, "--engine", "inline", "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def backup_to_directory(self) -> None:
        root = self.directory / "repository"
        Archive(self.kafka.bootstrap, new_place(root)).back_up(_TOPIC)
        shutil.rmtree(root)

    def round(self) -> dict[str, float]:
        ways = (self.plain_upload, self.backup_to_s3, self.command_to_s3, self.backup_to_directory)
        return {way.__name__: _timed(way) for way in ways}


def _timed(way: Callable[[], None]) -> float:
    os.sync()
    started = time.perf_counter()
    way()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kafka = stack.enter_context(OptimisedKafka(directory / "broker", cache_dir(os.environ, Path.home())))
        fill(kafka, Load(_TOPIC, 1000, options.megabytes))
        rounds = []
        for number in range(options.rounds):
            with seaweed(directory / f"s3-{number}") as server:
                server.make_bucket(BUCKET)
                bench = Bench(kafka, server, directory, options.megabytes * 1_000_000)
                bench.backup_to_directory()  # loads what the first backup of a process loads
                rounds.append(bench.round())
    print(f"{options.megabytes} MB, median of {options.rounds}")
    median = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
    for name, seconds in median.items():
        rate, ratio = options.megabytes / seconds, median["plain_upload"] / seconds
        print(f"{name:20} {seconds:6.2f} s  {rate:5.0f} MB/s  {ratio:5.2f}x plain upload")


if __name__ == "__main__":
    main()
