"""Fetches archived batches again from their leaders, by their last offsets: many logs in one request.

A request asks for at most some megabytes, each log with the size of its archived batch as the limit: an unchanged batch
just fits. A broker leaves out what does not fit into the reply, so an empty answer means nothing. Such a log is asked
for again alone, because the first batch of a reply is always whole. Only the leader's own log start and end show that
it does not have an offset.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from logkeep.errors import ClusterNotReady
from logkeep.formats.kafka.batches import Batches, WalkEnd, first_broken, walk
from logkeep.kafka.admin.offsets import log_bounds
from logkeep.kafka.backup.continuity.past_check import LeaderBatch
from logkeep.kafka.client.cluster import Answer, Cluster
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.error_codes import OK, UNKNOWN_TOPIC
from logkeep.kafka.client.fetch import Code, FetchedPartition, FetchLimits, PartitionFetch, encode, parse
from logkeep.kafka.client.frames import ReceiveBuffer
from logkeep.kafka.client.rate_limit import RateLimiter
from logkeep.kafka.client.reply_limits import fetch_limit
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.batch_traits import last_batch_of
from logkeep.kafka.logs.last_batch import LastBatch

REQUEST_LOGS = 500
REQUEST_BYTES = 8 << 20
_ALONE_TRIES = 5
"""A broker waits half a second before it sends an empty reply."""
_ROUNDS = 5
_ANOTHER_TOPIC = {Code.UNKNOWN_TOPIC_ID, Code.INCONSISTENT_TOPIC_ID}


@dataclass(frozen=True)
class BatchRequest:
    """Which batch of a log is fetched again."""

    topic_id: UUID
    batch: LastBatch
    keep: bool = False
    """Whether the bytes of a batch that is not the archived one are needed, because its records may decide."""


@dataclass(frozen=True)
class FetchedBatch:
    """What the leader has there."""

    at_leader: LeaderBatch
    data: bytes = b""
    """The whole batch, if it was to be kept, is not the archived one, and has a valid CRC-32C."""
    readable: bool = True
    """False: the broker's own log is damaged there. The batch is archived, so that must not stop a backup."""


Wanted = Mapping[TopicPartition, BatchRequest]
_UNREADABLE = FetchedBatch(LeaderBatch(-1, -1, None), readable=False)


def fetch_again(cluster: Cluster, wanted: Wanted, bytes_per_s: int = 0) -> dict[TopicPartition, FetchedBatch]:
    """The batch of each log; without logs whose topic was re-created. Raises TopicMissing, ClusterNotReady, …"""
    ask = _BatchFetcher(cluster, wanted, RateLimiter(bytes_per_s, time.sleep, time.monotonic))
    found: dict[TopicPartition, FetchedBatch] = {}
    left = dict(wanted)
    for _ in range(_ROUNDS):
        answers = cluster.ask_leaders(left, ask.leader)
        found |= {log: answer for log, answer in answers.items() if answer is not None}
        left = {log: wanted[log] for log in left if answers[log] is None and log not in ask.re_created}
        outside = _outside(cluster, left)
        found |= outside
        left = {log: request for log, request in left.items() if log not in outside}
        if not left:
            return found
    raise ClusterNotReady("the leader does not serve its log", subject=str(next(iter(left))))


def _outside(cluster: Cluster, wanted: Wanted) -> dict[TopicPartition, FetchedBatch]:
    """The logs that do not have the offset: they begin after it or end before it, as their leaders report."""
    bounds = log_bounds(cluster, wanted) if wanted else {}
    return {
        log: FetchedBatch(LeaderBatch(found.start, found.high_watermark, None))
        for log, found in bounds.items()
        if not found.start <= wanted[log].batch.last_offset < found.high_watermark
    }


def divide_into_requests(wanted: Wanted, logs: Sequence[TopicPartition]) -> Iterator[list[TopicPartition]]:
    """Pure: the logs of one leader, as requests of limited size."""
    bundle, size = list[TopicPartition](), 0
    for log in sorted(logs, key=lambda log: (wanted[log].topic_id.bytes, log.partition)):
        more = wanted[log].batch.size
        if bundle and (len(bundle) >= REQUEST_LOGS or size + more > REQUEST_BYTES):
            yield bundle
            bundle, size = [], 0
        bundle.append(log)
        size += more
    if bundle:
        yield bundle


