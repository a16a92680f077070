"""Changes to topics: create, delete, alter configs, delete records. Each request changes many topics.

The cluster may refuse some topics of a request and change the others: refusals are returned by topic name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from logkeep.errors import ClusterNotReady
from logkeep.kafka.admin.topics import ConfigValue, ResourceKind
from logkeep.kafka.client.cluster import Answer, Cluster
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.error_codes import OK, TRY_AGAIN, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID, Refusal, unfit_answer
from logkeep.kafka.client.topology import Topic, TopicPartition, by_topic
from logkeep.model.plurals import plural

_TOPICS = 200
_PARTITIONS = 2000
"""Per request: controllers refuse more than ten thousand changes at once, and small requests block others less."""
_SET, _DELETE = 0, 1
_TIMEOUT_MS = 20_000
_PASSING = TRY_AGAIN - {UNKNOWN_TOPIC}


@dataclass(frozen=True)
class NewTopic:
    """`replication_factor` -1 is the cluster's own."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MadeTopic:
    """`configs`: all that are in force, defaults too; empty without the right DESCRIBE_CONFIGS."""

    name: str
    id: UUID
    """Without meaning after `validate_only`: no topic will have this id."""
    configs: tuple[ConfigValue, ...]


def create_topics(
    cluster: Cluster, topics: Sequence[NewTopic], *, validate_only: bool = False
) -> tuple[dict[str, MadeTopic], dict[str, Refusal]]:
    """Created and refused topics, by name. With `validate_only` the cluster only reports what it would do.

    A request whose reply was lost is sent again, and the second one finds the topics there. A caller that gets
    TOPIC_EXISTS for a topic that was not there before has to check whether it created that topic itself.
    """
    made: dict[str, MadeTopic] = {}
    refused: dict[str, Refusal] = {}
    for some in _chunks(topics):
        left = {each.name: each for each in some}
        for _ in cluster.backoff.tries():
            fields = {
                "topics": [_creation(each) for each in left.values()],
                "timeout_ms": _TIMEOUT_MS,
                "validate_only": validate_only,
            }
            for found in cluster.ask_any("CreateTopics", fields).topics:
                if found.error_code == OK:
                    made[found.name] = _made_topic(found)
                    refused.pop(found.name, None)
                else:
                    refused[found.name] = _refusal(found.name, "CreateTopics", found)
            left = {name: left[name] for name in left if name in refused and refused[name].code in _PASSING}
            if not left:
                break
    return made, refused


def _chunks(topics: Sequence[NewTopic]) -> Iterator[list[NewTopic]]:
    some: list[NewTopic] = []
    for each in topics:
        if some and (len(some) >= _TOPICS or sum(t.partitions for t in some) + each.partitions > _PARTITIONS):
            yield some
            some = []
        some.append(each)
    if some:
        yield some


def _creation(topic: NewTopic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "num_partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "assignments": [],
        "configs": [{"name": name, "value": value} for name, value in sorted(topic.configs.items())],
    }


def _made_topic(found: Any) -> MadeTopic:
    configs = tuple(
        ConfigValue(c.name, None if c.is_sensitive else c.value, c.config_source, c.read_only)
        for c in found.configs or ()
    )
    return MadeTopic(found.name, UUID(bytes=found.topic_id.bytes) if found.topic_id else UUID(int=0), configs)


def _refusal(name: str, doing: str, found: Any) -> Refusal:
    return Refusal(name, doing, found.error_code, found.error_message or "")


def wait_for_leaders(cluster: Cluster, wanted: Mapping[str, int]) -> dict[str, Topic]:
    """Wait until each topic has the wanted number of partitions, all with leaders. Raises `ClusterNotReady`."""
    ready: dict[str, Topic] = {}
    for _ in cluster.backoff.tries() if wanted else ():
        found = {t.name: t for t in cluster.metadata().topics if t.name in wanted}
        ready = {
            name: t
            for name, t in found.items()
            if len(t.partitions) >= wanted[name] and all(p.leader >= 0 for p in t.partitions)
        }
        if len(ready) == len(wanted):
            return ready
    missing = sorted(wanted.keys() - ready.keys())
    if missing:
        created = plural(len(missing), "topic was created, but has", "topics were created, but have")
        raise ClusterNotReady(f"{created} partitions without leaders", subject=missing[0])
    return ready


