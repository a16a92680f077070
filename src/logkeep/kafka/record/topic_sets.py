"""Topics that belong together: those of a Kafka Connect cluster, and those of a Kafka Streams application. Pure.

They are recognised by their names, which both products fix. A Connect cluster has three compacted topics with one
prefix (`connect-configs`, `connect-offsets`, `connect-status` by default), and its sinks are the groups `connect-NAME`.
A Streams application has topics `APPLICATION-…-changelog` and `…-repartition`, and its id is the name of its group.
Which topics a source connector writes is not in their names.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from logkeep.kafka.record.deletion_times import rule_of
from logkeep.model.findings import Finding, Severity

if TYPE_CHECKING:
    from logkeep.kafka.record.documents import GroupRecord, TopicRecord

CONNECT: Final = "kafka-connect"
STREAMS: Final = "kafka-streams"
SET_TORN: Final = "topic-set-torn"
_CONNECT_TOPIC = re.compile(r"(?P<prefix>.*?)(?P<sign>[-._]?)(?P<role>configs?|offsets?|status(?:es)?)")
_ROLES = ("config", "offset", "status")
_OWN_TOPIC = re.compile(r".*-(changelog|repartition)")
_GENERATED = re.compile(r"(?P<app>.+?)-K(STREAM|TABLE)-.*")
_SINK = "connect-"
_SHOWN = 8


class TopicSet(msgspec.Struct, frozen=True, kw_only=True):
    """A Connect cluster or a Streams application, as far as the backup shows it."""

    kind: str
    """`kafka-connect` or `kafka-streams`."""
    name: str
    """The prefix of the topics' names, or the application id."""
    topics: tuple[str, ...]
    """Topics that only the workers, or only the application, write."""
    inputs: tuple[str, ...]
    """Topics that its groups read."""
    groups: tuple[str, ...]
    missing: tuple[str, ...] = ()
    """Topics of the set that are not in this backup."""


def topic_sets(topics: "Iterable[TopicRecord]", groups: "Iterable[GroupRecord]") -> tuple[TopicSet, ...]:
    known, all_groups = list(topics), list(groups)
    reads = {g.name: sorted({c.topic for c in g.commits}) for g in all_groups}
    return (*_connect(known, reads), *_streams(known, reads))


def _connect(topics: "Iterable[TopicRecord]", reads: Mapping[str, list[str]]) -> Iterator[TopicSet]:
    found: dict[str, dict[str, str]] = {}
    for topic in topics:
        match = _CONNECT_TOPIC.fullmatch(topic.name)
        if match is not None and rule_of(topic).compacts and not topic.name.startswith("__"):
            role = next(role for role in _ROLES if match["role"].startswith(role))
            found.setdefault(match["prefix"] + match["sign"], {})[role] = topic.name
    sets = {prefix: own for prefix, own in found.items() if len(own) == len(_ROLES) or "connect" in prefix.lower()}
    sinks = [name for name in sorted(reads) if name.startswith(_SINK) and reads[name]] if len(sets) == 1 else []
    for prefix, own in sorted(sets.items()):
        named = tuple(sorted(own.values()))
        yield TopicSet(
            kind=CONNECT,
            name=prefix.rstrip("-._") or "connect",
            topics=named,
            inputs=tuple(sorted({t for name in sinks for t in reads[name]} - set(named))),
            groups=tuple(sinks),
            missing=tuple(f"{prefix}{_USUAL[role]}" for role in _ROLES if role not in own),
        )


_USUAL = {"config": "configs", "offset": "offsets", "status": "status"}


def _streams(topics: "Iterable[TopicRecord]", reads: Mapping[str, list[str]]) -> Iterator[TopicSet]:
    found: dict[str, list[str]] = {}
    names = {t.name for t in topics}
    for name in sorted(names):
        application = _application(name, reads) if _OWN_TOPIC.fullmatch(name) else None
        if application is not None:
            found.setdefault(application, []).append(name)
    for application, own in sorted(found.items()):
        read = set(reads.get(application, ()))
        yield TopicSet(
            kind=STREAMS,
            name=application,
            topics=tuple(own),
            inputs=tuple(sorted((read - set(own)) & names)),
            groups=(application,) if application in reads else (),
            missing=tuple(sorted(read - names)),
        )


def _application(topic: str, reads: Mapping[str, list[str]]) -> str | None:
    """The longest name of a group that the topic's name begins with; without one, what Streams generates shows it."""
    groups = [name for name in reads if topic.startswith(f"{name}-")]
    if groups:
        return max(groups, key=len)
    generated = _GENERATED.fullmatch(topic)
    return generated["app"] if generated is not None else None


def torn_sets(sets: Iterable[TopicSet], chosen: Iterable[str], groups: Iterable[str]) -> list[Finding]:
    """Sets of which a restore brings back a part. `chosen`: the restored topics; `groups`: the groups that are set."""
    restored, set_groups = set(chosen), set(groups)
    return [_finding(each, left) for each in sets if (left := _left_out(each, restored, set_groups))]


def _left_out(each: TopicSet, restored: set[str], groups: set[str]) -> list[str]:
    """Members that are missing where others come back.

    Inputs alone are no part of the set, unless an application's own offsets are set in them: its state is then another.
    """
    begun = not restored.isdisjoint(each.topics)
    moved = each.kind == STREAMS and not restored.isdisjoint(each.inputs) and not groups.isdisjoint(each.groups)
    members = {*each.topics, *each.inputs, *each.missing}
    return sorted(members - restored) if begun or moved else []


def _finding(each: TopicSet, left: list[str]) -> Finding:
    what = "Kafka Connect cluster" if each.kind == CONNECT else "Kafka Streams application"
    more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    return Finding(
        code=SET_TORN,
        severity=Severity.WARNING,
        where=f"{what} {each.name}",
        what=f"its topics belong together, and these are not restored: {', '.join(left[:_SHOWN])}{more}",
        remedy="restore all of them from one backup, with the workers or instances stopped; "
        + ("their offsets and configs belong to each other" if each.kind == CONNECT else "and remove local state"),
    )
