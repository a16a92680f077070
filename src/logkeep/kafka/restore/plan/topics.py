"""How each topic is created: its partitions and replicas, its temporary configs and its final configs. Pure.

While records are written, the temporary configs prevent the broker from deleting, compacting, stamping, recompressing
or refusing them. What cannot be restored as it was is reported as a `TopicDifference`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from logkeep.errors import TargetUnsafe
from logkeep.kafka.logs.log_traits import LogTraits
from logkeep.kafka.record.documents import TopicRecord
from logkeep.kafka.restore.facts.target import TargetFacts, TargetTopic
from logkeep.kafka.restore.plan.refusals import join_names
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural

_FOREVER = str(2**63 - 1)
_LARGEST = 2**31 - 1
_MIB = 1024 * 1024
_OVERHEAD_BYTES = 12
"""The limit includes the offset and length fields of a batch; the length field does not count them."""
_FILLER_BYTES = 2 * _MIB
"""A batch with a million null records is well below this."""
OF_THE_CLUSTER = -1
"""The cluster's own number of replicas: for topics whose number is not archived, such as imported ones."""
_UNKNOWN_BATCH_BYTES = 100 * _MIB
"""The default limit of a broker for requests."""

_TEMPORARY = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "compression.type": "producer",
    "message.timestamp.before.max.ms": _FOREVER,
    "message.timestamp.after.max.ms": _FOREVER,
}
_OLD_TIME_LIMIT = "message.timestamp.difference.max.ms"
"""Brokers before 4.0 use it where the two newer limits have their defaults."""

TIERING = ("remote.", "local.retention.")
THROTTLES = frozenset({"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"})
"""Configs that name brokers of the source during a reassignment: they are not restored."""


def while_restoring(
    final: Mapping[str, str],
    defaults: Mapping[str, str],
    known: Collection[str],
    *,
    largest_batch_bytes: int | None,
    preserve: bool,
    replicas: int,
) -> dict[str, str]:
    """All configs that are set on the topic during the restore; `defaults` are the target's values for all topics.

    `known` are the names of the target's topic configs.
    """
    kept = {k: v for k, v in final.items() if not k.startswith(TIERING) and k not in {*THROTTLES, _OLD_TIME_LIMIT}}
    effective = {**defaults, **kept}
    limit = _message_limit(effective, largest_batch_bytes, preserve=preserve)
    more = {"max.message.bytes": str(limit)}
    if _OLD_TIME_LIMIT in known:
        more[_OLD_TIME_LIMIT] = _FOREVER
    if _number(effective.get("segment.bytes"), limit) < limit:
        more["segment.bytes"] = str(limit)  # a batch must fit into one segment
    if _number(effective.get("min.insync.replicas"), 1) > replicas > 0:
        more["min.insync.replicas"] = str(replicas)  # otherwise no batch would be acknowledged
    return {**kept, **_TEMPORARY, **more}


def _message_limit(effective: Mapping[str, str], largest_batch_bytes: int | None, *, preserve: bool) -> int:
    if largest_batch_bytes is None:
        needed = _UNKNOWN_BATCH_BYTES
    else:
        needed = largest_batch_bytes + largest_batch_bytes // 10 + _OVERHEAD_BYTES
    own = _number(effective.get("max.message.bytes"), _MIB + _OVERHEAD_BYTES)
    return min(max(needed, own, _FILLER_BYTES if preserve else 0), _LARGEST)


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isdecimal() else otherwise


class DifferenceReason(StrEnum):
    """Why a topic differs from the archived one; these are codes of findings."""

    UNKNOWN = "config-unknown"
    REFUSED = "config-refused"
    LEFT_OUT = "config-left-out"
    KEPT = "config-kept"
    DEFAULT = "default-differs"
    REPLICAS = "replication-factor"
    UNWRITABLE = "min-insync-replicas"


class TopicDifference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    why: DifferenceReason
    config: str
    archived: str
    """Empty: it was not set."""
    restored: str
    """Empty: it will not be set."""
    detail: str = ""
    """The message of the broker."""


class TopicPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    source: str
    name: str
    """The name in the target."""
    partitions: int
    replication_factor: int
    while_restoring: dict[str, str]
    """All configs set on the topic while records are written."""
    final: dict[str, str]
    """All configs set on the topic after the restore."""
    existing_id: str = ""
    """Hex; the topic existed before, with `final` as its configs. Empty: this restore creates it."""
    differences: tuple[TopicDifference, ...] = ()

    @property
    def existing(self) -> bool:
        return bool(self.existing_id)


class TopicOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    preserve: bool
    configs: bool = True
    """Whether archived configs are restored; otherwise new topics use the target's defaults."""
    replication_factor: int | None = None
    """The number of replicas; None: as archived."""


def plan_topic(
    record: TopicRecord,
    target: TargetFacts,
    options: TopicOptions,
    *,
    name: str,
    partitions: int,
    traits: LogTraits | None,
) -> TopicPlan:
    """`traits` are those of all restored logs; None: not known. Raises `TargetUnsafe` for too few brokers."""
    there = target.topics.get(name)
    if there is not None:
        return _plan_existing(there, record, target, options, traits)
    replicas = options.replication_factor or record.replication_factor or OF_THE_CLUSTER
    if replicas > len(target.brokers):
        raise _too_few_brokers(name, replicas, len(target.brokers))
    final, differences = _final(record, target) if options.configs else ({}, [])
    return TopicPlan(
        source=record.name,
        name=name,
        partitions=partitions,
        replication_factor=replicas,
        while_restoring=while_restoring(
            final,
            target.defaults,
            target.known_configs,
            largest_batch_bytes=traits.largest_batch_bytes if traits else None,
            preserve=options.preserve,
            replicas=replicas,
        ),
        final=final,
        differences=(*differences, *_replicas(record, replicas, {**target.defaults, **final})),
    )


