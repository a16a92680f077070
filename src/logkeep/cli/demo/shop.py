"""A shop's Kafka for the demo: a real broker, filled with nothing but Apache's own tools."""

from logkeep.embedded.kafka import EmbeddedKafka

_TOOLS = "org.apache.kafka.tools"


class Shop:
    """Topics, records and a group's position, as a user of Kafka's scripts would make them."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        self._kafka = kafka

    def create(self, topic: str, partitions: int) -> str:
        return self._tool("TopicCommand", "--create", "--topic", topic, "--partitions", str(partitions))

    def produce(self, topic: str, records: int) -> str:
        """Random records of 200 bytes; the tool's own line about its speed."""
        wanted = ["--topic", topic, "--num-records", str(records), "--record-size", "200", "--throughput", "-1"]
        return self._tool("ProducerPerformance", *wanted).splitlines()[-1]

    def advance(self, group: str, topic: str) -> str:
        """Let a group stand at the end of a topic."""
        wanted = ["--group", group, "--topic", topic, "--reset-offsets", "--to-latest", "--execute"]
        return self._tool("consumer.group.ConsumerGroupCommand", *wanted)

    def _tool(self, name: str, *arguments: str) -> str:
        return self._kafka.java_tool(f"{_TOOLS}.{name}", ["--bootstrap-server", self._kafka.bootstrap, *arguments])
