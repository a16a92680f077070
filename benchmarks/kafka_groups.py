"""What do many group offsets cost? A backup and a restore of 200 groups with 1,000 partitions each, as commands.

    python -m benchmarks.kafka_groups [--groups 200] [--partitions 1000] [--program DIR]

One real embedded broker; a topic with one record in every partition; every group commits every partition through
Apache's protocol. Printed of each command: wall time, CPU seconds of its processes, most resident memory, and the
bytes of the stored record. `--program` names the source directory of another release, to compare with.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.kafka_workload import OptimisedKafka, create
from logkeep.kafka.admin.group_changes import commit_offsets
from logkeep.kafka.admin.groups import CommittedOffset
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from logkeep.model.cache import cache_dir

TOPIC = "read-by-many"


def filled(kafka: OptimisedKafka, groups: int, partitions: int) -> None:
    create(kafka, TOPIC, partitions)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for partition in range(partitions):
        producer.produce(TOPIC, b"record", b"key", partition)
        producer.poll(0)
    assert producer.flush(600) == 0
    commits = {TopicPartition(TOPIC, p): CommittedOffset(1, -1, "") for p in range(partitions)}
    with Cluster(ClientSettings(endpoints(kafka.bootstrap))) as cluster:
        refused = commit_offsets(cluster, {f"group-{n:04d}": commits for n in range(groups)})
    assert not any(refused.values()), refused


def measured(what: str, program: Path, words: list[str]) -> None:
    """Runs one command of a release and prints its cost."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "logkeep.cli", *words]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(program)}, check=False, stdout=subprocess.DEVNULL
    )
    took_s, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"{what:<10} exit {done.returncode}  {took_s:7.1f} s  {cpu_s:6.1f} s of CPU  "
        f"at most {after.ru_maxrss / 1000:,.0f} MB so far",
        flush=True,
    )
    assert done.returncode in (0, 2), "the figures are those of a command that was refused"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--program", type=Path, default=Path(__file__).parents[1] / "src")
    asked = parser.parse_args()
    cache = cache_dir(os.environ, Path.home())
    with tempfile.TemporaryDirectory() as directory:
        repo = Path(directory, "repository")
        with (
            OptimisedKafka(Path(directory, "broker"), cache) as kafka,
            OptimisedKafka(Path(directory, "target"), cache) as target,
        ):
            filled(kafka, asked.groups, asked.partitions)
            common = ["--repo", str(repo), "--source", "prod"]
            measured("init", asked.program, ["init", "--repo", str(repo)])
            backup = ["kafka", "backup", *common, "--bootstrap-servers", kafka.bootstrap, "--engine", "inline"]
            measured("backup", asked.program, [*backup, "--topics", TOPIC])
            sizes = [path.stat().st_size for path in repo.glob("sources/*/backups/*/attachments/cluster.*")]
            print(f"record     {sizes} bytes")
            restore = [
                "kafka",
                "restore",
                "latest",
                *common,
                "--bootstrap-servers",
                target.bootstrap,
                "--engine",
                "inline",
            ]
            measured("restore", asked.program, [*restore, "--yes"])


if __name__ == "__main__":
    main()
