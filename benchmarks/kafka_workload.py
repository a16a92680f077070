"""Topics full of records, written and read by Apache's own tools, with all of Java's optimisations."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.embedded.kafka import EmbeddedKafka

PARTITIONS = 4
_TOOLS = "org.apache.kafka.tools"
_FOR_TESTS = ("-XX:TieredStopAtLevel=1", "-Xmx512m", "-XX:+UseSerialGC")


class OptimisedKafka(EmbeddedKafka):
    """A broker and tools as their users run them: what is kept from compiling its loops would be no peer."""

    def command(self, main_class: str, arguments: Sequence[str]) -> list[str]:
        return [part for part in super().command(main_class, arguments) if part not in _FOR_TESTS]


@dataclass(frozen=True)
class Load:
    """What a topic is filled with."""

    topic: str
    record_bytes: int
    megabytes: int
    batch_bytes: int = 235_000
    codec: str = "none"
    partitions: int = PARTITIONS

    @property
    def records(self) -> int:
        return self.megabytes * 1_000_000 // self.record_bytes


def fill(kafka: EmbeddedKafka, load: Load) -> None:
    """Create the topic and write to it with ProducerPerformance."""
    server = ["--bootstrap-server", kafka.bootstrap]
    create = ["--create", "--topic", load.topic, "--partitions", str(load.partitions)]
    _tool(kafka, "TopicCommand", [*server, *create])
    settings = [
        f"bootstrap.servers={kafka.bootstrap}",
        f"batch.size={load.batch_bytes}",
        f"compression.type={load.codec}",
        "linger.ms=20",
        "buffer.memory=134217728",
    ]
    size = ["--num-records", str(load.records), "--record-size", str(load.record_bytes), "--throughput", "-1"]
    _tool(kafka, "ProducerPerformance", ["--topic", load.topic, *size, "--producer-props", *settings])


def consumer_performance(kafka: EmbeddedKafka, load: Load) -> float:
    """MB/s as Apache's tool counts them: payload, without the time to join its group."""
    where = ["--bootstrap-server", kafka.bootstrap, "--topic", load.topic]
    said = _tool(kafka, "ConsumerPerformance", [*where, "--messages", str(load.records), "--hide-header"])
    return float(said.strip().splitlines()[-1].split(",")[8]) * 1.048576


def _tool(kafka: EmbeddedKafka, name: str, arguments: list[str]) -> str:
    command = kafka.command(f"{_TOOLS}.{name}", arguments)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
