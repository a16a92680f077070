"""Reads ranges of live logs from their leaders, for comparison: fetched, checked, returned batch by batch.

Records that are no longer there are skipped, and a log that turns out not to be the expected one is reported. When a
leader moves, the new one is found; when a connection breaks, a new one is opened.
"""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from logkeep.errors import ClusterError, ClusterNotReady, ClusterUnreachable, NotAuthorised
from logkeep.formats.kafka.batches import BatchStretch, WalkEnd, first_broken, walk
from logkeep.kafka.client.fetch import (
    DENIED,
    AbortedTransaction,
    Code,
    FetchConnection,
    FetchedPartition,
    FetchLimits,
    PartitionFetch,
    encode,
    parse,
)
from logkeep.kafka.client.rate_limit import RateLimiter, with_short_replies
from logkeep.kafka.client.retry import ProgressBackoff
from logkeep.kafka.logs.brokers import Brokers, Leader
from logkeep.kafka.logs.lost_offset import Cause, LogPosition, explain

_GONE = {Code.UNKNOWN_TOPIC_ID, Code.INCONSISTENT_TOPIC_ID, Code.UNKNOWN_TOPIC_OR_PARTITION}


@dataclass(frozen=True)
class LiveRange:
    """Offsets `[start, end)` of a partition under its topic id."""

    topic: str
    topic_id: UUID
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


@dataclass(frozen=True)
class Lost:
    """The range cannot be read to its end."""

    reason: str


class LiveLogs:
    """Reads ranges one after the other, over one connection to each leader, or `lanes` of them in turn. Close it.

    It waits before requests where the limits have a rate.
    """

    def __init__(
        self, brokers: Brokers, broker: int, limits: FetchLimits, backoff: ProgressBackoff, lanes: int = 1
    ) -> None:
        self._brokers, self._limits, self._backoff, self._lanes = brokers, with_short_replies(limits), backoff, lanes
        self._limiter = RateLimiter(limits.bytes_per_s, backoff.pause, backoff.clock)
        self._leader = Leader(broker, -1)
        self._connections: dict[tuple[int, int], FetchConnection] = {}
        self._correlation, self._log_start, self._given = 0, 0, 0
        self.reported_start = -1
        """The log start in the last reply of this range without an error; -1 before the first."""
        self.aborted: tuple[AbortedTransaction, ...] = ()
        """The aborted transactions in the last reply without an error, if only committed records are requested."""

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def read(self, wanted: LiveRange, broker: int) -> Iterator[BatchStretch | Lost]:
        """Batches with an offset of the range, in order.

        A stretch is valid until the next one is requested; with two lanes until the one after the next is.
        """
        self._leader, offset = Leader(broker, -1), wanted.start
        self.reported_start, self.aborted = -1, ()
        while offset < wanted.end:
            fetched = self._fetch(wanted, offset)
            if fetched is None:
                continue
            if not fetched.error:
                self.reported_start, self.aborted = fetched.log_start, fetched.aborted
            part = _checked(fetched, offset)
            if part is None:
                # An empty answer below the end: the log ends too early, or the leader has not caught up yet.
                part = self._explain(wanted, offset if fetched.error else wanted.end)
            if part is not None:
                self._given += 1
                yield part
            if isinstance(part, Lost):
                return
            if part is not None:
                self._backoff.progress()
                offset = part.last + 1
            elif fetched.error:
                offset = max(offset, self._log_start)

    def _fetch(self, wanted: LiveRange, offset: int) -> FetchedPartition | None:
        """The leader's answer, or None if the request should be repeated."""
        try:
            reply = self._request(PartitionFetch(wanted.topic_id, wanted.partition, offset, self._leader.epoch))
        except (ClusterUnreachable, ClusterNotReady) as error:
            self._drop()
            self._find_leader(wanted, error)
            return None
        if reply is None:
            return None
        if reply.error in DENIED:
            raise NotAuthorised("may not be read", subject=str(wanted))
        if reply.served or reply.error in {Code.OFFSET_OUT_OF_RANGE, *_GONE}:
            return reply
        self._find_leader(wanted, ClusterNotReady(f"the leader answers with error {reply.error}", subject=str(wanted)))
        return None

    def _request(self, wanted: PartitionFetch) -> FetchedPartition | None:
        self._correlation += 1
        connection = self._connection()
        self._limiter.wait_to_send(self._leader.broker)
        connection.send(encode([wanted], self._limits, self._correlation))
        received = connection.receive()
        self._limiter.received(self._leader.broker, len(received), 0)
        reply = parse(received, self._correlation)
        if reply.throttle_ms:
            self._backoff.pause(reply.throttle_ms / 1000)
        return reply.partitions[0] if reply.partitions else None

    def _connection(self) -> FetchConnection:
        if self._lane not in self._connections:
            self._connections[self._lane] = self._brokers.connect(self._leader.broker)
        return self._connections[self._lane]

    @property
    def _lane(self) -> tuple[int, int]:
        """Which connection is used next. Each receives into its own buffer, so the bytes of one stay valid while the
        next receives."""
        return self._leader.broker, self._given % self._lanes

    def _drop(self) -> None:
        found = self._connections.pop(self._lane, None)
        if found is not None:
            found.close()

    def _find_leader(self, wanted: LiveRange, error: ClusterError) -> None:
        """Wait, then find the leader; raises the error after too many failures."""
        self._backoff.failed(error)
        try:
            self._leader = self._brokers.leader(wanted.topic, wanted.topic_id, wanted.partition)
        except (ClusterUnreachable, ClusterNotReady) as again:
            self._backoff.failed(again)

    def _explain(self, wanted: LiveRange, offset: int) -> Lost | None:
        """Why the leader does not have an offset; None: the caller continues from the log start, or asks again."""
        facts = self._brokers.facts(wanted.topic, wanted.partition, LogPosition(wanted.topic_id, offset))
        verdict = explain(LogPosition(wanted.topic_id, offset), facts)
        self._log_start = facts.log_start
        if verdict.cause.new_history:
            return Lost(cause_text(verdict.cause))
        if verdict.gap is None:
            self._backoff.failed(ClusterNotReady("the leader does not serve its log", subject=str(wanted)))
        return None