class _BatchFetcher:
    """Fetches one set of batches, leader by leader."""

    def __init__(self, cluster: Cluster, wanted: Wanted, limiter: RateLimiter) -> None:
        self._cluster, self._wanted, self._limiter = cluster, wanted, limiter
        self._buffer, self._correlation = ReceiveBuffer(), 0
        self.re_created: set[TopicPartition] = set()

    def leader(self, leader: Connection, logs: Sequence[TopicPartition]) -> Iterator[Answer[FetchedBatch | None]]:
        """One leader's answers. None: it sent no batch, which alone proves nothing."""
        empty = list[TopicPartition]()
        for bundle in divide_into_requests(self._wanted, logs):
            answers = self._request(leader, bundle)
            empty += [log for log in bundle if _is_empty(answers.get(log))]
            yield from (self._answer(log, found) for log, found in answers.items() if not _is_empty(found))
        for log in empty:
            yield self._alone(leader, log)

    def _alone(self, leader: Connection, log: TopicPartition) -> Answer[FetchedBatch | None]:
        for _ in range(_ALONE_TRIES):
            found = self._request(leader, [log]).get(log)
            if found is not None and not _is_empty(found):
                return self._answer(log, found)
        return log, OK, None

    def _request(self, leader: Connection, logs: Sequence[TopicPartition]) -> dict[TopicPartition, FetchedPartition]:
        """Views into the reply: valid until the next request."""
        broker, wanted = hash(leader.endpoint), self._wanted
        partitions = [_fetch_of(log, wanted[log]) for log in logs]
        limits = FetchLimits(max_bytes=sum(p.max_bytes for p in partitions), client_id=self._cluster.settings.client_id)
        self._correlation += 1
        self._limiter.wait_to_send(broker)
        leader.send_frame(encode(partitions, limits, self._correlation), fetch_limit(limits.max_bytes))
        data = leader.receive_frame(self._buffer)
        reply = parse(data, self._correlation)
        self._limiter.received(broker, len(data), reply.throttle_ms)
        by_key = {(wanted[log].topic_id, log.partition): log for log in logs}
        answers = ((by_key.get((f.topic_id, f.partition)), f) for f in reply.partitions)
        return {log: fetched for log, fetched in answers if log is not None}

    def _answer(self, log: TopicPartition, fetched: FetchedPartition) -> Answer[FetchedBatch | None]:
        if fetched.error == Code.OFFSET_OUT_OF_RANGE:
            return log, OK, None
        if fetched.error == Code.CORRUPT_MESSAGE:
            return log, OK, _UNREADABLE
        if fetched.error in _ANOTHER_TOPIC:
            # A broker that has just started may not know the topic id yet: then the metadata is read again first.
            topic = self._cluster.known().topic(log.topic)
            if topic is None or topic.id == self._wanted[log].topic_id:
                return log, UNKNOWN_TOPIC, None
            self.re_created.add(log)
            return log, OK, None
        if fetched.error:
            return log, fetched.error, None
        return log, OK, _find_batch(fetched, self._wanted[log])


def _fetch_of(log: TopicPartition, wanted: BatchRequest) -> PartitionFetch:
    batch = wanted.batch
    return PartitionFetch(wanted.topic_id, log.partition, batch.last_offset, max_bytes=batch.size)


def _is_empty(fetched: FetchedPartition | None) -> bool:
    """Whether a reply proves nothing about the log: it has no bytes, or the beginning of a batch that did not fit."""
    if fetched is None or not fetched.served:
        return fetched is None or not fetched.error
    walked = walk(fetched.records)
    return not len(walked.batches) and walked.stop in (WalkEnd.END, WalkEnd.TORN)


def _find_batch(fetched: FetchedPartition, wanted: BatchRequest) -> FetchedBatch:
    walked = walk(fetched.records)
    if walked.stop is WalkEnd.DAMAGED and not len(walked.batches):
        return _UNREADABLE
    first = _first_at(walked.batches, wanted.batch.last_offset)
    batch = last_batch_of(first) if len(first) else None
    needed = wanted.keep and len(first) and batch != wanted.batch
    whole = needed and first_broken(fetched.records, first) is None
    data = bytes(fetched.records[first.start : first.end]) if whole else b""
    return FetchedBatch(LeaderBatch(fetched.log_start, fetched.high_watermark, batch), data)


def _first_at(batches: Batches, offset: int) -> Batches:
    """The first batch that ends at an offset or later."""
    index = int((batches.last_offsets < offset).sum())
    return batches[index : index + 1]
