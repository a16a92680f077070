"""A cluster that answers fetches from a script: what it was asked, when, and on which connection is kept."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse
from logkeep.errors import ClusterUnreachable
from logkeep.kafka.logs.brokers import Leader
from logkeep.kafka.logs.lost_offset import LogFacts, LogPosition
from logkeep.model.clock_time import ClockName, ClockTime

_DATA = FetchResponse.FetchableTopicResponse.PartitionData


@dataclass(frozen=True)
class Asked:
    """One request for one partition."""

    broker: int
    connection: int
    at_s: float
    offset: int
    rack: str


@dataclass(frozen=True)
class Reply:
    """What a broker answers; without `served` it names no topic at all, as a throttled one does."""

    records: bytes = b""
    error: int = 0
    high_watermark: int = 1000
    log_start: int = 0
    preferred: int = -1
    throttle_ms: int = 0
    served: bool = True
    diverging: tuple[int, int] | None = None

    def encode(self, topic_id: UUID, correlation: int) -> bytes:
        diverging = (
            _DATA.EpochEndOffset(epoch=self.diverging[0], end_offset=self.diverging[1]) if self.diverging else None
        )
        one = _DATA(
            partition_index=0,
            error_code=self.error,
            high_watermark=self.high_watermark,
            last_stable_offset=self.high_watermark,
            log_start_offset=self.log_start,
            aborted_transactions=None,
            preferred_read_replica=self.preferred,
            records=self.records,
            **({"diverging_epoch": diverging} if diverging else {}),
        )
        topics = [FetchResponse.FetchableTopicResponse(topic_id=topic_id, partitions=[one])] if self.served else []
        answer = FetchResponse(throttle_time_ms=self.throttle_ms, error_code=0, session_id=0, responses=topics)
        answer.API_VERSION = 13
        answer.with_header(correlation_id=correlation)
        return bytes(answer.encode(header=True))


Answers = Callable[[Asked], Reply]


@dataclass
class Script:
    """`Brokers` by script. `answers` is asked for every request; a broker in `down` cannot be reached."""

    answers: Answers
    clock: Callable[[], float]
    facts_now: LogFacts = field(default_factory=lambda: LogFacts(None))
    down: set[int] = field(default_factory=set)
    leads: int = 1
    asked: list[Asked] = field(default_factory=list)
    _connections: int = 0

    def connect(self, broker: int) -> "ScriptedConnection":
        if broker in self.down:
            raise ClusterUnreachable("it is down", subject=f"broker {broker}")
        self._connections += 1
        return ScriptedConnection(self, broker, self._connections)

    def leader(self, topic: str, topic_id: UUID, partition: int) -> Leader:
        return Leader(self.leads, 0)

    def facts(self, topic: str, partition: int, position: LogPosition) -> LogFacts:
        return self.facts_now

    def now(self) -> ClockTime:
        return ClockTime(int(self.clock() * 1000), ClockName.OWN)


@dataclass
class ScriptedConnection:
    script: Script
    broker: int
    number: int
    _reply: bytes = b""

    def send(self, request: bytes) -> None:
        decoded: Any = FetchRequest.decode(request[4:], version=13, header=True)
        one = decoded.topics[0].partitions[0]
        asked = Asked(self.broker, self.number, self.script.clock(), one.fetch_offset, decoded.rack_id)
        self.script.asked.append(asked)
        self._reply = self.script.answers(asked).encode(decoded.topics[0].topic_id, decoded.header.correlation_id)

    def receive(self) -> memoryview:
        return memoryview(self._reply)

    def close(self) -> None: ...
