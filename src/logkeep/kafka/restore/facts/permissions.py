"""Checks before a restore that this user has all rights that it needs.

Kafka's rules apply: READ, WRITE, DELETE and ALTER imply DESCRIBE, so a user who may not DESCRIBE has none of them; an
idempotent producer needs WRITE on any topic, or IDEMPOTENT_WRITE on the cluster. Rights that no broker answer reveals
are reported as unknown. The requests to the brokers change nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from logkeep.errors import NotAuthorised
from logkeep.kafka.admin.permissions import (
    cluster_operations,
    group_read_codes,
    topic_operations,
    transactional_describe_code,
    transactional_write_code,
)
from logkeep.kafka.admin.security import Quota, alter_quotas
from logkeep.kafka.admin.topic_changes import ConfigChange, NewTopic, alter_topic_configs, create_topics
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import OK
from logkeep.kafka.client.settings import ClientSettings
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.model.shell_words import shell_word

TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED, TRANSACTIONAL_ID_DENIED = 29, 30, 31, 53
CLUSTER = "kafka-cluster"
_ON_TOPICS = ("DESCRIBE", "WRITE", "READ", "ALTER_CONFIGS", "DESCRIBE_CONFIGS")
_BRING_DESCRIBE = frozenset({"DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"})
_FLAGS = {"TOPIC": "--topic", "GROUP": "--group", "TRANSACTIONAL_ID": "--transactional-id"}
_NAMED = 3


@dataclass(frozen=True, order=True)
class Right:
    """One operation on one resource."""

    resource: str
    name: str
    operation: str


@dataclass(frozen=True)
class RightsWanted:
    """The resources that a restore uses."""

    new_topics: tuple[str, ...] = ()
    existing_topics: tuple[str, ...] = ()
    shortened: frozenset[str] = frozenset()
    """Topics whose leading fillers are deleted, so that their logs start at the archived offset."""
    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    """Used to fill holes."""
    acls: bool = False
    quotas: bool = False

    @property
    def topics(self) -> tuple[str, ...]:
        return (*self.new_topics, *self.existing_topics)


@dataclass(frozen=True)
class RightsAnswers:
    """What the brokers answered about rights: error codes and allowed operations."""

    topics: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """None: this user may not DESCRIBE the topic."""
    creating: Mapping[str, int] = field(default_factory=dict)
    altering: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, int] = field(default_factory=dict)
    describing_ids: Mapping[str, int] = field(default_factory=dict)
    writing_ids: Mapping[str, int] = field(default_factory=dict)
    cluster: frozenset[str] | None = None
    """None: this user may not DESCRIBE the cluster."""
    quotas: int = 0


@dataclass(frozen=True)
class RightsFound:
    missing: tuple[Right, ...]
    unknown: tuple[Right, ...]


def compare_rights(wanted: RightsWanted, answers: RightsAnswers) -> RightsFound:
    """The needed rights that are missing or unknown."""
    verdicts = dict(_verdicts(wanted, answers))
    return RightsFound(
        missing=tuple(sorted(right for right, allowed in verdicts.items() if allowed is False)),
        unknown=tuple(sorted(right for right, allowed in verdicts.items() if allowed is None)),
    )


def _verdicts(wanted: RightsWanted, answers: RightsAnswers) -> Iterator[tuple[Right, bool | None]]:
    for topic in wanted.topics:
        for operation in (*_ON_TOPICS, *(["DELETE"] if topic in wanted.shortened else [])):
            yield Right("TOPIC", topic, operation), _on_topic(topic, operation, answers)
    for topic in wanted.new_topics:
        yield Right("TOPIC", topic, "CREATE"), answers.creating.get(topic) != TOPIC_DENIED
    for group in wanted.groups:
        yield Right("GROUP", group, "READ"), answers.groups.get(group) != GROUP_DENIED
    for each in wanted.transactional_ids:
        for operation, codes in (("DESCRIBE", answers.describing_ids), ("WRITE", answers.writing_ids)):
            yield Right("TRANSACTIONAL_ID", each, operation), codes.get(each) != TRANSACTIONAL_ID_DENIED
    yield from _on_cluster(wanted, answers)


def _on_topic(topic: str, operation: str, answers: RightsAnswers) -> bool | None:
    allowed = answers.topics.get(topic)
    if allowed is not None:
        return operation in allowed
    if operation in _BRING_DESCRIBE:
        return False
    may_alter = answers.altering.get(topic) != TOPIC_DENIED
    if operation == "ALTER_CONFIGS":
        return may_alter
    return True if may_alter else None


def _on_cluster(wanted: RightsWanted, answers: RightsAnswers) -> Iterator[tuple[Right, bool | None]]:
    allowed = answers.cluster
    if wanted.topics and not any("WRITE" in (answers.topics.get(each) or ()) for each in wanted.topics):
        right = Right("CLUSTER", CLUSTER, "IDEMPOTENT_WRITE")
        yield right, None if allowed is None else right.operation in allowed
    if wanted.acls:
        for operation in ("DESCRIBE", "ALTER"):
            yield Right("CLUSTER", CLUSTER, operation), operation in (allowed or ())
    if wanted.quotas:
        may_alter = answers.quotas != CLUSTER_DENIED if allowed is None else "ALTER_CONFIGS" in allowed
        yield Right("CLUSTER", CLUSTER, "ALTER_CONFIGS"), may_alter
        may_see = (may_alter or None) if allowed is None else "DESCRIBE_CONFIGS" in allowed
        yield Right("CLUSTER", CLUSTER, "DESCRIBE_CONFIGS"), may_see


def rights_findings(found: RightsFound, principal: str) -> list[Finding]:
    """One finding for each resource; a missing right stops the restore, an unknown one may fail later."""
    missing = [
        Finding(
            code="right-missing",
            severity=Severity.DAMAGE,
            where=_resource_text(resource, name),
            what=f"this user may not {', '.join(operations)}",
            remedy=grant_command(resource, name, operations, principal),
        )
        for (resource, name), operations in _by_resource(found.missing)
    ]
    unknown = [
        Finding(
            code="right-unknown",
            severity=Severity.NOTE,
            where=_resource_text(resource, name),
            what=f"whether this user may {', '.join(operations)} cannot be checked in advance",
            remedy=grant_command(resource, name, operations, principal),
        )
        for (resource, name), operations in _by_resource(found.unknown)
    ]
    return [*missing, *unknown]


def missing_rights_error(found: RightsFound, principal: str) -> NotAuthorised | None:
    """The error for what is missing; None when nothing is."""
    missing = _by_resource(found.missing)
    if not missing:
        return None
    lacking = "; ".join(
        f"{', '.join(operations)} on {_resource_text(*where)}" for where, operations in missing[:_NAMED]
    )
    more = f"; and {plural(len(missing) - _NAMED, 'more resource')}" if len(missing) > _NAMED else ""
    remedy = "; ".join(grant_command(*where, operations, principal) for where, operations in missing[:_NAMED])
    return NotAuthorised(f"this user lacks {lacking}{more}", remedy=f"{remedy}{more}")


def _by_resource(rights: Iterable[Right]) -> list[tuple[tuple[str, str], list[str]]]:
    grouped: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for each in rights:
        grouped[each.resource, each.name].append(each.operation)
    return list(grouped.items())


def _resource_text(resource: str, name: str) -> str:
    return "the cluster" if resource == "CLUSTER" else f"{resource.lower().replace('_', ' ')} {name}"


def grant_command(resource: str, name: str, operations: Iterable[str], principal: str) -> str:
    """The command that grants the missing operations."""
    flags = " ".join(f"--operation {each.title().replace('_', '')}" for each in operations)
    where = "--cluster" if resource == "CLUSTER" else f"{_FLAGS[resource]} {shell_word(name)}"
    if resource == "TRANSACTIONAL_ID":
        # Each log of each restore has an id of its own; they share a prefix.
        where = f"{_FLAGS[resource]} {shell_word(name.rpartition('-')[0] + '-')} --resource-pattern-type prefixed"
    return f"kafka-acls --add --allow-principal {shell_word(principal)} {flags} {where}"


_HARMLESS = ConfigChange({"retention.ms": "-1"})
_SOME_QUOTA = Quota((("user", None),), (("producer_byte_rate", 2.0**50),))
"""Requests that are sent with validate_only, to find out whether they would be allowed."""


def find_rights(cluster: Cluster, wanted: RightsWanted) -> RightsFound:
    """Ask the brokers which of the needed rights this user lacks."""
    return compare_rights(wanted, _ask_brokers(cluster, wanted))


def _ask_brokers(cluster: Cluster, wanted: RightsWanted) -> RightsAnswers:
    topics = {name: allowed for name, (_, allowed) in topic_operations(cluster, wanted.topics).items()}
    hidden = [name for name, allowed in topics.items() if allowed is None]
    new = [NewTopic(name, 1, -1) for name in wanted.new_topics]
    _, not_created = create_topics(cluster, new, validate_only=True)
    not_altered = alter_topic_configs(cluster, dict.fromkeys(hidden, _HARMLESS), validate_only=True)
    operations = cluster_operations(cluster)
    asks_quotas = wanted.quotas and operations is None
    not_limited = alter_quotas(cluster, [_SOME_QUOTA], validate_only=True) if asks_quotas else {}
    return RightsAnswers(
        topics=topics,
        creating={name: each.code for name, each in not_created.items()},
        altering={name: each.code for name, each in not_altered.items()},
        groups=group_read_codes(cluster, wanted.groups),
        describing_ids={each: transactional_describe_code(cluster, each) for each in wanted.transactional_ids},
        writing_ids={each: transactional_write_code(cluster, each) for each in wanted.transactional_ids},
        cluster=operations,
        quotas=not_limited[_SOME_QUOTA].code if not_limited else OK,
    )


def principal_of(settings: ClientSettings) -> str:
    """The principal to grant rights to, as far as the client knows its name."""
    return f"User:{settings.sasl.username}" if settings.sasl and settings.sasl.username else "User:NAME"
