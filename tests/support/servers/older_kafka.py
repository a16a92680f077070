"""The oldest brokers that are supported: Kafka 3.9 in KRaft mode, and in ZooKeeper mode with a real ZooKeeper.

Jars come from Maven coordinates, as those of the current release do; ZooKeeper's are among them.
"""

import socket
from contextlib import ExitStack
from pathlib import Path

from logkeep.embedded.kafka import EmbeddedKafka, KafkaRelease
from logkeep.embedded.ports import free_ports
from logkeep.embedded.process import ServerProcess, java_command
from tests.support.kafka.plain_client import PlainBrokers
from tests.support.kafka.topic_matrix import BROKER
from tests.support.processes import wait_for

RELEASE = KafkaRelease("3.9.1")
_READY_S = 180.0
_KRAFT_ONLY = (
    "node.id",
    "process.roles",
    "controller.quorum.bootstrap.servers",
    "controller.listener.names",
)


def kraft_39(directory: Path, cache: Path) -> EmbeddedKafka:
    return EmbeddedKafka(directory, cache, release=RELEASE, properties=BROKER)


class ZooKeeper:
    """One ZooKeeper server; it forgets nothing as long as its directory stays."""

    def __init__(self, directory: Path, cache: Path) -> None:
        self._directory, self._cache = directory, cache
        (self.port,) = free_ports(1)
        self._server: ServerProcess | None = None

    def start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        config = self._directory / "zoo.cfg"
        settings = {
            "dataDir": self._directory / "data",
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "tickTime": 500,
            "4lw.commands.whitelist": "ruok",
        }
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = java_command(self._cache, RELEASE.class_path(self._cache), main, [str(config)])
        log = self._directory / "server.log"
        self._server = ServerProcess("ZooKeeper", command, log, cwd=self._directory).start()
        self._server.wait_until(self._is_ok, _READY_S)

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()

    def _is_ok(self) -> bool:
        """ZooKeeper's own question: are you ok? I am ok."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.sendall(b"ruok")
                return connection.recv(4, socket.MSG_WAITALL) == b"imok"
        except OSError:
            return False


class ZooKeeperKafka(EmbeddedKafka):
    """A broker that keeps its metadata in ZooKeeper, as all did before KRaft. `more` counts from the next start on."""

    def __init__(self, directory: Path, cache: Path, **properties: str) -> None:
        super().__init__(directory, cache, release=RELEASE, properties=BROKER)
        self.more = {name.replace("_", "."): value for name, value in properties.items()}
        self._zookeeper = ZooKeeper(directory / "zookeeper", cache)
        self._running = ExitStack()

    def start(self) -> None:
        self._running.callback(self._zookeeper.stop)
        self._zookeeper.start()
        super().start()
        # It answers before it knows the cluster; clients that come so early wait for long before they ask again.
        wait_for(lambda: PlainBrokers("127.0.0.1", self.port).metadata("").controller_id == 1, "a controller")

    def stop(self) -> None:
        super().stop()
        self._running.close()

    def format(self, config: Path) -> None:
        """There is nothing to format: the broker makes its directory when it registers."""

    def properties(self) -> dict[str, str]:
        kept = {key: value for key, value in super().properties().items() if key not in _KRAFT_ONLY}
        return kept | {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "zookeeper.connect": f"127.0.0.1:{self._zookeeper.port}",
            **self.more,
        }
