"""Transactions as their coordinators report them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from logkeep.kafka.admin.coordinators import CoordinatorKind, KeyedAnswer, ask_coordinators, ask_each_coordinator
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.error_codes import TRANSACTIONAL_ID_NOT_FOUND, check
from logkeep.kafka.client.topology import TopicPartition


@dataclass(frozen=True, order=True)
class ListedTransaction:
    """`state` as Kafka writes it: Ongoing, PrepareCommit, CompleteCommit, PrepareAbort …"""

    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True)
class ProducerTransaction:
    """`partitions` are those that the open transaction has written to."""

    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    timeout_ms: int
    partitions: tuple[TopicPartition, ...]


def list_transactions(cluster: Cluster, *, states: Sequence[str] = ()) -> tuple[ListedTransaction, ...]:
    """The transactions of all coordinators. Brokers leave out transactional ids that this user may not describe."""
    found: set[ListedTransaction] = set()
    fields = {"state_filters": list(states), "producer_id_filters": []}
    for node, reply in ask_each_coordinator(cluster, "ListTransactions", fields):
        check(reply.error_code, subject=f"broker {node}", doing="ListTransactions")
        found |= {
            ListedTransaction(each.transactional_id, each.producer_id, each.transaction_state)
            for each in reply.transaction_states
        }
    return tuple(sorted(found))


def describe_transactions(cluster: Cluster, ids: Iterable[str]) -> dict[str, ProducerTransaction]:
    """Details by id; an id that expired meanwhile is left out."""

    def ask(coordinator: Connection, some: Sequence[str]) -> Iterator[KeyedAnswer[ProducerTransaction]]:
        for each in coordinator.call("DescribeTransactions", {"transactional_ids": list(some)}).transaction_states:
            yield each.transactional_id, each.error_code, _transaction(each)

    gone = frozenset({TRANSACTIONAL_ID_NOT_FOUND})
    return ask_coordinators(cluster, CoordinatorKind.TRANSACTION, ids, ask, doing="DescribeTransactions", gone=gone)


def _transaction(found: Any) -> ProducerTransaction:
    return ProducerTransaction(
        transactional_id=found.transactional_id,
        state=found.transaction_state,
        producer_id=found.producer_id,
        epoch=found.producer_epoch,
        timeout_ms=found.transaction_timeout_ms,
        partitions=tuple(
            TopicPartition(topic.topic, partition) for topic in found.topics for partition in topic.partitions
        ),
    )
