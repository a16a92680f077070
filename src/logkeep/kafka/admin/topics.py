"""Topics: their configs and sizes on disk; making and deleting them."""

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from logkeep.errors import ClusterNotReady, NotAuthorised
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import OK, TOPIC_EXISTS, TRY_AGAIN, UNKNOWN_TOPIC, check, failure
from logkeep.kafka.client.topology import Topic, TopicPartition

_CHUNK = 500
_TIMEOUT_MS = 20_000


class ResourceKind(enum.IntEnum):
    """What can have configs."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True)
class ConfigValue:
    """One config as the cluster tells it; a sensitive one has no value.

    `source`: 1 = set on the topic itself, 2 to 4 = on one broker, on all of them, in a broker's file, 5 = a default.
    """

    name: str
    value: str | None
    source: int
    read_only: bool
    sensitive: bool


@dataclass(frozen=True)
class ReplicaSize:
    """One copy of a log on one broker's disk."""

    log: TopicPartition
    node: int
    directory: str
    size_bytes: int
    offset_lag: int
    moving: bool


@dataclass(frozen=True)
class TopicConfigs:
    """Configs of a topic that are not Kafka's own defaults."""

    own: Mapping[str, str]
    """Set on the topic itself."""
    inherited: Mapping[str, str]
    """Set on the brokers, for all topics."""


def topic_configs(cluster: Cluster, topics: Sequence[str]) -> dict[str, TopicConfigs]:
    """Of each topic, the configs that somebody has set for it."""
    found = describe_configs(cluster, ResourceKind.TOPIC, topics)
    return {name: TopicConfigs(_from((1,), configs), _from((2, 3, 4), configs)) for name, configs in found.items()}


def _from(sources: Collection[int], configs: Iterable[ConfigValue]) -> dict[str, str]:
    return {each.name: each.value or "" for each in configs if each.source in sources}


def describe_configs(
    cluster: Cluster, kind: ResourceKind, names: Sequence[str], *, keys: Sequence[str] | None = None
) -> dict[str, tuple[ConfigValue, ...]]:
    """All configs (or `keys` of them) of each named resource. Brokers answer for themselves: name = node id."""
    done: dict[str, tuple[ConfigValue, ...]] = {}
    size = 1 if kind is ResourceKind.BROKER else _CHUNK
    for at in range(0, len(names), size):
        some = names[at : at + size]
        resources = [{"resource_type": int(kind), "resource_name": each, "configuration_keys": keys} for each in some]
        fields = {"resources": resources, "include_synonyms": False, "include_documentation": False}
        if kind is ResourceKind.BROKER:
            done |= _configs(cluster.ask_node(int(some[0]), "DescribeConfigs", fields))
        else:
            done |= _configs(cluster.ask_any("DescribeConfigs", fields))
    return done


def _configs(reply: Any) -> dict[str, tuple[ConfigValue, ...]]:
    done = {}
    for each in reply.results:
        check(each.error_code, subject=each.resource_name, doing="DescribeConfigs", message=each.error_message)
        done[each.resource_name] = tuple(
            ConfigValue(c.name, None if c.is_sensitive else c.value, c.config_source, c.read_only, c.is_sensitive)
            for c in each.configs
        )
    return done


def replica_sizes(cluster: Cluster, wanted: Iterable[TopicPartition] | None = None) -> tuple[ReplicaSize, ...]:
    """Sizes on every broker that is up. A broken log directory is left out: its replicas show as offline."""
    chosen = None if wanted is None else frozenset(wanted)
    sizes: list[ReplicaSize] = []
    for node, reply in cluster.ask_each("DescribeLogDirs", {"topics": None}):
        check(getattr(reply, "error_code", OK) or OK, subject=f"broker {node}", doing="DescribeLogDirs")
        if not reply.results:
            # Brokers answer an unauthorised question with an empty list and no error before version 3.
            raise NotAuthorised("this user may not describe the cluster's log directories", subject=f"broker {node}")
        for directory in reply.results:
            if directory.error_code == OK:
                sizes += [each for each in _sizes(node, directory) if chosen is None or each.log in chosen]
    return tuple(sizes)


def _sizes(node: int, directory: Any) -> list[ReplicaSize]:
    return [
        ReplicaSize(
            TopicPartition(topic.name, each.partition_index),
            node,
            directory.log_dir,
            each.partition_size,
            each.offset_lag,
            each.is_future_key,
        )
        for topic in directory.topics
        for each in topic.partitions
    ]


def create_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = 1,
    replication_factor: int = -1,
    configs: Mapping[str, str] | None = None,
    exist_ok: bool = False,
) -> Topic:
    """Make it, and return when every partition has a leader."""
    asked = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replication_factor,
        "assignments": [],
        "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
    }
    fields = {"topics": [asked], "timeout_ms": _TIMEOUT_MS, "validate_only": False}
    code = OK
    for number in cluster.patience.tries():
        (found,) = cluster.ask_any("CreateTopics", fields).topics
        code = found.error_code
        if code == OK or (code == TOPIC_EXISTS and (exist_ok or number)):
            return _with_leaders(cluster, name, partitions)
        if code not in TRY_AGAIN:
            raise failure(code, subject=name, doing="CreateTopics", message=found.error_message)
    raise failure(code, subject=name, doing="CreateTopics")


def _with_leaders(cluster: Cluster, name: str, partitions: int) -> Topic:
    for _ in cluster.patience.tries():
        topic = cluster.metadata().topic(name)
        if topic is not None and len(topic.partitions) >= partitions and all(p.leader >= 0 for p in topic.partitions):
            return topic
    raise ClusterNotReady("was made, but its partitions have no leaders yet", subject=name)


def delete_topic(cluster: Cluster, name: str, topic_id: UUID | None = None) -> None:
    """Delete by id when one is given: a topic made again under the same name is then left alone."""
    named = {"name": None, "topic_id": topic_id} if topic_id else {"name": name, "topic_id": UUID(int=0)}
    fields = {"topics": [named], "topic_names": [name], "timeout_ms": _TIMEOUT_MS}
    code = OK
    for number in cluster.patience.tries():
        (found,) = cluster.ask_any("DeleteTopics", fields).responses
        code = found.error_code
        if code == OK or (number and code == UNKNOWN_TOPIC):
            return
        if code not in TRY_AGAIN - {UNKNOWN_TOPIC}:
            break
    raise failure(code, subject=name, doing="DeleteTopics")
