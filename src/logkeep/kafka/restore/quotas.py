"""Client quotas of a backup brought to a cluster: limits that are missing are set, others stay as they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.kafka.admin.granting import alter_quotas, named
from logkeep.kafka.admin.security import Quota
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.record.documents import QuotaRecord
from logkeep.model.findings import Finding, Severity

Entity = frozenset[tuple[str, str | None]]


@dataclass(frozen=True)
class QuotaPlan:
    add: tuple[Quota, ...]
    present: int
    """Limits that are there already, with this very value."""
    other: int
    """Limits that the target has besides; they stay."""
    findings: tuple[Finding, ...] = ()


def plan_quotas(archived: Sequence[QuotaRecord], there: Sequence[Quota]) -> QuotaPlan:
    """Pure. A limit that the target has with another value is somebody's choice: it stays, and is told."""
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
        where=named(Quota(tuple(sorted(entity, key=repr)), ())),
        what=f"{key} is {here:g} here and stays so; archived is {archived:g}",
        remedy="change it with kafka-configs --alter if the archived one is meant",
    )


def apply_quotas(cluster: Cluster, plan: QuotaPlan) -> list[Finding]:
    """Set what the plan says; limits that the target refuses are findings."""
    return [
        Finding(
            code="quota-refused",
            severity=Severity.WARNING,
            where=named(quota),
            what=f"it was not restored: {refusal.error()}",
            remedy="set it with kafka-configs --alter",
        )
        for quota, refusal in alter_quotas(cluster, plan.add).items()
    ]