def _checked(fetched: FetchedPartition, offset: int) -> BatchStretch | Lost | None:
    """The batches of an answer, checked; None if it has none."""
    if fetched.error in _GONE:
        return Lost(cause_text(Cause.RECREATED))
    if fetched.error:
        return None
    walked = walk(fetched.records)
    if walked.stop not in (WalkEnd.END, WalkEnd.TORN):
        return Lost(f"the source sent bytes near offset {offset} that are no batches: {walked.reason}")
    broken = first_broken(fetched.records, walked.batches)
    if broken is not None:
        at = int(walked.batches.base_offsets[broken])
        return Lost(f"the source's batch at offset {at} does not have the CRC-32C of its header")
    return BatchStretch(fetched.records, walked.batches) if len(walked.batches) else None


def cause_text(cause: Cause) -> str:
    """Why a log of the source cannot be compared with what is archived under its name."""
    return {
        Cause.RECREATED: "the topic was deleted and re-created since",
        Cause.DELETED: "the topic does not exist any more, or this user may not see it",
        Cause.TRUNCATED: "the source's log lost its end since, in an unclean election or on a lost disk",
        Cause.UNKNOWN_EPOCH: "the source does not know the leader epoch of the last archived batch: it is another log",
        Cause.OTHER_PAST: "the source's log has another past than the archive: an earlier copy of its disk was "
        "restored, or it is a clone",
    }.get(cause, str(cause))


T = TypeVar("T")


def read_ahead(items: Iterator[T], name: str) -> Generator[T, None, None]:
    """Yields the same items: while the caller processes one, a thread gets the next.

    An item must stay valid until the one after the next is requested. Errors of the thread are raised here, in their
    turn. Close the iterator, or exhaust it.
    """
    with ThreadPoolExecutor(1, name) as reader:
        coming = reader.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = reader.submit(next, items, None)
            yield item
