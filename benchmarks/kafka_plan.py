"""What does it cost the driver to plan a backup of many partitions? Time, and the most memory it ever holds.

    python -m benchmarks.kafka_plan [--partitions 10000] [--broker-partitions 10000] [--directory DIR]

First the decision alone, on values made by hand: a first backup, and a later one that goes on from 10,000 positions.
Then a real embedded broker with as many partitions as it bears, one record in each: everything that is asked of it
(`gather`), the first plan, the connection that a task opens, and a whole `--dry-run`. Each line comes from a process
of its own; "import" is what a process holds that has loaded the same modules and done nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import UUID

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.backup.facts import gather
from logkeep.kafka.backup.plan import Plan, history_of, plan_backup
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import Partition, Topic, TopicPartition
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.record.documents import ArchivedReach
from logkeep.model.cache import cache_dir
from tests.integration.kafka.logs.copy_program import peak_kb

_PER_TOPIC = 100
_SMALL = {"log.index.size.max.bytes": "4096", "num.partitions": "1"}
"""An index is set aside in full size for every partition: 20 MB of address space each by default."""


def _topics(partitions: int) -> list[Topic]:
    """Led by five brokers in turn."""
    logs = tuple(Partition(p, p % 5, 3, (p % 5,), (p % 5,)) for p in range(_PER_TOPIC))
    return [Topic(f"topic-{n}", UUID(int=n + 1), False, logs) for n in range(partitions // _PER_TOPIC)]


def _values(partitions: int, *, later: bool) -> dict[str, object]:
    topics = _topics(partitions)
    logs = [(t, TopicPartition(t.name, p.index)) for t in topics for p in t.partitions]
    bounds = {log: LogBounds(0, 1_000_000, 1_000_000, 3) for _, log in logs}
    reached = {log: ArchivedReach(history_of(t), 900_000, 3) for t, log in logs} if later else {}
    began = time.perf_counter()
    plan = plan_backup(topics, bounds, {log: 1 << 30 for _, log in logs}, reached)
    return _measured(plan, plan_s=time.perf_counter() - began)


def _broker(bootstrap: str) -> dict[str, object]:
    began, settings = time.perf_counter(), ClientSettings(endpoints(bootstrap))
    with Cluster(settings) as cluster:
        facts = gather(cluster, (), (), internal=False, pause=time.sleep)
    asked = time.perf_counter()
    plan = plan_backup(facts.topics, facts.bounds, facts.sizes, {})
    planned = time.perf_counter()
    SettingsBrokers(settings).connect(facts.metadata.brokers[0].node).close()
    return _measured(
        plan, gather_s=asked - began, plan_s=planned - asked, task_connects_s=time.perf_counter() - planned
    )


def _measured(plan: Plan, **seconds: float) -> dict[str, object]:
    return {"logs": len(plan.cut), "units": len(plan.units), **seconds, "peak_mb": peak_kb() / 1024}


def _in_a_process(*arguments: str) -> dict[str, object]:
    command = [sys.executable, "-m", "benchmarks.kafka_plan", "--only", *arguments]
    found: dict[str, object] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def _only(what: str, argument: str) -> dict[str, object]:
    if what == "import":
        return {"peak_mb": peak_kb() / 1024}
    if what == "broker":
        return _broker(argument)
    return _values(int(argument), later=what == "later")


def _tell(name: str, found: dict[str, object]) -> None:
    shown = (f"{key} {value:.2f}" if isinstance(value, float) else f"{key} {value}" for key, value in found.items())
    print(f"{name:28}", " · ".join(shown), flush=True)


def _made(kafka: EmbeddedKafka, partitions: int) -> None:
    """Topics of a hundred partitions with a record in each."""
    admin, producer = (
        AdminClient({"bootstrap.servers": kafka.bootstrap}),
        Producer({"bootstrap.servers": kafka.bootstrap}),
    )
    for number in range(partitions // _PER_TOPIC):
        name = f"topic-{number}"
        for future in admin.create_topics([NewTopic(name, _PER_TOPIC, 1)]).values():
            future.result(60)
        for partition in range(_PER_TOPIC):
            producer.produce(name, b"one record", None, partition)
        assert producer.flush(120) == 0


def _dry_run(bootstrap: str, directory: Path) -> float:
    """The whole command, from its start to its answer."""
    logkeep = [sys.executable, "-m", "logkeep.cli"]
    repo = ["--repo", str(directory / "repository")]
    subprocess.run([*logkeep, "init", *repo], check=True, capture_output=True)
    began = time.perf_counter()
    command = [*logkeep, "kafka", "backup", "--bootstrap-servers", bootstrap, "--dry-run", *repo]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--broker-partitions", type=int, default=10_000)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--only", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.only:
        print(json.dumps(_only(*chosen.only)))
        return
    _tell("import", _in_a_process("import", ""))
    _tell("values, first backup", _in_a_process("first", str(chosen.partitions)))
    _tell("values, later backup", _in_a_process("later", str(chosen.partitions)))
    with tempfile.TemporaryDirectory(dir=chosen.directory) as name:
        cache, directory = cache_dir(os.environ, Path.home()), Path(name)
        with EmbeddedKafka(directory / "broker", cache, properties=_SMALL) as kafka:
            began = time.perf_counter()
            _made(kafka, chosen.broker_partitions)
            print(f"a broker with {chosen.broker_partitions} partitions, made in {time.perf_counter() - began:.0f} s")
            _tell("real broker, first backup", _in_a_process("broker", kafka.bootstrap))
            _tell("logkeep kafka backup -n", {"seconds": _dry_run(kafka.bootstrap, directory)})


if __name__ == "__main__":
    main()
