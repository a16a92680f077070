"""What do Spark's authentication and encryption cost? Whole commands on a local Spark, with and without them.

    python -m benchmarks.spark_authentication [--megabytes 300] [--rounds 3] [--directory DIR]

One real embedded broker with one topic of four partitions. Each round runs `kafka backup`, `kafka restore` with its
proof and `verify --level data`, first with authentication, then without (the product cannot do that: this script
replaces what it demands). Seconds and CPU seconds are those of the whole command, start and end of Spark included.
Read the ratios.
"""

import argparse
import os
import resource
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from unittest.mock import patch

from benchmarks.kafka_workload import Load, OptimisedKafka, delete, fill
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.model.cache import cache_dir
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.whole_backups import new_place

_SPARK = ("--engine", "spark", "--parallel", "2", "--progress", "never")
_PROTECTION = "logkeep.engine.spark.session.protection"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path)
    asked = parser.parse_args()
    with ExitStack() as stack:
        directory = asked.directory or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        kafka = stack.enter_context(OptimisedKafka(directory / "broker", cache_dir(os.environ, Path.home())))
        load = Load("measured", 1000, asked.megabytes, partitions=4)
        fill(kafka, load)
        _round(kafka, directory / "warm", load.topic)
        seconds: dict[tuple[str, bool], list[tuple[float, float]]] = defaultdict(list)
        for number in range(asked.rounds):
            for authenticated in (True, False):
                with ExitStack() as without:
                    if not authenticated:
                        without.enter_context(patch(_PROTECTION, lambda *_args, **_named: {}))
                    for verb, cost in _round(kafka, directory / f"{number}-{authenticated}", load.topic).items():
                        seconds[verb, authenticated].append(cost)
    _table(seconds)


def _round(kafka: EmbeddedKafka, directory: Path, topic: str) -> dict[str, tuple[float, float]]:
    """Wall and CPU seconds of each command."""
    new_place(directory / "repository")
    commands = Commands(f"file://{directory / 'repository'}", directory)
    broker = ("--bootstrap-servers", kafka.bootstrap, "--topics", topic)
    back, cluster_id = f"back-{directory.name}", _cluster_id(kafka)
    verbs = {
        "backup": ("kafka", "backup", *broker),
        "restore": (
            "kafka",
            "restore",
            "latest",
            *broker,
            "--rename",
            f"{topic}={back}",
            "--confirm-cluster",
            cluster_id,
            "--yes",
        ),
        "verify": ("verify", "--level", "data"),
    }
    costs = {verb: _cost(commands, *words) for verb, words in verbs.items()}
    delete(kafka, back)
    return costs


def _cluster_id(kafka: EmbeddedKafka) -> str:
    with Cluster(ClientSettings(endpoints(kafka.bootstrap))) as cluster:
        return cluster.known().cluster_id


def _cost(commands: Commands, *words: str) -> tuple[float, float]:
    started, cpu = time.monotonic(), _cpu_s()
    commands.json(*words, *_SPARK)
    return time.monotonic() - started, _cpu_s() - cpu


def _cpu_s() -> float:
    """Of this process and of all that have ended below it: the JVM and its workers."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _table(seconds: dict[tuple[str, bool], list[tuple[float, float]]]) -> None:
    print("| command | with, s | without, s | ratio | with, CPU s | without, CPU s | ratio |")
    print("|---|---|---|---|---|---|---|")
    for verb in dict.fromkeys(verb for verb, _ in seconds):
        cells = []
        for figure in (0, 1):
            given, bare = (median(cost[figure] for cost in seconds[verb, each]) for each in (True, False))
            cells += [f"{given:.1f}", f"{bare:.1f}", f"{given / bare:.2f}"]
        print(f"| {verb} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
