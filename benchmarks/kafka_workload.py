"""Topics full of records, written and read by Apache's own tools, with all of Java's optimisations."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

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
    create(kafka, load.topic, load.partitions)
    settings = [
        f"bootstrap.servers={kafka.bootstrap}",
        f"batch.size={load.batch_bytes}",
        f"compression.type={load.codec}",
        "linger.ms=20",
        "buffer.memory=134217728",
    ]
    size = ["--num-records", str(load.records), "--record-size", str(load.record_bytes), "--throughput", "-1"]
    _tool(kafka, "ProducerPerformance", ["--topic", load.topic, *size, "--producer-props", *settings])


def create(kafka: EmbeddedKafka, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)


def delete(kafka: EmbeddedKafka, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.delete_topics([topic])[topic].result(30)


def producer_performance(
    kafka: EmbeddedKafka, topic: str, load: Load, settings: Mapping[str, str | int], payloads: Path | None = None
) -> float:
    """Records per second as Apache's tool counts them after its first third, in which Java compiles its loops.

    With a file of payloads the tool need not make up the bytes of each record.
    """
    properties = [f"{name}={value}" for name, value in {"bootstrap.servers": kafka.bootstrap, **settings}.items()]
    what = ["--payload-file", str(payloads)] if payloads else ["--record-size", str(load.record_bytes)]
    size = ["--num-records", str(load.records), "--warmup-records", str(load.records // 3), "--throughput", "-1"]
    said = _tool(kafka, "ProducerPerformance", ["--topic", topic, *what, *size, "--command-property", *properties])
    return float(re.findall(r"([0-9.]+) records/sec", said.strip().splitlines()[-1])[0])


def consumer_performance(kafka: EmbeddedKafka, load: Load) -> float:
    """MB/s as Apache's tool counts them: payload, without the time to join its group."""
    where = ["--bootstrap-server", kafka.bootstrap, "--topic", load.topic]
    said = _tool(kafka, "ConsumerPerformance", [*where, "--messages", str(load.records), "--hide-header"])
    return float(said.strip().splitlines()[-1].split(",")[8]) * 1.048576


def _tool(kafka: EmbeddedKafka, name: str, arguments: list[str]) -> str:
    command = kafka.command(f"{_TOOLS}.{name}", arguments)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
