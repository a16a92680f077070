"""Requests to the coordinators of groups and transactions, repeated while a coordinator moves."""

import enum
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from logkeep.errors import ClusterError, ClusterNotReady, ClusterUnreachable
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.error_codes import COORDINATOR_MOVED, OK, TRY_AGAIN, failure

T = TypeVar("T")
KeyedAnswer = tuple[str, int, T]
_CHUNK = 200


class CoordinatorKind(enum.IntEnum):
    GROUP = 0
    TRANSACTION = 1


def ask_each_coordinator(cluster: Cluster, api: str, fields: Mapping[str, Any]) -> list[tuple[int, Any]]:
    """`(node, reply)` of every broker, repeated while one is still loading what it coordinates."""
    replies: list[tuple[int, Any]] = []
    for _ in cluster.backoff.tries():
        replies = cluster.ask_each(api, fields)
        if not any(reply.error_code in COORDINATOR_MOVED for _, reply in replies):
            break
    return replies


def find_coordinators(cluster: Cluster, kind: CoordinatorKind, keys: Sequence[str]) -> tuple[dict[str, int], int]:
    """The coordinator of each key, and the last temporary error; keys without a coordinator now are left out."""
    found: dict[str, int] = {}
    trouble = OK
    for at in range(0, len(keys), _CHUNK):
        fields = {"key_type": int(kind), "coordinator_keys": list(keys[at : at + _CHUNK])}
        for each in cluster.ask_any("FindCoordinator", fields).coordinators:
            if each.error_code == OK:
                found[each.key] = each.node_id
            elif each.error_code in TRY_AGAIN:
                trouble = each.error_code
            else:
                raise failure(each.error_code, subject=each.key, doing="FindCoordinator", message=each.error_message)
    return {key: found[key] for key in keys if key in found}, trouble


def ask_coordinators(
    cluster: Cluster,
    kind: CoordinatorKind,
    keys: Iterable[str],
    ask: Callable[[Connection, Sequence[str]], Iterable[KeyedAnswer[T]]],
    *,
    doing: str,
    gone: frozenset[int] = frozenset(),
) -> dict[str, T]:
    """`ask` each coordinator for its keys. A key answered with a code in `gone` is left out of the result."""
    done: dict[str, T] = {}
    left = list(dict.fromkeys(keys))
    trouble: ClusterError | None = None
    for _ in cluster.backoff.tries() if left else ():
        nodes, code = find_coordinators(cluster, kind, left)
        trouble = failure(code, subject=left[0], doing="FindCoordinator") if code != OK else trouble
        settled: set[str] = set()
        for node, some in _chunks(nodes):
            try:
                answers = list(ask(cluster.connection(node), some))
            except (ClusterUnreachable, ClusterNotReady) as error:
                trouble, answers = error, []
            for key, code, value in answers:
                if code == OK:
                    done[key] = value
                elif code in COORDINATOR_MOVED | TRY_AGAIN:
                    trouble = failure(code, subject=key, doing=doing)
                    continue
                elif code not in gone:
                    raise failure(code, subject=key, doing=doing)
                settled.add(key)
        left = [each for each in left if each not in settled]
        if not left:
            break
    if left:
        raise trouble or ClusterNotReady(f"{doing} has no answer", subject=left[0])
    return done


def _chunks(nodes: dict[str, int]) -> Iterable[tuple[int, list[str]]]:
    grouped: defaultdict[int, list[str]] = defaultdict(list)
    for key, node in nodes.items():
        grouped[node].append(key)
    for node, members in sorted(grouped.items()):
        for at in range(0, len(members), _CHUNK):
            yield node, members[at : at + _CHUNK]
