"""ACLs and client quotas, read and added, and the names of users with SCRAM credentials. Nothing is ever removed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from logkeep.errors import Damaged
from logkeep.formats.kafka.internal_topics.metadata_records import AclMade
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import OK, SECURITY_DISABLED, Refusal, check, unfit_answer

_ANY = 1
_CHUNK = 500
RESOURCES = {2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID", 6: "DELEGATION_TOKEN", 7: "USER"}
PATTERNS = {3: "LITERAL", 4: "PREFIXED"}
PERMISSIONS = {2: "DENY", 3: "ALLOW"}
OPERATIONS = {
    2: "ALL", 3: "READ", 4: "WRITE", 5: "CREATE", 6: "DELETE", 7: "ALTER", 8: "DESCRIBE", 9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS", 11: "ALTER_CONFIGS", 12: "IDEMPOTENT_WRITE", 13: "CREATE_TOKENS", 14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}  # fmt: skip


@dataclass(frozen=True, order=True)
class AclBinding:
    """One rule, in Kafka's own words. A code without a word here stays a number."""

    resource_type: str
    resource_name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str


@dataclass(frozen=True, order=True)
class Quota:
    """Limits of one entity. The name None is the default of its type: `(("user", None),)` means every user."""

    entity: tuple[tuple[str, str | None], ...]
    limits: tuple[tuple[str, float], ...]


def list_acls(cluster: Cluster) -> tuple[AclBinding, ...] | None:
    """All rules, sorted; None = the cluster has no authorizer. Raises `NotAuthorised`."""
    fields = {
        "resource_type_filter": _ANY,
        "resource_name_filter": None,
        "pattern_type_filter": _ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": _ANY,
        "permission_type": _ANY,
    }
    reply = cluster.ask_any("DescribeAcls", fields)
    if reply.error_code == SECURITY_DISABLED:
        return None
    check(reply.error_code, subject="ACLs", doing="DescribeAcls", message=reply.error_message)
    return tuple(sorted(_acl(resource, each) for resource in reply.resources for each in resource.acls))


def _acl(resource: Any, rule: Any) -> AclBinding:
    return AclBinding(
        resource_type=_word(RESOURCES, resource.resource_type),
        resource_name=resource.resource_name,
        pattern=_word(PATTERNS, resource.pattern_type),
        principal=rule.principal,
        host=rule.host,
        operation=_word(OPERATIONS, rule.operation),
        permission=_word(PERMISSIONS, rule.permission_type),
    )


def acl_of(rule: AclMade) -> AclBinding:
    """A rule from a record of the metadata log."""
    return AclBinding(
        resource_type=_word(RESOURCES, rule.resource_type),
        resource_name=rule.resource_name,
        pattern=_word(PATTERNS, rule.pattern),
        principal=rule.principal,
        host=rule.host,
        operation=_word(OPERATIONS, rule.operation),
        permission=_word(PERMISSIONS, rule.permission),
    )


def _word(words: Mapping[int, str], number: int) -> str:
    return words.get(number, str(number))


def list_quotas(cluster: Cluster) -> tuple[Quota, ...]:
    """All quotas by user, client id and address. Raises `NotAuthorised`."""
    reply = cluster.ask_any("DescribeClientQuotas", {"components": [], "strict": False})
    check(reply.error_code, subject="quotas", doing="DescribeClientQuotas", message=reply.error_message)
    return tuple(sorted((_quota(each) for each in reply.entries or ()), key=repr))


def _quota(found: Any) -> Quota:
    return Quota(
        tuple((each.entity_type, each.entity_name) for each in found.entity),
        tuple(sorted((each.key, each.value) for each in found.values)),
    )


def scram_users(cluster: Cluster) -> tuple[str, ...]:
    """Users with SCRAM credentials of any mechanism. Raises `NotAuthorised`."""
    # Empty, not null: both mean all users, but a broker that has to refuse a null list never replies (seen on 4.3.1).
    reply = cluster.ask_any("DescribeUserScramCredentials", {"users": []})
    check(reply.error_code, subject="SCRAM credentials", doing="DescribeUserScramCredentials")
    return tuple(sorted(each.user for each in reply.results if each.error_code == OK))


def create_acls(cluster: Cluster, acls: Sequence[AclBinding]) -> dict[AclBinding, Refusal]:
    """Add rules; returns the refused ones. A rule that exists already is no error."""
    refused: dict[AclBinding, Refusal] = {}
    for at in range(0, len(acls), _CHUNK):
        some = acls[at : at + _CHUNK]
        reply = cluster.ask_any("CreateAcls", {"creations": [_creation(each) for each in some]})
        if len(reply.results) != len(some):
            raise unfit_answer("CreateAcls", some[0].resource_name)
        refused |= {
            acl: Refusal(f"{acl.resource_type} {acl.resource_name}", "CreateAcls", r.error_code, r.error_message or "")
            for acl, r in zip(some, reply.results, strict=True)
            if r.error_code != OK
        }
    return refused


def check_acls(acls: Sequence[AclBinding]) -> None:
    """Raises Damaged for a rule that has a word which is none of Kafka's."""
    for each in acls:
        _creation(each)


def _creation(acl: AclBinding) -> dict[str, Any]:
    return {
        "resource_type": _number(RESOURCES, acl.resource_type),
        "resource_name": acl.resource_name,
        "resource_pattern_type": _number(PATTERNS, acl.pattern),
        "principal": acl.principal,
        "host": acl.host,
        "operation": _number(OPERATIONS, acl.operation),
        "permission_type": _number(PERMISSIONS, acl.permission),
    }


def _number(words: Mapping[int, str], word: str) -> int:
    """The code of a word; a code without a word was kept as a number."""
    known = next((number for number, each in words.items() if each == word), None)
    if known is None and not (word.isascii() and word.isdigit()):
        raise Damaged(f"no rule of Kafka has the word {word!r}", subject="an archived ACL")
    return known or int(word)


def alter_quotas(cluster: Cluster, quotas: Sequence[Quota], *, validate_only: bool = False) -> dict[Quota, Refusal]:
    """Set limits of each entity and keep its other limits; returns the refused quotas."""
    refused: dict[Quota, Refusal] = {}
    for at in range(0, len(quotas), _CHUNK):
        some = {frozenset(each.entity): each for each in quotas[at : at + _CHUNK]}
        fields = {"entries": [_entry(each) for each in some.values()], "validate_only": validate_only}
        # Brokers may reply in another order.
        for found in cluster.ask_any("AlterClientQuotas", fields).entries:
            quota = some.get(frozenset((e.entity_type, e.entity_name) for e in found.entity))
            if quota is None:
                raise unfit_answer("AlterClientQuotas", quota_name(next(iter(some.values()))))
            if found.error_code != OK:
                message = found.error_message or ""
                refused[quota] = Refusal(quota_name(quota), "AlterClientQuotas", found.error_code, message)
    return refused


def quota_name(quota: Quota) -> str:
    return ", ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in quota.entity)


def _entry(quota: Quota) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in quota.entity],
        "ops": [{"key": key, "value": value, "remove": False} for key, value in quota.limits],
    }
