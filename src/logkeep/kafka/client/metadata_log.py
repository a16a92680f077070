"""Reads the metadata log of a KRaft cluster from its leading controller.

Only controllers serve it, on their own listener, to users with CLUSTER_ACTION. The log begins at a snapshot once older
records were removed: the snapshot is read first, piece by piece, then the log after it up to the high watermark. Every
batch's CRC-32C is checked. Nothing is written anywhere.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from logkeep.errors import (
    ClusterError,
    ClusterNotReady,
    ClusterUnreachable,
    ProtocolMismatch,
    SourceDamaged,
    TlsFailed,
)
from logkeep.formats.kafka.batches import CONTROL, WalkEnd, first_broken, walk
from logkeep.formats.kafka.plain_records import records_of
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.error_codes import LEADER_MOVED, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID, check, the_only
from logkeep.kafka.client.fetch import DivergingEpoch, FetchedPartition, FetchLimits, PartitionFetch, encode, parse
from logkeep.kafka.client.frames import ReceiveBuffer
from logkeep.kafka.client.reply_limits import fetch_limit
from logkeep.kafka.client.retry import Backoff
from logkeep.kafka.client.security.tls import tls_context
from logkeep.kafka.client.settings import ClientSettings, Endpoint

TOPIC = "__cluster_metadata"
_ID = UUID(int=1)
_METADATA_PARTITION = {"topics": [{"topic_name": TOPIC, "partitions": [{"partition_index": 0}]}]}
_PIECE_BYTES = 4 << 20
_EMPTY_REPLIES = 20


@dataclass(frozen=True)
class Quorum:
    """The leading controller and its epoch."""

    connection: Connection
    epoch: int


def open_quorum(controllers: ClientSettings) -> Quorum:
    """A connection to the leading controller, which the caller closes. Raises the cluster's errors."""
    context = tls_context(controllers) if controllers.tls else None
    last: ClusterError | None = None
    for _ in Backoff(attempts=4).tries():
        for endpoint in controllers.bootstrap:
            try:
                connection = Connection.open(endpoint, controllers, context=context)
            except (ClusterUnreachable, TlsFailed) as error:
                last = error
                continue
            try:
                epoch = _leader_epoch(connection)
            except BaseException:
                connection.close()
                raise
            if epoch is not None:
                return Quorum(connection, epoch)
            connection.close()
            last = ClusterNotReady("does not lead the controllers", subject=str(endpoint))
    raise _no_controller(controllers, last)


def _no_controller(controllers: ClientSettings, last: ClusterError | None) -> ClusterError:
    kind = type(last) if last is not None else ClusterUnreachable
    return kind(
        f"no controller serves the metadata log; the last attempt: {last}",
        subject=", ".join(str(each) for each in controllers.bootstrap),
        remedy="name the controllers' own listeners with --controllers, and their security with --controller-config",
    )


def _leader_epoch(connection: Connection) -> int | None:
    """The epoch, if this controller is the leader; otherwise None."""
    reply = connection.call("DescribeQuorum", _METADATA_PARTITION)
    check(reply.error_code, subject=TOPIC, doing="DescribeQuorum")
    topic = the_only(reply.topics, doing="DescribeQuorum", subject=TOPIC)
    partition = the_only(topic.partitions, doing="DescribeQuorum", subject=TOPIC)
    if partition.error_code in LEADER_MOVED:
        return None
    check(partition.error_code, subject=TOPIC, doing="DescribeQuorum")
    return int(partition.leader_epoch)


