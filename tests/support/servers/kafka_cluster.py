"""A real cluster of three brokers, each behind a proxy: the first is also the controller, the others can be killed.

What the brokers say to each other passes no proxy: only clients are held up.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from logkeep.embedded.kafka import cluster_id
from tests.support.kafka.plain_client import PlainBrokers
from tests.support.processes import wait_for
from tests.support.servers.proxied_kafka import ProxiedKafka
from tests.support.servers.tcp_proxy import CuttingProxy, Gate

_SETTINGS = {
    "broker_session_timeout_ms": "6000",
    "broker_heartbeat_interval_ms": "200",
    "auto_leader_rebalance_enable": "false",
}
"""A killed broker is missed soon, one on a busy machine is not; and leaders move when a test wants it."""


class Member(ProxiedKafka):
    """One node of the cluster; node 1 has the controller, which the others are told of."""

    def __init__(self, directory: Path, cache: Path, node: int, cluster: str, controller: "Member | None") -> None:
        super().__init__(directory, cache, **_SETTINGS)
        self.node, self._cluster, self._controller = node, cluster, controller

    def start(self) -> None:
        """Until the controller counts on it: before that it leads nothing, and nobody is told to ask it."""
        super().start()
        asked = PlainBrokers("127.0.0.1", (self._controller or self).port)
        wait_for(lambda: self.node in {each.node_id for each in asked.metadata("").brokers}, f"broker {self.node}")

    def properties(self) -> dict[str, str]:
        found = super().properties() | {"node.id": str(self.node)}
        if self._controller is None:
            return found
        own_controller = f"CONTROLLER://127.0.0.1:{self.controller_port},"
        return found | {
            "process.roles": "broker",
            "listeners": found["listeners"].replace(own_controller, ""),
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self._controller.controller_port}",
        }

    def format(self, config: Path) -> None:
        first = "--standalone" if self._controller is None else "--no-initial-controllers"
        self.java_tool("kafka.tools.StorageTool", ["format", first, "-t", self._cluster, "-c", str(config)])


@dataclass(frozen=True)
class KafkaCluster:
    """`members` by node id; one gate for all of them."""

    members: Mapping[int, Member]
    gate: Gate
    admin: AdminClient

    @property
    def bootstrap(self) -> str:
        """Through the proxies."""
        return ",".join(f"127.0.0.1:{member.proxied_port}" for member in self.members.values())

    def create(self, topic: str, replicas: list[int], **config: str) -> str:
        """One partition; its preferred leader is the first replica."""
        named = {name.replace("_", "."): value for name, value in config.items()}
        wanted = NewTopic(topic, 1, replica_assignment=[replicas], config=named)
        for future in self.admin.create_topics([wanted]).values():
            future.result(30)
        wait_for(lambda: self.leader(topic) == replicas[0], "the leader")
        return topic

    def leader(self, topic: str) -> int:
        """-1 while the cluster tells none."""
        found = self._partition(topic)
        return int(found.leader_id) if found else -1

    def in_sync(self, topic: str) -> set[int]:
        found = self._partition(topic)
        return set(found.isr_nodes) if found else set()

    def _partition(self, topic: str) -> Any:
        """None while the cluster says nothing of it."""
        partitions = PlainBrokers("127.0.0.1", self.members[1].port).metadata(topic).topics[0].partitions
        return partitions[0] if partitions else None


@contextmanager
def kafka_cluster(directory: Path, cache: Path) -> Iterator[KafkaCluster]:
    name, gate = cluster_id(), Gate()
    first = Member(directory / "1", cache, 1, name, None)
    members = {1: first} | {node: Member(directory / str(node), cache, node, name, first) for node in (2, 3)}
    with ExitStack() as stack:
        for member in members.values():
            stack.enter_context(member)
            stack.enter_context(CuttingProxy(member.proxied_port, member.inner_port, lambda: None, gate))
        admin = AdminClient({"bootstrap.servers": ",".join(member.bootstrap for member in members.values())})
        yield KafkaCluster(members, gate, admin)
