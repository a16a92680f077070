"""Offsets that nobody gets: fillers in a transaction that is aborted, and the marker that ends it as the last of them.

One transaction for each hole, in one partition alone, and nothing else is sent until the hole is full. So whoever
aborts it, we, a later attempt or the coordinator when time is up, its marker comes to stand in the hole, and what is
left of the hole is filled by another transaction. The first of an attempt takes the transactional id over, which shuts
out earlier attempts and aborts what they left open; after any trouble that is done again.
"""

from dataclasses import dataclass

from logkeep.errors import ClusterNotReady
from logkeep.formats.kafka.outgoing import Outgoing, stamp
from logkeep.formats.kafka.synthetic_batches import filler_batches
from logkeep.kafka.admin.offsets import list_offsets
from logkeep.kafka.admin.producers import ProducerId, abort_transaction, add_partitions, begin_producer
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.frames import ReceiveBuffer
from logkeep.kafka.client.produce import API, VERSION, Ack, Parcel, parse, request_parts
from logkeep.kafka.client.retry import ProgressBackoff
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.facts.units import ReplayLog, ReplayOutcome
from logkeep.kafka.restore.replay.produce_errors import meaning
from logkeep.kafka.restore.replay.resume_point import SEQUENCES, StreamStep, Trouble

TIMEOUT_MS = 60_000
"""How long a coordinator leaves a transaction open."""
_WIDEST = 50_000_000
"""Offsets of one transaction: fillers for more could take longer than it may stay open."""
_SHUT_OUT = frozenset({47, 48, 90})
_FIRST_LOOK_S, _LONGEST_LOOK_S, _MARKER_S = 0.002, 0.2, 120.0


@dataclass(frozen=True)
class NotTaken:
    """The leader could not take a filler at this moment."""

    offset: int
    ack: Ack


class TakenOver:
    """Another attempt has the transactional id now, or the coordinator found that we took too long."""


TAKEN_OVER = TakenOver()
Setback = Trouble | TakenOver | NotTaken
"""Why a hole is not full."""


class Holes:
    """Fills the holes of one log for one attempt."""

    def __init__(
        self, cluster: Cluster, log: ReplayLog, waiting: ProgressBackoff, timeout_ms: int = TIMEOUT_MS
    ) -> None:
        self._cluster, self._log, self._waiting, self._timeout_ms = cluster, log, waiting, timeout_ms
        self._key = TopicPartition(log.topic, log.partition)
        self._producer: ProducerId | None = None
        self._sequence = 0
        self._replies = ReceiveBuffer(4096)

    def fill(self, hole: StreamStep) -> int | Setback:
        """Fill it from wherever the log ends; where the log ends then, at the end of the hole or behind it.

        Raises ClusterNotReady or ClusterUnreachable: then begin again by asking where the log ends.
        """
        producer, self._producer = self._producer, None  # if we do not come through, a transaction may be open
        if producer is None:
            # When the coordinator answers, the markers of what was open are in the log.
            producer = begin_producer(self._cluster, self._log.transactional_id, self._timeout_ms)
            self._sequence = 0
        end = self._log_end()
        if end < hole.start:
            raise ClusterNotReady(f"the log ends at {end}, before {hole.start}", subject=self._log.target)
        while end < hole.end:
            setback = self._transaction(producer, end, min(hole.end - end, _WIDEST))
            if setback is not None:
                return setback
            end = self._until(min(hole.end, end + _WIDEST))
        self._producer = producer
        return end

    def _transaction(self, producer: ProducerId, start: int, width: int) -> Setback | None:
        """One that takes up so many offsets: fillers, and in the last place its marker."""
        transactional_id = self._log.transactional_id
        if not add_partitions(self._cluster, transactional_id, producer, [self._key]):
            return TAKEN_OVER
        at = start
        for filler in filler_batches(width - 1):
            setback = self._sent(producer, filler, at)
            if setback is not None:
                return setback
            at += filler.total_records
        if not abort_transaction(self._cluster, transactional_id, producer):
            return TAKEN_OVER
        return None

    def _sent(self, producer: ProducerId, filler: Outgoing, at: int) -> Setback | None:
        stamp(filler, producer.producer_id, producer.epoch, self._sequence, transactional=True)
        self._sequence = (self._sequence + filler.total_records) % SEQUENCES
        ack = self._produced(filler.batch(0))
        if ack.error in _SHUT_OUT:
            return TAKEN_OVER
        answer = meaning(ack.error, ack.said)
        if isinstance(answer, Trouble):
            return answer
        if ack.error:
            return NotTaken(at, ack)
        if ack.base_offset != at:
            return Trouble(ReplayOutcome.FOREIGN, f"a filler for offset {at} came to stand at {ack.base_offset}")
        return None

    def _produced(self, batch: bytes) -> Ack:
        connection = self._cluster.connection(self._leader())
        parts = request_parts([Parcel(self._key, batch)], self._log.transactional_id)
        connection.send_raw(API, VERSION, parts)
        reply = parse(connection.receive_raw(self._replies))
        if reply.throttle_ms:
            self._waiting.pause(reply.throttle_ms / 1000)
        if len(reply.acks) != 1:
            raise ClusterNotReady("a broker answers for nothing that was sent", subject=self._log.target)
        return reply.acks[0]

    def _leader(self) -> int:
        found = self._cluster.known().find(self._key)
        if found is None or found.leader < 0:
            raise ClusterNotReady("nobody leads the partition", subject=self._log.target)
        return found.leader

    def _until(self, wanted: int) -> int:
        """Wait until the marker is in the log: EndTxn answers before that."""
        deadline, wait_s = self._waiting.clock() + _MARKER_S, _FIRST_LOOK_S
        while (end := self._log_end()) < wanted:
            if self._waiting.clock() > deadline:
                raise ClusterNotReady(f"no marker comes at offset {wanted - 1}", subject=self._log.target)
            self._waiting.pause(wait_s)
            wait_s = min(wait_s * 1.5, _LONGEST_LOOK_S)
        return end

    def _log_end(self) -> int:
        return list_offsets(self._cluster, [self._key])[self._key].offset
