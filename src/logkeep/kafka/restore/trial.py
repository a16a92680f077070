"""Asking the target whether it would take the planned topics, without making any of them.

A config that it refuses by its value is found by asking for each alone, and becomes a difference of the plan.
"""

from collections.abc import Sequence

import msgspec

from logkeep.errors import ClusterError
from logkeep.kafka.admin.configs import alter_topic_configs, change_between
from logkeep.kafka.admin.topic_changes import NewTopic, create_topics
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import Refusal
from logkeep.kafka.restore.plan.topics import DifferenceReason, TopicDifference, TopicPlan

_INVALID_CONFIG = 40
_POLICY = 44
_ABOUT_CONFIGS = frozenset({_INVALID_CONFIG, _POLICY})


def tried(cluster: Cluster, plans: Sequence[TopicPlan]) -> tuple[list[TopicPlan], list[ClusterError]]:
    """The plans without what the target refuses of final configs; and what it refuses for good."""
    refused = _refused(cluster, plans, final=True)
    mended = [_mended(cluster, p, refused[p.name]) if p.name in refused else p for p in plans]
    still = _refused(cluster, mended, final=True) | _refused(cluster, mended, final=False)
    return mended, [each.error() for each in still.values()]


def _refused(cluster: Cluster, plans: Sequence[TopicPlan], *, final: bool) -> dict[str, Refusal]:
    """What would be refused of the topics with their final or their temporary configs."""
    new = [
        NewTopic(p.name, p.partitions, p.replication_factor, p.final if final else p.while_restoring)
        for p in plans
        if not p.existing
    ]
    _, refused = create_topics(cluster, new, validate_only=True)
    existing = {p.name: change_between(p.final, p.while_restoring) for p in plans if p.existing and not final}
    return refused | alter_topic_configs(cluster, existing, validate_only=True)


def _mended(cluster: Cluster, plan: TopicPlan, refusal: Refusal) -> TopicPlan:
    """Configs that are refused when they are all that is asked for are left out."""
    if refusal.code not in _ABOUT_CONFIGS:
        return plan
    bad: dict[str, str] = {}
    for name, value in sorted(plan.final.items()):
        alone = NewTopic(plan.name, plan.partitions, plan.replication_factor, {name: value})
        _, refused = create_topics(cluster, [alone], validate_only=True)
        if plan.name in refused:
            bad[name] = refused[plan.name].message
    differences = [
        TopicDifference(DifferenceReason.REFUSED, name, plan.final[name], "", why) for name, why in bad.items()
    ]
    return msgspec.structs.replace(
        plan,
        final={k: v for k, v in plan.final.items() if k not in bad},
        while_restoring={k: v for k, v in plan.while_restoring.items() if bad.get(k) is None or plan.final[k] != v},
        differences=(*plan.differences, *differences),
    )
