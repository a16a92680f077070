"""The cluster that a backup is compared with: how it is reached, how fast it may be read, and its logs as they are."""

from dataclasses import dataclass
from uuid import UUID

from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.rate_limit import share
from logkeep.kafka.logs.brokers import Brokers
from logkeep.model.work import Engine


@dataclass(frozen=True)
class LiveState:
    """A log of the cut as the cluster has it now."""

    topic_id: UUID
    broker: int
    start: int
    end: int


@dataclass(frozen=True)
class LiveSource:
    brokers: Brokers
    client_id: str
    limit_download: int | None = None
    """Bytes per second from all brokers to all tasks together."""

    def limits(self, engine: Engine, units: int) -> FetchLimits:
        """The limits of each task."""
        bytes_per_s = share(self.limit_download, engine.at_once(units))
        return FetchLimits(client_id=self.client_id, bytes_per_s=bytes_per_s)
