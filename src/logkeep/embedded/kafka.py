"""A Kafka broker in one process (KRaft, broker and controller in one), from Maven coordinates."""

import base64
import socket
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from logkeep.embedded.ports import free_ports
from logkeep.embedded.process import ServerProcess, java_command
from logkeep.embedded.server import LOGGING_JARS, READY_S, EmbeddedServer
from logkeep.engine.spark.jvm.jars import resolve_jars, spark_jars
from logkeep.engine.spark.private_files import make_private


@dataclass(frozen=True)
class KafkaRelease:
    """A version of Kafka and where its jars come from."""

    version: str = "4.3.1"
    scala: str = "2.13"

    @property
    def coordinates(self) -> tuple[str, ...]:
        group = "org.apache.kafka"
        return f"{group}:kafka_{self.scala}:{self.version}", f"{group}:kafka-tools:{self.version}"

    def class_path(self, cache: Path) -> list[Path]:
        """Broker and tools. Spark's logging jars come first: they fit each other. Its Scala library is added."""
        return [*spark_jars(*LOGGING_JARS), *resolve_jars(self.coordinates, cache), *spark_jars("scala-library-*.jar")]


class EmbeddedKafka(EmbeddedServer):
    """`with EmbeddedKafka(directory, cache) as kafka:` formats the directory if it is new, starts it and stops it."""

    def __init__(
        self,
        directory: Path,
        cache: Path,
        *,
        release: KafkaRelease | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """`properties` win over ours: more listeners, security, another node of a larger cluster."""
        super().__init__(directory, cache)
        self.release = release or KafkaRelease()
        self.port, self.controller_port = free_ports(2)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._own = dict(properties or {})

    @property
    def cluster(self) -> str:
        """The id of its cluster, as the broker reads it. The directory must be formatted."""
        lines = (self.directory / "data" / "meta.properties").read_text().splitlines()
        return next(line.removeprefix("cluster.id=") for line in lines if line.startswith("cluster.id="))

    def start(self) -> None:
        """Start, and return when the broker answers."""
        make_private(self.directory)
        self.write_logging()
        config = self.directory / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in self.properties().items()))
        if not (self.directory / "data" / "meta.properties").exists():
            self.format(config)
        command = self.command("kafka.Kafka", [str(config)])
        self._server = ServerProcess("Kafka", command, self.log, cwd=self.directory).start()
        self._server.wait_until(lambda: answers("127.0.0.1", self.port), READY_S)

    def format(self, config: Path) -> None:
        """Format a new directory as the first node of a new cluster; subclasses may format it otherwise."""
        self.java_tool("kafka.tools.StorageTool", ["format", "--standalone", "-t", cluster_id(), "-c", str(config)])

    def properties(self) -> dict[str, str]:
        """The broker's whole configuration."""
        listeners = f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}"
        return {
            "node.id": "1",
            "process.roles": "broker,controller",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.controller_port}",
            "listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.directory / "data"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            **self._own,
        }

    def command(self, main_class: str, arguments: Sequence[str]) -> list[str]:
        """How a Java program of this release is started, the broker itself too."""
        return java_command(
            self._cache, self.release.class_path(self._cache), main_class, arguments, self.jvm_options()
        )


def cluster_id(random_bytes: Callable[[], bytes] = lambda: uuid.uuid4().bytes) -> str:
    """A new cluster id as Kafka writes it; one that begins with a dash would be read as an option by its tools."""
    while True:
        text = base64.urlsafe_b64encode(random_bytes()).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def answers(host: str, port: int) -> bool:
    """Whether a broker answers ApiVersions version 0 there: a length, a correlation id, error code 0."""
    client = b"logkeep"
    request = struct.pack(f"!hhih{len(client)}s", 18, 0, 1, len(client), client)
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            connection.sendall(struct.pack("!i", len(request)) + request)
            reply = connection.recv(10, socket.MSG_WAITALL)
    except OSError:
        return False
    return len(reply) == 10 and struct.unpack("!iih", reply)[1:] == (1, 0)
