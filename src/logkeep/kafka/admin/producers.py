"""Producer ids, and the start and end of our own transactions.

The API versions used are older than version 2 of the transaction protocol, so that Kafka 3.9 and 4.x do the same:
partitions are added by name, and ending a transaction keeps the epoch. A coordinator refuses a producer if a newer one
has the same transactional id: that is expected, and returned as None.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from logkeep.errors import ClusterNotReady
from logkeep.kafka.admin.coordinators import CoordinatorKind, KeyedAnswer, ask_coordinators
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.error_codes import OK, TRY_AGAIN, failure
from logkeep.kafka.client.topology import TopicPartition, by_topic

T = TypeVar("T")
_Ask = Callable[[Connection, Sequence[str]], Iterable[KeyedAnswer[T]]]
_FENCED = frozenset({47, 90})
"""The epoch is not the newest, or the producer was fenced."""
_LOADING, _NOT_ATTEMPTED = 14, 55
_INIT_VERSION, _ADD_VERSION, _END_VERSION = 4, 3, 3


@dataclass(frozen=True)
class ProducerId:
    """The id and epoch of a producer."""

    producer_id: int
    epoch: int


def new_producer_id(cluster: Cluster) -> ProducerId:
    """A new producer id without a transactional id. Retries while a broker has none available."""
    code = OK
    for _ in cluster.backoff.tries():
        reply = cluster.ask_any("InitProducerId", _init_fields(None, 0), at_most=_INIT_VERSION)
        code = reply.error_code
        if code == OK and reply.producer_id >= 0:
            return ProducerId(reply.producer_id, reply.producer_epoch)
        if code not in TRY_AGAIN and code != OK:
            break
    if code == OK:
        raise ClusterNotReady("hands out no producer ids", subject="InitProducerId")
    raise failure(code, subject="a new producer id", doing="InitProducerId")


def begin_producer(cluster: Cluster, transactional_id: str, timeout_ms: int) -> ProducerId:
    """Claim a transactional id: its previous producer is fenced, and that one's open transaction is aborted."""

    def ask(coordinator: Connection, some: Sequence[str]) -> Iterator[KeyedAnswer[ProducerId]]:
        for key in some:
            reply = coordinator.call("InitProducerId", _init_fields(key, timeout_ms), at_most=_INIT_VERSION)
            code = _LOADING if reply.error_code == OK and reply.producer_id < 0 else reply.error_code
            yield key, code, ProducerId(reply.producer_id, reply.producer_epoch)

    return _ask(cluster, transactional_id, ask, "InitProducerId", frozenset())[transactional_id]


def add_partitions(
    cluster: Cluster, transactional_id: str, producer: ProducerId, logs: Iterable[TopicPartition]
) -> bool | None:
    """Begin a transaction in these logs, or add them to the open one. None: another producer took over the id."""
    wanted = list(logs)

    def ask(coordinator: Connection, some: Sequence[str]) -> Iterator[KeyedAnswer[bool]]:
        for key in some:
            fields = {
                "v3_and_below_transactional_id": key,
                "v3_and_below_producer_id": producer.producer_id,
                "v3_and_below_producer_epoch": producer.epoch,
                "v3_and_below_topics": [{"name": t, "partitions": p} for t, p in by_topic(wanted).items()],
            }
            reply = coordinator.call("AddPartitionsToTxn", fields, at_most=_ADD_VERSION)
            yield key, _first_error(reply), True

    return _ask(cluster, transactional_id, ask, "AddPartitionsToTxn", _FENCED).get(transactional_id)


def abort_transaction(cluster: Cluster, transactional_id: str, producer: ProducerId) -> bool | None:
    """Decide to abort it; the markers are written later. None: another producer took over the id and aborted it."""

    def ask(coordinator: Connection, some: Sequence[str]) -> Iterator[KeyedAnswer[bool]]:
        for key in some:
            fields = {
                "transactional_id": key,
                "producer_id": producer.producer_id,
                "producer_epoch": producer.epoch,
                "committed": False,
            }
            yield key, coordinator.call("EndTxn", fields, at_most=_END_VERSION).error_code, True

    return _ask(cluster, transactional_id, ask, "EndTxn", _FENCED).get(transactional_id)


def _ask(cluster: Cluster, key: str, ask: _Ask[T], doing: str, gone: frozenset[int]) -> dict[str, T]:
    return ask_coordinators(cluster, CoordinatorKind.TRANSACTION, [key], ask, doing=doing, gone=gone)


def _init_fields(transactional_id: str | None, timeout_ms: int) -> dict[str, Any]:
    return {
        "transactional_id": transactional_id,
        "transaction_timeout_ms": timeout_ms,
        "producer_id": -1,
        "producer_epoch": -1,
    }


def _first_error(reply: Any) -> int:
    """The first error code; "not attempted because of another partition" counts only if there is no other."""
    codes = [p.partition_error_code for t in reply.results_by_topic_v3_and_below for p in t.results_by_partition]
    errors = [code for code in codes if code not in (OK, _NOT_ATTEMPTED)]
    return errors[0] if errors else max(codes, default=OK)
