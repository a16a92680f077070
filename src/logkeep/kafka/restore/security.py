"""Restores ACLs and client quotas: missing rules and limits are added; nothing is removed or changed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from logkeep.kafka.admin.security import AclBinding, Quota, alter_quotas, create_acls, quota_name
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import SECURITY_DISABLED
from logkeep.kafka.record.documents import AclRecord, QuotaRecord
from logkeep.kafka.restore.plan.refusals import join_names
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural

_EVERYTHING = "*"


@dataclass(frozen=True)
class AclPlan:
    add: tuple[AclBinding, ...]
    present: tuple[AclBinding, ...]
    """Archived rules that the target already has."""
    other: int
    """The number of other rules of the target; they stay."""
    findings: tuple[Finding, ...] = ()


def plan_acls(
    archived: Sequence[AclRecord] | None,
    there: Sequence[AclBinding] | None,
    renamed: Mapping[str, str],
    *,
    only_topics: Collection[str] | None = None,
) -> AclPlan:
    """Pure. None: that cluster has no authorizer. With `only_topics`, literal rules for other topics are left out."""
    if archived is None:
        return AclPlan((), (), len(there or ()), (_not_archived(),))
    every = [AclBinding(*msgspec.structs.astuple(a)) for a in archived]
    chosen = [a for a in every if only_topics is None or not _by_name(a) or a.resource_name in only_topics]
    if there is None:
        return AclPlan((), (), 0, (_no_authorizer(len(chosen)),) if chosen else ())
    wanted = sorted({_renamed(a, renamed) for a in chosen})
    present = set(there)
    return AclPlan(
        add=tuple(a for a in wanted if a not in present),
        present=tuple(a for a in wanted if a in present),
        other=len(present.difference(wanted)),
        findings=tuple(_prefix_finding(a, lost) for a in chosen if (lost := _no_longer_matched(a, renamed))),
    )


def _by_name(acl: AclBinding) -> bool:
    return acl.resource_type == "TOPIC" and acl.pattern == "LITERAL" and acl.resource_name != _EVERYTHING


def _renamed(acl: AclBinding, renamed: Mapping[str, str]) -> AclBinding:
    return replace(acl, resource_name=renamed.get(acl.resource_name, acl.resource_name)) if _by_name(acl) else acl


def _no_longer_matched(acl: AclBinding, renamed: Mapping[str, str]) -> list[str]:
    """Topics that a prefixed rule matched, and no longer matches under their new names."""
    if acl.resource_type != "TOPIC" or acl.pattern != "PREFIXED":
        return []
    start = acl.resource_name
    return sorted(old for old, new in renamed.items() if old.startswith(start) and not new.startswith(start))


def _prefix_finding(acl: AclBinding, topics: Sequence[str]) -> Finding:
    return Finding(
        code="acl-prefix",
        severity=Severity.WARNING,
        where=_acl_text(acl),
        what=f"it matched {join_names(topics)}, whose new names have another prefix",
        remedy="add a rule for the new names with kafka-acls",
    )


def _acl_text(acl: AclBinding) -> str:
    pattern = "" if acl.pattern == "LITERAL" else f" ({acl.pattern.lower()})"
    where = f"{acl.resource_type} {acl.resource_name}{pattern}"
    return f"{acl.permission} {acl.principal} from {acl.host} {acl.operation} on {where}"


def _no_authorizer(rules: int) -> Finding:
    return Finding(
        code="authorizer-missing",
        severity=Severity.WARNING,
        where="ACLs",
        what=f"the target has no authorizer: {plural(rules, 'rule was', 'rules were')} not restored, and every user "
        "may do everything",
        remedy="set authorizer.class.name on the brokers, then restore again with --what acls",
    )


def _not_archived() -> Finding:
    return Finding(
        code="acls-not-archived",
        severity=Severity.NOTE,
        where="ACLs",
        what="the backup has none: the source had no authorizer, or the user of the backup could not see them",
    )


def apply_acls(cluster: Cluster, plan: AclPlan) -> list[Finding]:
    """Add the rules of the plan, DENY before ALLOW; rules that the target refuses are findings."""
    refused = create_acls(cluster, sorted(plan.add, key=lambda a: a.permission != "DENY"))
    if any(r.code == SECURITY_DISABLED for r in refused.values()):
        return [_no_authorizer(len(plan.add))]
    return [_refused(acl, str(refusal.error())) for acl, refusal in sorted(refused.items(), key=lambda r: r[0])]


def _refused(acl: AclBinding, why: str) -> Finding:
    return Finding(
        code="acl-refused",
        severity=Severity.WARNING,
        where=_acl_text(acl),
        what=f"it was not restored: {why}",
        remedy="add it with kafka-acls, or a rule that this version of Kafka supports",
    )


def scram_finding(*, archived: bool) -> list[Finding]:
    """Pure: archived credentials cannot be restored to a running cluster."""
    finding = Finding(
        code="scram-not-restored",
        severity=Severity.WARNING,
        where="SCRAM credentials",
        what="they cannot be set on a running cluster: its API needs passwords, which are stored nowhere",
        remedy="set passwords with kafka-configs --alter --entity-type users, or start a new cluster with them",
    )
    return [finding] if archived else []


Entity = frozenset[tuple[str, str | None]]


@dataclass(frozen=True)
class QuotaPlan:
    add: tuple[Quota, ...]
    present: int
    """Limits that the target already has, with the same value."""
    other: int
    """Other limits of the target; they stay."""
    findings: tuple[Finding, ...] = ()


def plan_quotas(archived: Sequence[QuotaRecord], there: Sequence[Quota]) -> QuotaPlan:
    """Pure. A limit with another value in the target stays, and is reported."""
    found = {(frozenset(q.entity), key): value for q in there for key, value in q.limits}
    wanted = {(frozenset(q.entity), key): value for q in archived for key, value in q.limits}
    add = [Quota(q.entity, tuple(x for x in q.limits if (frozenset(q.entity), x[0]) not in found)) for q in archived]
    return QuotaPlan(
        add=tuple(q for q in add if q.limits),
        present=sum(found.get(limit) == value for limit, value in wanted.items()),
        other=len(found.keys() - wanted.keys()),
        findings=tuple(
            _differs(entity, key, value, found[entity, key])
            for (entity, key), value in wanted.items()
            if (entity, key) in found and found[entity, key] != value
        ),
    )


def _differs(entity: Entity, key: str, archived: float, here: float) -> Finding:
    return Finding(
        code="quota-differs",
        severity=Severity.WARNING,
        where=quota_name(Quota(tuple(sorted(entity, key=repr)), ())),
        what=f"{key} is {here:g} in the target and stays so; archived is {archived:g}",
        remedy="change it with kafka-configs --alter if you need the archived value",
    )


def apply_quotas(cluster: Cluster, plan: QuotaPlan) -> list[Finding]:
    """Set the limits of the plan; limits that the target refuses are findings."""
    return [
        Finding(
            code="quota-refused",
            severity=Severity.WARNING,
            where=quota_name(quota),
            what=f"it was not restored: {refusal.error()}",
            remedy="set it with kafka-configs --alter",
        )
        for quota, refusal in alter_quotas(cluster, plan.add).items()
    ]
