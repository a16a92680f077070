"""A shop's Kafka for the demo: a real broker, filled, read and emptied with Apache's own tools only."""

from collections.abc import Sequence

from logkeep.embedded.kafka import EmbeddedKafka

_TOOLS = "org.apache.kafka.tools"
_READ_TIMEOUT_MS = 20_000


class Shop:
    """A user of Kafka's scripts."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        self._kafka = kafka

    def create(self, topic: str, partitions: int, **configs: str) -> None:
        wanted = ["--topic", topic, "--partitions", str(partitions)]
        for name, value in configs.items():
            wanted += ["--config", f"{name.replace('_', '.')}={value}"]
        self._tool("TopicCommand", ["--create", *wanted])

    def delete(self, topics: Sequence[str]) -> None:
        self._tool("TopicCommand", ["--delete", "--topic", "|".join(topics)])

    def write(self, topic: str, records: Sequence[tuple[str, str, str]]) -> None:
        """Write records (headers, key, value) with the console producer."""
        lines = "".join("\t".join(record) + "\n" for record in records)
        parsed = [f"--reader-property=parse.{part}=true" for part in ("headers", "key")]
        self._tool("ConsoleProducer", ["--topic", topic, *parsed], lines)

    def write_in_transactions(self, topic: str, records: int) -> None:
        """Write random records of 200 bytes in many transactions."""
        wanted = ["--topic", topic, "--num-records", str(records), "--record-size", "200", "--throughput", "-1"]
        decided = ["--transactional-id", "till", "--transaction-duration-ms", "50"]
        self._tool("ProducerPerformance", [*wanted, *decided])

    def read(self, group: str, topic: str, most: int) -> list[str]:
        """The values of a group's next records; commits their offsets."""
        wanted = ["--topic", topic, "--group", group, "--from-beginning", "--max-messages", str(most)]
        waiting = ["--timeout-ms", str(_READ_TIMEOUT_MS)]
        return self._tool("consumer.ConsoleConsumer", [*wanted, *waiting]).splitlines()

    def advance(self, group: str, topic: str) -> None:
        """Set a group's offsets to the end of a topic."""
        wanted = ["--group", group, "--topic", topic, "--reset-offsets", "--to-latest", "--execute"]
        self._tool("consumer.group.ConsumerGroupCommand", wanted)

    def _tool(self, name: str, arguments: Sequence[str], typed: str = "") -> str:
        where = ["--bootstrap-server", self._kafka.bootstrap]
        return self._kafka.java_tool(f"{_TOOLS}.{name}", [*where, *arguments], typed)
