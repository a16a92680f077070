"""ACLs, client quotas and who has SCRAM credentials, as values that can be written down; secrets are not told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from logkeep.formats.kafka.metadata_records import AclMade
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import OK, SECURITY_DISABLED, check

_ANY = 1
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
    """One rule, in Kafka's own words; a number that we have no word for stays a number."""

    resource_type: str
    resource_name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str


@dataclass(frozen=True, order=True)
class Quota:
    """Limits of one entity. A name of None is the default of its type: `(("user", None),)` = every user."""

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
    """A rule as the metadata log has it."""
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
    """Who has SCRAM credentials of any mechanism. Raises `NotAuthorised`."""
    # Empty, not null: both mean everybody, but a broker that has to refuse a null list never answers (seen on 4.3.1).
    reply = cluster.ask_any("DescribeUserScramCredentials", {"users": []})
    check(reply.error_code, subject="SCRAM credentials", doing="DescribeUserScramCredentials")
    return tuple(sorted(each.user for each in reply.results if each.error_code == OK))
