"""Fills holes in the offsets with aborted transactions: filler records, and the abort marker at the last offset.

Each hole gets a transaction of its own in one partition, and nothing else is sent until the hole is full. Whether we, a
later attempt or the coordinator's timeout abort it, its marker therefore lands in the hole, and another transaction
fills the rest. The first transaction of an attempt claims the transactional id, which fences earlier attempts and
aborts their open transactions; this is repeated after any failure.
"""

from dataclasses import dataclass

from logkeep.errors import ClusterNotReady
from logkeep.formats.kafka.restore.send_batches import Outgoing, stamp
from logkeep.formats.kafka.restore.synthetic_batches import filler_batches
from logkeep.kafka.admin.offsets import list_offsets
from logkeep.kafka.admin.producers import ProducerId, abort_transaction, add_partitions, begin_producer
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.frames import ReceiveBuffer
from logkeep.kafka.client.produce import API, VERSION, Ack, OutgoingBatch, parse, request_parts
from logkeep.kafka.client.retry import ProgressBackoff
from logkeep.kafka.restore.facts.units import ReplayLog, ReplayOutcome
from logkeep.kafka.restore.replay.resume_point import SEQUENCES, StreamStep, Trouble, meaning_of_answer

TIMEOUT_MS = 60_000
"""How long a coordinator leaves a transaction open."""
_WIDEST = 50_000_000
"""Most offsets of one transaction: fillers for more could take longer than the transaction timeout."""
_FENCED_CODES = frozenset({47, 48, 90})
_FIRST_WAIT_S, _LONGEST_WAIT_S, _MARKER_S = 0.002, 0.2, 120.0


@dataclass(frozen=True)
class NotAppended:
    """The leader could not append a filler at this moment."""

    offset: int
    ack: Ack


class Fenced:
    """Another attempt uses the transactional id, or the coordinator's timeout ended our transaction."""


FillFailure = Trouble | Fenced | NotAppended
"""Why a hole is not filled."""


class Holes:
    """Fills the holes of one log for one attempt."""

    def __init__(
        self, cluster: Cluster, log: ReplayLog, waiting: ProgressBackoff, timeout_ms: int = TIMEOUT_MS
    ) -> None:
        self._cluster, self._log, self._waiting, self._timeout_ms = cluster, log, waiting, timeout_ms
        self._key = log.key
        self._producer: ProducerId | None = None
        self._sequence = 0
        self._replies = ReceiveBuffer(4096)

    def fill(self, hole: StreamStep) -> int | FillFailure:
        """Fill the hole from the log end on; returns the new log end, at the end of the hole or after it.

        Raises ClusterNotReady or ClusterUnreachable: then the caller reads the log end and starts again.
        """
        producer, self._producer = self._producer, None  # if this fails, a transaction may be left open
        if producer is None:
            # When the coordinator answers, the markers of open transactions are in the log.
            producer = begin_producer(self._cluster, self._log.transactional_id, self._timeout_ms)
            self._sequence = 0
        end = self._log_end()
        if end < hole.start:
            raise ClusterNotReady(f"the log ends at {end}, before {hole.start}", subject=self._log.target)
        while end < hole.end:
            failure = self._abort_fillers(producer, end, min(hole.end - end, _WIDEST))
            if failure is not None:
                return failure
            end = self._wait_for_end(min(hole.end, end + _WIDEST))
        self._producer = producer
        return end

    def _abort_fillers(self, producer: ProducerId, start: int, width: int) -> FillFailure | None:
        """An aborted transaction that uses `width` offsets: fillers, and its marker at the last one."""
        transactional_id = self._log.transactional_id
        if not add_partitions(self._cluster, transactional_id, producer, [self._key]):
            return Fenced()
        at = start
        for filler in filler_batches(width - 1):
            failure = self._send(producer, filler, at)
            if failure is not None:
                return failure
            at += filler.total_records
        if not abort_transaction(self._cluster, transactional_id, producer):
            return Fenced()
        return None

    def _send(self, producer: ProducerId, filler: Outgoing, at: int) -> FillFailure | None:
        stamp(filler, producer.producer_id, producer.epoch, self._sequence, transactional=True)
        self._sequence = (self._sequence + filler.total_records) % SEQUENCES
        ack = self._produce(filler.batch(0))
        if ack.error in _FENCED_CODES:
            return Fenced()
        answer = meaning_of_answer(ack.error, ack.said)
        if isinstance(answer, Trouble):
            return answer
        if ack.error:
            return NotAppended(at, ack)
        if ack.base_offset != at:
            return Trouble(ReplayOutcome.FOREIGN, f"the filler for offset {at} was appended at {ack.base_offset}")
        return None

    def _produce(self, batch: bytes) -> Ack:
        connection = self._cluster.connection(self._leader())
        parts = request_parts([OutgoingBatch(self._key, batch)], self._log.transactional_id)
        connection.send_raw(API, VERSION, parts)
        reply = parse(connection.receive_raw(self._replies))
        if reply.throttle_ms:
            self._waiting.pause(reply.throttle_ms / 1000)
        if len(reply.acks) != 1:
            raise ClusterNotReady("the broker's answer does not match the request", subject=self._log.target)
        return reply.acks[0]

    def _leader(self) -> int:
        found = self._cluster.known().find(self._key)
        if found is None or found.leader < 0:
            raise ClusterNotReady("the partition has no leader", subject=self._log.target)
        return found.leader

    def _wait_for_end(self, wanted: int) -> int:
        """Wait until the marker is in the log; EndTxn answers earlier."""
        deadline, wait_s = self._waiting.clock() + _MARKER_S, _FIRST_WAIT_S
        while (end := self._log_end()) < wanted:
            if self._waiting.clock() > deadline:
                raise ClusterNotReady(f"no abort marker appeared at offset {wanted - 1}", subject=self._log.target)
            self._waiting.pause(wait_s)
            wait_s = min(wait_s * 1.5, _LONGEST_WAIT_S)
        return end

    def _log_end(self) -> int:
        return list_offsets(self._cluster, [self._key])[self._key].offset