def _plan_existing(
    there: TargetTopic, record: TopicRecord, target: TargetFacts, options: TopicOptions, traits: LogTraits | None
) -> TopicPlan:
    """An existing topic keeps its configs; differences from the archive are reported."""
    present, unset = dict(there.configs), record.configs.keys() - there.configs.keys()
    other = {k for k, v in present.items() if record.configs.get(k, v) != v} | unset
    temporary = while_restoring(
        present,
        target.defaults,
        target.known_configs,
        largest_batch_bytes=traits.largest_batch_bytes if traits else None,
        preserve=options.preserve,
        replicas=there.replicas,
    )
    return TopicPlan(
        source=record.name,
        name=there.name,
        partitions=there.partitions,
        replication_factor=there.replicas,
        while_restoring=temporary,
        final=present,
        existing_id=there.id,
        differences=tuple(
            TopicDifference(DifferenceReason.KEPT, k, record.configs.get(k, ""), present.get(k, ""))
            for k in sorted(other if options.configs else ())
        ),
    )


def _too_few_brokers(name: str, replicas: int, brokers: int) -> TargetUnsafe:
    return TargetUnsafe(
        f"{plural(replicas, 'replica is', 'replicas are')} requested and the target has {plural(brokers, 'broker')}",
        subject=name,
        remedy=f"use --replication-factor {brokers}, or add brokers",
    )


def _final(record: TopicRecord, target: TargetFacts) -> tuple[dict[str, str], list[TopicDifference]]:
    """Archived configs that the target knows, and differences. A user who sees no defaults learns it at validation."""
    known = target.known_configs or record.configs.keys()
    unknown = [
        TopicDifference(DifferenceReason.UNKNOWN, k, v, "") for k, v in sorted(record.configs.items()) if k not in known
    ]
    left_out = [
        TopicDifference(DifferenceReason.LEFT_OUT, k, v, "")
        for k, v in sorted(record.configs.items())
        if k in THROTTLES and k in known
    ]
    final = {k: v for k, v in record.configs.items() if k in known and k not in THROTTLES}
    return final, [*unknown, *left_out, *_defaults(record, target)]


def _defaults(record: TopicRecord, target: TargetFacts) -> list[TopicDifference]:
    """Configs that are not set on the topic, for which the brokers of the target have another default."""
    names = {*record.inherited, *target.inherited} - record.configs.keys()
    return [
        TopicDifference(DifferenceReason.DEFAULT, k, record.inherited.get(k, ""), target.defaults.get(k, ""))
        for k in sorted(names)
        if k in target.defaults
        and k not in THROTTLES
        and not _same_default(k, record.inherited.get(k), target.defaults.get(k))
    ]


def _same_default(name: str, archived: str | None, here: str | None) -> bool:
    # Newer versions of Kafka set this one for all topics, to its default.
    return archived == here or (name == "min.insync.replicas" and {archived, here} <= {"1", None})


def _replicas(record: TopicRecord, replicas: int, effective: Mapping[str, str]) -> list[TopicDifference]:
    found = []
    if record.replication_factor and replicas != record.replication_factor:
        found.append(TopicDifference(DifferenceReason.REPLICAS, "", str(record.replication_factor), str(replicas)))
    minimum = effective.get("min.insync.replicas", "1")
    if minimum.isdecimal() and int(minimum) > replicas > 0:
        found.append(
            TopicDifference(
                DifferenceReason.UNWRITABLE, "min.insync.replicas", minimum, minimum, plural(replicas, "replica")
            )
        )
    return found


_TEXTS = {
    DifferenceReason.UNKNOWN: (Severity.WARNING, "{config}={archived} is not set: the target does not know it"),
    DifferenceReason.REFUSED: (Severity.WARNING, "{config}={archived} is not set: the target refuses it: {detail}"),
    DifferenceReason.LEFT_OUT: (Severity.NOTE, "{config}={archived} is not set: it names brokers of the source"),
    DifferenceReason.KEPT: (
        Severity.NOTE,
        "the topic existed before and keeps {config}={restored}; archived is {archived}",
    ),
    DifferenceReason.DEFAULT: (
        Severity.NOTE,
        "{config} is not set on topics: here it is {restored}, at the source {archived}",
    ),
    DifferenceReason.REPLICAS: (Severity.NOTE, "{restored} replicas; archived are {archived}"),
    DifferenceReason.UNWRITABLE: (
        Severity.WARNING,
        "min.insync.replicas={archived} with {detail}: acks=all will be refused",
    ),
}


def difference_findings(plans: Iterable[TopicPlan]) -> list[Finding]:
    """One finding for each difference; it lists all topics that have it."""
    topics: defaultdict[TopicDifference, list[str]] = defaultdict(list)
    for plan in plans:
        for each in plan.differences:
            topics[each].append(plan.name)
    return [_finding(each, names) for each, names in topics.items()]


def _finding(difference: TopicDifference, topics: Sequence[str]) -> Finding:
    severity, text = _TEXTS[difference.why]
    unset = "Kafka's own default" if difference.why is DifferenceReason.DEFAULT else "(not set)"
    what = text.format(
        config=difference.config,
        archived=difference.archived or unset,
        restored=difference.restored or unset,
        detail=difference.detail,
    )
    return Finding(code=difference.why, severity=severity, where=join_names(sorted(topics)), what=what)
