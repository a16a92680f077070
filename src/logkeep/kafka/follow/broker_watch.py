"""Connections to all brokers that are kept between rounds: they show whether a broker was restarted meanwhile.

A broker's disk can be replaced by an earlier copy of it only while the broker is stopped. So as long as every broker
answers on the connection that was opened in an earlier round, the logs are those of that round. A connection that is
lost for any other reason costs one comparison of the last archived batches.
"""

from contextlib import suppress

from logkeep.errors import LogkeepError
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.settings import ClientSettings


class BrokerWatch:
    """One idle connection to each broker. Close it."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._connections: dict[int, Connection] = {}

    def unbroken(self) -> bool:
        """Whether every broker answers on the connection of the last call. Opens a new connection to those that do
        not."""
        silent = [node for node, connection in self._connections.items() if not _answers(connection)]
        for node in silent:
            self._connections.pop(node).close()
        unbroken = bool(self._connections) and not silent
        with suppress(LogkeepError):  # the round reports what is wrong with the cluster
            self._connect()
        return unbroken

    def _connect(self) -> None:
        with Cluster(self._settings) as cluster:
            for broker in cluster.metadata([]).brokers:
                if broker.node not in self._connections:
                    self._connections[broker.node] = cluster.open_own(broker.node)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


def _answers(connection: Connection) -> bool:
    try:
        connection.call("ApiVersions", {}, at_most=0)
    except LogkeepError:
        return False
    return True
