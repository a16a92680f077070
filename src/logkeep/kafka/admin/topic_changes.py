"""Many topics made or deleted with few requests. What is refused is told by topic, and does not stop the others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from logkeep.errors import ClusterNotReady
from logkeep.kafka.admin.topics import ConfigValue
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import OK, TRY_AGAIN, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID, Refusal
from logkeep.kafka.client.topology import Topic

_TOPICS = 200
_PARTITIONS = 2000
"""Per request: controllers refuse more than ten thousand changes at once, and small requests keep others going."""
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
    """Means nothing where a question was asked with `validate_only`: nobody will ever have it."""
    configs: tuple[ConfigValue, ...]


def create_topics(
    cluster: Cluster, topics: Sequence[NewTopic], *, validate_only: bool = False
) -> tuple[dict[str, MadeTopic], dict[str, Refusal]]:
    """Made and refused, by name. With `validate_only` the cluster only says what it would do.

    A request whose reply was lost is sent again, and the second one finds the topics there: who gets TOPIC_EXISTS for
    a topic that was not there before has to look whether it is its own.
    """
    made: dict[str, MadeTopic] = {}
    refused: dict[str, Refusal] = {}
    for some in _chunks(topics):
        left = {each.name: each for each in some}
        for _ in cluster.patience.tries():
            asked = [_asked(each) for each in left.values()]
            fields = {"topics": asked, "timeout_ms": _TIMEOUT_MS, "validate_only": validate_only}
            for found in cluster.ask_any("CreateTopics", fields).topics:
                if found.error_code == OK:
                    made[found.name] = _made(found)
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


def _asked(topic: NewTopic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "num_partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "assignments": [],
        "configs": [{"name": name, "value": value} for name, value in sorted(topic.configs.items())],
    }


def _made(found: Any) -> MadeTopic:
    configs = tuple(
        ConfigValue(c.name, None if c.is_sensitive else c.value, c.config_source, c.read_only, c.is_sensitive)
        for c in found.configs or ()
    )
    return MadeTopic(found.name, UUID(bytes=found.topic_id.bytes) if found.topic_id else UUID(int=0), configs)


def _refusal(name: str, doing: str, found: Any) -> Refusal:
    return Refusal(name, doing, found.error_code, found.error_message or "")


def wait_for_leaders(cluster: Cluster, wanted: Mapping[str, int]) -> dict[str, Topic]:
    """The topics when each of them has so many partitions, all with leaders. Raises `ClusterNotReady`."""
    ready: dict[str, Topic] = {}
    for _ in cluster.patience.tries() if wanted else ():
        found = {t.name: t for t in cluster.metadata().topics if t.name in wanted}
        ready = {name: t for name, t in found.items() if _is_led(t, wanted[name])}
        if len(ready) == len(wanted):
            return ready
    missing = sorted(wanted.keys() - ready.keys())
    if missing:
        raise ClusterNotReady(
            f"{len(missing)} topics were made, but have partitions without leaders", subject=missing[0]
        )
    return ready


def _is_led(topic: Topic, partitions: int) -> bool:
    return len(topic.partitions) >= partitions and all(p.leader >= 0 for p in topic.partitions)


def delete_topics(cluster: Cluster, ids: Mapping[str, UUID]) -> dict[str, Refusal]:
    """Delete each by its id, so that one made again under the same name is left alone. Those that are gone are fine."""
    refused: dict[str, Refusal] = {}
    names = sorted(ids)
    for at in range(0, len(names), _TOPICS):
        left = {ids[name]: name for name in names[at : at + _TOPICS]}
        for _ in cluster.patience.tries():
            fields = {
                "topics": [{"name": None, "topic_id": each} for each in left],
                "topic_names": list(left.values()),
                "timeout_ms": _TIMEOUT_MS,
            }
            replies = {UUID(bytes=r.topic_id.bytes): r for r in cluster.ask_any("DeleteTopics", fields).responses}
            for each, reply in replies.items():
                name = left[each]
                refused.pop(name, None)
                if reply.error_code not in {OK, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID}:
                    refused[name] = _refusal(name, "DeleteTopics", reply)
            left = {each: name for each, name in left.items() if name in refused and refused[name].code in _PASSING}
            if not left:
                break
    return refused
