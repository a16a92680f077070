"""What does the choice of the engine cost or save? Whole commands, as a user types them.

    python -m benchmarks.engine_choice [--megabytes 122 1100] [--rounds 2] [--engines inline auto spark]

One real embedded broker with a topic of four partitions per size. Each line is `logkeep kafka backup` of one topic into
an empty repository in a directory, then `logkeep verify --level data` of it, as processes of their own: wall seconds
and CPU seconds of the process with all that it started, the best of the rounds. Read the ratios.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.kafka_workload import Load, OptimisedKafka, fill
from logkeep.model.cache import cache_dir


class Cost(NamedTuple):
    """Of one command."""

    wall_s: float
    cpu_s: float


def timed(arguments: Sequence[str]) -> Cost:
    """Run one command of Logkeep to its end."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([sys.executable, "-m", "logkeep.cli", *arguments], check=True, stdout=subprocess.DEVNULL)
    wall_s, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def backup_and_verify(kafka: OptimisedKafka, topic: str, engine: str, directory: Path) -> tuple[Cost, Cost]:
    """Into an empty repository, which is removed again."""
    root = directory / "repository"
    timed(["init", "-r", str(root), "--quiet"])
    what = ["-r", str(root), "--engine", engine, "--quiet"]
    backup = timed(["kafka", "backup", *what, "--bootstrap-servers", kafka.bootstrap, "--topics", topic])
    verify = timed(["verify", *what, "--level", "data"])
    shutil.rmtree(root)
    return backup, verify


def compare(kafka: OptimisedKafka, load: Load, engines: Sequence[str], rounds: int, directory: Path) -> None:
    """The lines of one size. Engines take turns, so that a busy minute does not hit one of them alone."""
    fill(kafka, load)
    found: dict[str, list[tuple[Cost, Cost]]] = {engine: [] for engine in engines}
    for _ in range(rounds):
        for engine in engines:
            found[engine].append(backup_and_verify(kafka, load.topic, engine, directory))
    first = min(backup for backup, _ in found[engines[0]])
    for engine in engines:
        backup, verify = (min(costs) for costs in zip(*found[engine], strict=True))
        print(
            f"| {load.megabytes} MB, `--engine {engine}` | {backup.wall_s:.1f} | {backup.cpu_s:.1f}"
            f" | {backup.wall_s / first.wall_s:.2f} | {verify.wall_s:.1f} | {verify.cpu_s:.1f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[122, 1100])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--engines", nargs="+", default=["inline", "auto", "spark"])
    parser.add_argument("--partitions", type=int, default=4)
    options = parser.parse_args()
    print(f"| command | backup, s | CPU s | x {options.engines[0]} | verify, s | CPU s |\n|---|---|---|---|---|---|")
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = OptimisedKafka(directory / "broker", cache_dir(os.environ, Path.home()))
        kafka = stack.enter_context(broker)
        for size in options.megabytes:
            load = Load(f"size-{size}", 1000, size, partitions=options.partitions)
            compare(kafka, load, options.engines, options.rounds, directory)


if __name__ == "__main__":
    main()
