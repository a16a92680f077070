"""Adding ACLs and quotas. Nothing is ever taken away here."""

from collections.abc import Mapping, Sequence
from typing import Any

from logkeep.kafka.admin.security import OPERATIONS, PATTERNS, PERMISSIONS, RESOURCES, AclBinding, Quota
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import OK, Refusal

_CHUNK = 500


def create_acls(cluster: Cluster, acls: Sequence[AclBinding]) -> dict[AclBinding, Refusal]:
    """Those that were refused. One that is there already is no error."""
    refused: dict[AclBinding, Refusal] = {}
    for at in range(0, len(acls), _CHUNK):
        some = acls[at : at + _CHUNK]
        reply = cluster.ask_any("CreateAcls", {"creations": [_acl(each) for each in some]})
        refused |= _refused(some, reply)
    return refused


def _refused(acls: Sequence[AclBinding], reply: Any) -> dict[AclBinding, Refusal]:
    return {
        acl: Refusal(f"{acl.resource_type} {acl.resource_name}", "CreateAcls", r.error_code, r.error_message or "")
        for acl, r in zip(acls, reply.results, strict=True)
        if r.error_code != OK
    }


def _acl(acl: AclBinding) -> dict[str, Any]:
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
    """What we had no word for was kept as a number."""
    return next((number for number, each in words.items() if each == word), None) or int(word)


def alter_quotas(cluster: Cluster, quotas: Sequence[Quota], *, validate_only: bool = False) -> dict[Quota, Refusal]:
    """Set limits of each entity; others that it has stay. Those that were refused are returned."""
    refused: dict[Quota, Refusal] = {}
    for at in range(0, len(quotas), _CHUNK):
        some = {frozenset(each.entity): each for each in quotas[at : at + _CHUNK]}
        fields = {"entries": [_entry(each) for each in some.values()], "validate_only": validate_only}
        # Brokers answer in an order of their own.
        for found in cluster.ask_any("AlterClientQuotas", fields).entries:
            quota = some[frozenset((e.entity_type, e.entity_name) for e in found.entity)]
            if found.error_code != OK:
                message = found.error_message or ""
                refused[quota] = Refusal(named(quota), "AlterClientQuotas", found.error_code, message)
    return refused


def named(quota: Quota) -> str:
    return ", ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in quota.entity)


def _entry(quota: Quota) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in quota.entity],
        "ops": [{"key": key, "value": value, "remove": False} for key, value in quota.limits],
    }