class MetadataLog:
    """Reads the log of one quorum from its beginning."""

    def __init__(self, quorum: Quorum) -> None:
        self._connection, self._epoch = quorum.connection, quorum.epoch
        self._buffer, self._correlation = ReceiveBuffer(), 0

    def probe(self) -> None:
        """Check that this user may read it, by a read of one byte. Raises NotAuthorised and the cluster's errors."""
        self._fetch(0, 0, max_bytes=1)

    def values(self, snapshot: DivergingEpoch | None = None) -> Iterator[bytes]:
        """The values of all records, in order; from a snapshot on if one is given, or if the log begins at one."""
        offset, epoch, empty = 0, 0, 0
        while True:
            if snapshot is not None:
                yield from self._snapshot(snapshot)
                offset, epoch, snapshot = snapshot.end_offset, snapshot.epoch, None
            found = self._fetch(offset, epoch, _PIECE_BYTES)
            if found.snapshot is not None:
                snapshot = found.snapshot
                continue
            if found.diverging is not None:
                raise SourceDamaged("changed while it was read", subject=TOPIC)
            walked = walk(found.records)
            if len(walked.batches):
                yield from _values(bytes(found.records), walked.stop, walked.stopped_at)
                offset = int(walked.batches.last_offsets[-1]) + 1
                epoch = int(walked.batches.headers["leader_epoch"][-1])
                empty = 0
            else:
                empty += 1
            if 0 <= found.high_watermark <= offset:
                return
            if empty > _EMPTY_REPLIES:
                raise ClusterNotReady(f"no more records come from offset {offset} on", subject=TOPIC)

    def _fetch(self, offset: int, epoch: int, max_bytes: int) -> FetchedPartition:
        self._correlation += 1
        wanted = PartitionFetch(_ID, 0, offset, self._epoch, epoch)
        request = encode([wanted], FetchLimits(max_bytes=max_bytes), self._correlation)
        self._connection.send_frame(request, fetch_limit(max_bytes))
        reply = parse(self._connection.receive_frame(self._buffer), self._correlation)
        for found in reply.partitions:
            if found.error in {UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID}:
                raise ProtocolMismatch(
                    "this is the listener of a broker: only controllers serve the metadata log",
                    subject=str(self._connection.endpoint),
                    remedy="name the controllers' listeners: --controllers",
                )
            check(found.error, subject=TOPIC, doing="Fetch")
            return found
        raise ClusterNotReady("the controller answered without the log", subject=TOPIC)

    def _snapshot(self, which: DivergingEpoch) -> Iterator[bytes]:
        """All values of a snapshot. A piece may end inside a batch, so its tail is kept for the next one."""
        position, tail = 0, b""
        while True:
            piece = self._piece(which, position)
            data = bytes(piece.unaligned_records or b"")
            position += len(data)
            tail += data
            walked = walk(tail)
            yield from _values(tail, walked.stop, walked.stopped_at)
            tail = tail[walked.stopped_at :]
            if position >= piece.size:
                break
            if not data:
                raise ClusterNotReady("the controller stopped in the middle of a snapshot", subject=TOPIC)
        if tail:
            raise SourceDamaged("a snapshot ends in the middle of a batch", subject=TOPIC)

    def _piece(self, which: DivergingEpoch, position: int) -> Any:
        asked = {
            "partition": 0,
            "current_leader_epoch": self._epoch,
            "snapshot_id": {"end_offset": which.end_offset, "epoch": which.epoch},
            "position": position,
        }
        fields = {"replica_id": -1, "max_bytes": _PIECE_BYTES, "topics": [{"name": TOPIC, "partitions": [asked]}]}
        reply = self._connection.call("FetchSnapshot", fields)
        check(reply.error_code, subject=TOPIC, doing="FetchSnapshot")
        topic = the_only(reply.topics, doing="FetchSnapshot", subject=TOPIC)
        found = the_only(topic.partitions, doing="FetchSnapshot", subject=TOPIC)
        check(found.error_code, subject=TOPIC, doing="FetchSnapshot")
        return found


def _values(data: bytes, stop: WalkEnd, end: int) -> Iterator[bytes]:
    """The values in the whole batches of a buffer. Raises SourceDamaged."""
    if stop in (WalkEnd.DAMAGED, WalkEnd.OLD_FORMAT):
        raise SourceDamaged("holds bytes that are no batches", subject=TOPIC)
    batches = walk(data[:end]).batches
    if first_broken(data, batches) is not None:
        raise SourceDamaged("holds a batch that fails its checksum", subject=TOPIC)
    starts, ends = batches.positions.tolist(), (batches.positions + batches.sizes).tolist()
    attributes, counts = batches.headers["attributes"].tolist(), batches.headers["records"].tolist()
    for start, stop_at, attribute, count in zip(starts, ends, attributes, counts, strict=True):
        if not attribute & CONTROL:
            for record in records_of(data[start:stop_at], 0, attribute, count):
                if record.value is not None:
                    yield record.value


def controller_listeners(ask: Callable[[str, dict[str, Any]], Any]) -> list[Endpoint]:
    """The controllers' listeners, as any broker reports them; brokers of older clusters report none."""
    reply = ask("DescribeQuorum", _METADATA_PARTITION)
    check(reply.error_code, subject=TOPIC, doing="DescribeQuorum")
    return [Endpoint(each.host, each.port) for node in reply.nodes or () for each in node.listeners[:1]]
