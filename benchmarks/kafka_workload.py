"""Topics full of records, written and read by Apache's own tools."""

from dataclasses import dataclass

from logkeep.embedded.kafka import EmbeddedKafka

PARTITIONS = 4
_TOOLS = "org.apache.kafka.tools"


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
    kafka.java_tool(f"{_TOOLS}.TopicCommand", [*server, *create])
    settings = [
        f"bootstrap.servers={kafka.bootstrap}",
        f"batch.size={load.batch_bytes}",
        f"compression.type={load.codec}",
        "linger.ms=20",
        "buffer.memory=134217728",
    ]
    size = ["--num-records", str(load.records), "--record-size", str(load.record_bytes), "--throughput", "-1"]
    kafka.java_tool(f"{_TOOLS}.ProducerPerformance", ["--topic", load.topic, *size, "--producer-props", *settings])


def consumer_performance(kafka: EmbeddedKafka, load: Load) -> float:
    """MB/s as Apache's tool counts them: payload, without the time to join its group."""
    where = ["--bootstrap-server", kafka.bootstrap, "--topic", load.topic]
    said = kafka.java_tool(f"{_TOOLS}.ConsumerPerformance", [*where, "--messages", str(load.records), "--hide-header"])
    return float(said.strip().splitlines()[-1].split(",")[8]) * 1.048576
