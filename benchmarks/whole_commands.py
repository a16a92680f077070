"""What does a command cost from its start to its end? Wall and CPU seconds, with an empty and with a filled cache.

    python -m benchmarks.whole_commands [--megabytes 122] [--tree before=DIR/src]

One real broker with a topic of four partitions and one real ZooKeeper with 200 nodes. Each line is a command as a user
types it, a process of its own, once with an empty cache directory (cold) and once more (warm), each time with a new
repository. `--tree` names the sources of another release, which run the same commands first. Bytecode of both should
exist (`python -m compileall`). Read the ratios.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient

import logkeep
from benchmarks.engine_choice import Cost
from benchmarks.kafka_workload import Load, OptimisedKafka, fill
from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.model.cache import cache_dir

_TEMPERATURES = ("cold", "warm")
_WITH_FINDINGS = 2
"""The first backup of a bundle whose end no server confirmed ends so."""


class Servers(NamedTuple):
    bootstrap: str
    cluster_id: str
    zookeeper: EmbeddedZooKeeper


class Command(NamedTuple):
    name: str
    arguments: Sequence[str]
    module: str = "logkeep.cli"


def commands(servers: Servers, directory: Path, copy: str) -> Iterator[Command]:
    """In the order in which they can run; `copy` is the topic that the restore makes."""
    repo, quiet = ("-r", str(directory / "repository")), "--quiet"
    kafka = ("--source", "kafka", "--bootstrap-servers", servers.bootstrap)
    back = (*kafka, "--confirm-cluster", servers.cluster_id, "--rename", f"orders={copy}")
    data, host = str(servers.zookeeper.data_dir), f"127.0.0.1:{servers.zookeeper.port}"
    bundles = directory / "bundles"
    bundles.mkdir()
    yield Command("logkeep --help", ["--help"])
    yield Command("version", ["version"])
    yield Command("kafka restore --help", ["kafka", "restore", "--help"])
    yield Command("zookeeper backup --help", ["zookeeper", "backup", "--help"])
    yield Command("config show", ["config", "show"])
    yield Command("init, directory", ["init", *repo, quiet])
    yield Command("kafka backup", ["kafka", "backup", *repo, *kafka, "--topics", "orders", quiet])
    yield Command("kafka backup, nothing new", ["kafka", "backup", *repo, *kafka, "--topics", "orders", quiet])
    yield Command("list", ["list", *repo])
    yield Command("info", ["info", "latest", *repo])
    yield Command("status", ["status", *repo])
    for level in ("files", "data", "records"):
        yield Command(f"verify --level {level}", ["verify", *repo, "--level", level, quiet])
    yield Command("kafka restore --dry-run", ["kafka", "restore", "latest", *repo, *back, "--dry-run"])
    yield Command("kafka restore, with proof", ["kafka", "restore", "latest", *repo, *back, "--yes", quiet])
    yield Command("hold", ["hold", "latest", *repo, "--reason", "audit", quiet])
    yield Command("receipts list", ["receipts", "list", *repo])
    yield Command("prune --dry-run", ["prune", *repo, "--keep-last", "1", "--dry-run"])
    zookeeper = ["zookeeper", "backup", *repo, "--source", "zookeeper", "--data-dir", data, "--zk-host", host, quiet]
    yield Command("zookeeper backup", zookeeper)
    bundle = ["--zk-data-dir", data, "--output-dir", str(bundles), "--backup-id", "one", quiet]
    yield Command("zkbackup backup", ["backup", *bundle], "logkeep.cli.zkbackup")
    yield Command("zkbackup verify", ["verify", "--backup-dir", str(bundles / "one"), quiet], "logkeep.cli.zkbackup")


def run(command: Command, tree: Path, cache: Path) -> Cost:
    """Run one command of a release to its end. Raises RuntimeError if it fails."""
    environ = {**os.environ, "PYTHONPATH": str(tree), "LOGKEEP_CACHE_DIR": str(cache)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", command.module, *command.arguments], env=environ, stdout=subprocess.DEVNULL, check=False
    )
    wall_s, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, _WITH_FINDINGS):
        raise RuntimeError(f"{command.name} ended with {done.returncode}")
    return Cost(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _fill_zookeeper(server: EmbeddedZooKeeper) -> None:
    client = KazooClient(f"127.0.0.1:{server.port}")
    client.start()
    for number in range(200):
        client.create(f"/n{number}", b"x" * 300)
    client.stop()
    client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=122)
    parser.add_argument("--tree", action="append", default=[], metavar="NAME=DIR")
    options = parser.parse_args()
    trees = {name: Path(path) for name, _, path in (text.partition("=") for text in options.tree)}
    trees["now"] = Path(logkeep.__file__).parent.parent
    costs: dict[str, list[Cost]] = {}
    with ExitStack() as stack:
        root, cache = Path(stack.enter_context(tempfile.TemporaryDirectory())), cache_dir(os.environ, Path.home())
        kafka = stack.enter_context(OptimisedKafka(root / "broker", cache))
        zookeeper = stack.enter_context(EmbeddedZooKeeper(root / "zookeeper", cache))
        fill(kafka, Load("orders", 1000, options.megabytes))
        _fill_zookeeper(zookeeper)
        cluster_id = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=20).cluster_id
        servers = Servers(kafka.bootstrap, cluster_id, zookeeper)
        for tree, sources in trees.items():
            for temperature in _TEMPERATURES:
                directory = root / f"{tree}-{temperature}"
                directory.mkdir()
                for command in commands(servers, directory, f"copy-{tree}-{temperature}"):
                    costs.setdefault(command.name, []).append(run(command, sources, root / f"cache-{tree}"))
    print(f"| command | {' | '.join(f'{tree}, {t}' for tree in trees for t in _TEMPERATURES)} |")
    print(f"|---|{'---|' * len(trees) * len(_TEMPERATURES)}")
    for name, each in costs.items():
        print(f"| `{name}` | {' | '.join(f'{cost.wall_s:.2f} / {cost.cpu_s:.2f}' for cost in each)} |")


if __name__ == "__main__":
    main()
