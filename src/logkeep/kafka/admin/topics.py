"""Topics: their configs and their sizes on disk."""

import enum
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from logkeep.errors import NotAuthorised
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import OK, check, unfit_answer
from logkeep.kafka.client.topology import TopicPartition

_CHUNK = 500
_NUMBER = re.compile(r"-?[0-9]{1,19}")


class ResourceKind(enum.IntEnum):
    """Resources that have configs."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


@dataclass(frozen=True)
class ConfigValue:
    """One config as the cluster reports it; a sensitive one has no value.

    `source`: 1 = set on the topic, 2 = on one broker, 3 = on all brokers, 4 = in a broker's file, 5 = a default.
    """

    name: str
    value: str | None
    source: int
    read_only: bool


@dataclass(frozen=True)
class ReplicaSize:
    """One replica of a partition on one broker's disk."""

    log: TopicPartition
    node: int
    directory: str
    size_bytes: int
    offset_lag: int
    moving: bool


@dataclass(frozen=True)
class TopicConfigs:
    """Configs of a topic that differ from Kafka's defaults."""

    own: Mapping[str, str]
    """Set on the topic itself."""
    inherited: Mapping[str, str]
    """Set on the brokers, for all topics."""


def topic_configs(cluster: Cluster, topics: Sequence[str]) -> dict[str, TopicConfigs]:
    """For each topic, the configs that are set on it or on its brokers."""
    found = describe_configs(cluster, ResourceKind.TOPIC, topics)
    return {name: TopicConfigs(_from((1,), configs), _from((2, 3, 4), configs)) for name, configs in found.items()}


def config_number(configs: Mapping[str, str], name: str) -> int:
    """The number of a config; -1, which means "no limit" in Kafka, if it is not set or not a number."""
    text = configs.get(name) or ""
    return int(text) if _NUMBER.fullmatch(text) else -1


def _from(sources: Collection[int], configs: Iterable[ConfigValue]) -> dict[str, str]:
    return {each.name: each.value or "" for each in configs if each.source in sources}


def describe_configs(
    cluster: Cluster, kind: ResourceKind, names: Sequence[str], *, keys: Sequence[str] | None = None
) -> dict[str, tuple[ConfigValue, ...]]:
    """All configs (or only `keys`) of each resource. A broker is named by its node id and asked itself."""
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
    if missing := [each for each in names if each not in done]:
        raise unfit_answer("DescribeConfigs", missing[0])
    return done


def _configs(reply: Any) -> dict[str, tuple[ConfigValue, ...]]:
    done = {}
    for each in reply.results:
        check(each.error_code, subject=each.resource_name, doing="DescribeConfigs", message=each.error_message)
        done[each.resource_name] = tuple(
            ConfigValue(c.name, None if c.is_sensitive else c.value, c.config_source, c.read_only) for c in each.configs
        )
    return done


def replica_sizes(cluster: Cluster) -> tuple[ReplicaSize, ...]:
    """Sizes on every broker that is up. A failed log directory is left out: its replicas show as offline."""
    sizes: list[ReplicaSize] = []
    for node, reply in cluster.ask_each("DescribeLogDirs", {"topics": None}):
        check(getattr(reply, "error_code", OK) or OK, subject=f"broker {node}", doing="DescribeLogDirs")
        if not reply.results:
            # Before version 3 brokers answer an unauthorised request with an empty list and no error.
            raise NotAuthorised("this user may not describe the cluster's log directories", subject=f"broker {node}")
        for directory in reply.results:
            if directory.error_code == OK:
                sizes += _sizes(node, directory)
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
