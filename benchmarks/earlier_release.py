"""Is an ordinary backup of Kafka as fast as in an earlier release? Whole commands of both, taking turns.

    python -m benchmarks.earlier_release --before DIR/src [--megabytes 1000] [--rounds 6] [--engine inline]

One real broker with a topic of four partitions. Each round runs a first `kafka backup` into a new directory, and a
second one that finds nothing new, with the sources of `--before` and with ours; who begins changes from round to round.
A round before them fills the caches. Bytecode of both should exist (`python -m compileall`). Read the ratios: ours
divided by the earlier one of the same round.
"""

import argparse
import os
import shutil
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import logkeep
from benchmarks.engine_choice import Cost
from benchmarks.kafka_workload import Load, OptimisedKafka, fill
from benchmarks.whole_commands import Command, run
from logkeep.model.cache import cache_dir

_BEFORE, _NOW = "before", "now"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--engine", default="inline")
    options = parser.parse_args()
    trees = {_BEFORE: options.before, _NOW: Path(logkeep.__file__).parent.parent}
    with ExitStack() as stack:
        root, cache = Path(stack.enter_context(tempfile.TemporaryDirectory())), cache_dir(os.environ, Path.home())
        kafka = stack.enter_context(OptimisedKafka(root / "broker", cache))
        fill(kafka, Load("orders", 1000, options.megabytes))
        costs = defaultdict[tuple[str, str], list[Cost]](list)
        for number in range(options.rounds + 1):
            for tree in sorted(trees, reverse=number % 2 == 1):
                found = _backups(trees[tree], root / f"cache-{tree}", root, kafka.bootstrap, options.engine)
                for what, cost in found if number else ():
                    costs[what, tree].append(cost)
                    print(f"{number}, {what}, {tree}: {cost.wall_s:.2f} s, {cost.cpu_s:.2f} CPU s", flush=True)
    print("\n| command | before, s | now, s | ratio | before, CPU s | now, CPU s | ratio |")
    print("|---|---|---|---|---|---|---|")
    for what in dict.fromkeys(what for what, _ in costs):
        columns = "".join(_row(costs[what, _BEFORE], costs[what, _NOW], column) for column in (0, 1))
        print(f"| {what} |{columns}")


def _backups(tree: Path, cache: Path, root: Path, bootstrap: str, engine: str) -> list[tuple[str, Cost]]:
    repository = root / "repository"
    repo = ("-r", str(repository), "--quiet")
    kafka = ("--source", "kafka", "--bootstrap-servers", bootstrap, "--topics", "orders", "--engine", engine)
    run(Command("init", ["init", *repo]), tree, cache)
    words = ["kafka", "backup", *repo, *kafka]
    found = [(what, run(Command(what, words), tree, cache)) for what in ("first", "nothing new")]
    shutil.rmtree(repository)
    return found


def _row(before: list[Cost], now: list[Cost], column: int) -> str:
    earlier, ours = [cost[column] for cost in before], [cost[column] for cost in now]
    ratios = sorted(b / a for a, b in zip(earlier, ours, strict=True))
    middle = f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    return f" {median(earlier):.2f} | {median(ours):.2f} | {middle} |"


if __name__ == "__main__":
    main()