def delete_topics(cluster: Cluster, ids: Mapping[str, UUID]) -> dict[str, Refusal]:
    """Delete each topic by its id: a new topic of the same name is left alone, and a topic that is gone is no error."""
    refused: dict[str, Refusal] = {}
    names = sorted(ids)
    for at in range(0, len(names), _TOPICS):
        left = {ids[name]: name for name in names[at : at + _TOPICS]}
        for _ in cluster.backoff.tries():
            fields = {
                "topics": [{"name": None, "topic_id": each} for each in left],
                "topic_names": list(left.values()),
                "timeout_ms": _TIMEOUT_MS,
            }
            replies = {UUID(bytes=r.topic_id.bytes): r for r in cluster.ask_any("DeleteTopics", fields).responses}
            for each, name in left.items():
                reply = replies.get(each)
                if reply is None:
                    raise unfit_answer("DeleteTopics", name)
                refused.pop(name, None)
                if reply.error_code not in {OK, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID}:
                    refused[name] = _refusal(name, "DeleteTopics", reply)
            left = {each: name for each, name in left.items() if name in refused and refused[name].code in _PASSING}
            if not left:
                break
    return refused


@dataclass(frozen=True)
class ConfigChange:
    """Configs to set on one topic, and configs to remove: those then have the default of the brokers."""

    set: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.set or self.unset)


def change_between(present: Mapping[str, str], wanted: Mapping[str, str]) -> ConfigChange:
    """Pure: the change that turns a topic's own configs into exactly the wanted ones."""
    changed = {name: value for name, value in sorted(wanted.items()) if present.get(name) != value}
    return ConfigChange(changed, tuple(sorted(present.keys() - wanted.keys())))


def alter_topic_configs(
    cluster: Cluster, changes: Mapping[str, ConfigChange], *, validate_only: bool = False
) -> dict[str, Refusal]:
    """Change configs one by one: those that are not named stay. Of one topic all changes are made or none."""
    refused: dict[str, Refusal] = {}
    names = [name for name, change in sorted(changes.items()) if change]
    for at in range(0, len(names), _TOPICS):
        left = names[at : at + _TOPICS]
        for _ in cluster.backoff.tries():
            fields = {"resources": [_alteration(name, changes[name]) for name in left], "validate_only": validate_only}
            for found in cluster.ask_any("IncrementalAlterConfigs", fields).responses:
                refused.pop(found.resource_name, None)
                if found.error_code != OK:
                    refused[found.resource_name] = _refusal(found.resource_name, "IncrementalAlterConfigs", found)
            left = [name for name in left if name in refused and refused[name].code in _PASSING]
            if not left:
                break
    return refused


def _alteration(name: str, change: ConfigChange) -> dict[str, Any]:
    ops = [{"name": key, "config_operation": _SET, "value": value} for key, value in change.set.items()]
    ops += [{"name": key, "config_operation": _DELETE, "value": None} for key in change.unset]
    return {"resource_type": int(ResourceKind.TOPIC), "resource_name": name, "configs": ops}


def delete_records(cluster: Cluster, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Move each log start to the given offset, on all replicas; returns the new log starts.

    May be repeated: a log that already starts later is not changed. Raises `ClusterError` for an offset above the high
    watermark and for a topic whose cleanup.policy has no `delete`, `NotAuthorised` without the right DELETE.
    """

    def ask(leader: Connection, some: Sequence[TopicPartition]) -> Iterator[Answer[int]]:
        topics = [
            {
                "name": topic,
                "partitions": [{"partition_index": p, "offset": before[TopicPartition(topic, p)]} for p in partitions],
            }
            for topic, partitions in by_topic(some).items()
        ]
        for found in leader.call("DeleteRecords", {"topics": topics, "timeout_ms": _TIMEOUT_MS}).topics:
            for each in found.partitions:
                yield TopicPartition(found.name, each.partition_index), each.error_code, each.low_watermark

    return cluster.ask_leaders(before, ask)
