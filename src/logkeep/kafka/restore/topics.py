"""Topics of a restore: validated, created, given their final configs, or deleted by an abort.

A topic is identified by its id. A topic that this restore created and whose id was not stored (after a kill or a lost
reply) is recognised by its configs, which only this restore sets, and by its log, which is empty.

Validation asks the target without creating anything. If it refuses the configs, each config is validated separately,
and a refused one becomes a difference of the plan.
"""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

import msgspec

from logkeep.errors import ClusterError, RestoreFailed, TargetUnsafe
from logkeep.kafka.admin.offsets import At, list_offsets
from logkeep.kafka.admin.topic_changes import (
    ConfigChange,
    NewTopic,
    alter_topic_configs,
    change_between,
    create_topics,
    delete_topics,
    wait_for_leaders,
)
from logkeep.kafka.admin.topics import topic_configs
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import TOPIC_EXISTS, Refusal, raise_first
from logkeep.kafka.client.topology import Topic, TopicPartition
from logkeep.kafka.restore.plan.refusals import join_names
from logkeep.kafka.restore.plan.topics import DifferenceReason, TopicDifference, TopicPlan
from logkeep.model.findings import Finding, Severity

_LIMIT = "max.message.bytes"
Ids = Mapping[str, str]
"""Target topic to its id in hex, as stored after it was created."""


def make_topics(cluster: Cluster, plans: Sequence[TopicPlan], stored: Ids) -> dict[str, str]:
    """Create all topics with their temporary configs, and wait for leaders; returns their ids. May be repeated.

    Raises `TargetUnsafe` for existing topics that are not ours, `RestoreFailed` for ours that are gone, and errors of
    the cluster; then topics that this call created are deleted again.
    """
    present = {t.name: t for t in cluster.metadata().topics}
    ids = find_own_topics(cluster, plans, stored, present)
    missing = [p for p in plans if p.name not in present]
    gone = [p.name for p in missing if p.name in stored or p.existing]
    if gone:
        raise RestoreFailed(
            "topics of this restore are gone",
            subject=join_names(gone),
            remedy="start a new restore: this one cannot be resumed",
        )
    foreign = [p.name for p in plans if p.name in present and p.name not in ids]
    if foreign:
        raise TargetUnsafe(
            "topics exist that this restore did not create",
            subject=join_names(foreign),
            remedy="another client created them; delete them, or restore under other names with --rename",
        )
    ids |= _create(cluster, missing)
    wait_for_leaders(cluster, {p.name: p.partitions for p in plans})
    _set_temporary_configs(cluster, [p for p in plans if p.name in present])
    return ids


def find_own_topics(
    cluster: Cluster, plans: Sequence[TopicPlan], stored: Ids, present: Mapping[str, Topic]
) -> dict[str, str]:
    """Ids of the existing topics that belong to this restore."""
    there = [(p, present[p.name]) for p in plans if p.name in present]
    known = {p.name: t.id.hex for p, t in there if t.id.hex == (p.existing_id or stored.get(p.name))}
    unsure = [(p, t) for p, t in there if not p.existing and p.name not in stored and len(t.partitions) == p.partitions]
    if not unsure:
        return known
    configs = topic_configs(cluster, [p.name for p, _ in unsure])
    alike = [(p, t) for p, t in unsure if configs[p.name].own == p.while_restoring]
    logs = [TopicPartition(t.name, part.index) for _, t in alike for part in t.partitions]
    ends = list_offsets(cluster, logs, At.LATEST) if logs else {}
    filled = {log.topic for log, end in ends.items() if end.offset > 0}
    return known | {p.name: t.id.hex for p, t in alike if p.name not in filled}


def _create(cluster: Cluster, plans: Sequence[TopicPlan]) -> dict[str, str]:
    wanted = [NewTopic(p.name, p.partitions, p.replication_factor, p.while_restoring) for p in plans]
    made, refused = create_topics(cluster, wanted)
    ids = {name: each.id for name, each in made.items()}
    doubted = [p for p in plans if p.name in refused and refused[p.name].code == TOPIC_EXISTS]
    if doubted:
        # The reply to the first request may have been lost: then they are ours.
        present = wait_for_leaders(cluster, {p.name: p.partitions for p in doubted})
        ours = find_own_topics(cluster, doubted, {}, present)
        ids |= {name: UUID(hex=each) for name, each in ours.items()}
        refused = {name: each for name, each in refused.items() if name not in ours}
    if refused:
        delete_topics(cluster, {name: each.id for name, each in made.items()})
        raise_first(refused.values())
    return {name: each.hex for name, each in ids.items()}


def _set_temporary_configs(cluster: Cluster, plans: Sequence[TopicPlan]) -> None:
    """Set temporary configs on existing topics. A size limit that was raised in the meantime stays raised."""
    if plans:
        configs = topic_configs(cluster, [p.name for p in plans])
        wanted = {p.name: merge_configs(p, configs[p.name].own, _raised(p, configs[p.name].own)) for p in plans}
        changes = {p.name: change_between(configs[p.name].own, wanted[p.name]) for p in plans}
        raise_first(alter_topic_configs(cluster, changes).values())
        wait_for_configs(cluster, wanted)


def _raised(plan: TopicPlan, own: Mapping[str, str]) -> dict[str, str]:
    limit, found = plan.while_restoring.get(_LIMIT, "0"), own.get(_LIMIT, "0")
    return {**plan.while_restoring, **({_LIMIT: found} if int(found) > int(limit) else {})}


def merge_configs(plan: TopicPlan, own: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """The configs to set on a topic: `wanted` for those that a restore changes, `own` for all others. Pure."""
    ours = {k for k in {*plan.while_restoring, *plan.final} if plan.while_restoring.get(k) != plan.final.get(k)}
    others = {k: v for k, v in own.items() if k not in ours}
    return {**others, **{k: v for k, v in wanted.items() if k in ours}}


def wait_for_configs(cluster: Cluster, wanted: Mapping[str, Mapping[str, str]]) -> dict[str, Mapping[str, str]]:
    """Read the topics' configs until they are the wanted ones, or the retries are used up."""
    own: dict[str, Mapping[str, str]] = {}
    for _ in cluster.backoff.tries() if wanted else ():
        own = {name: each.own for name, each in topic_configs(cluster, list(wanted)).items()}
        if own == wanted:
            break
    return own


def finish_topics(cluster: Cluster, plans: Sequence[TopicPlan], ids: Ids) -> list[Finding]:
    """Set the final configs, unset temporary ones, and read them back; every difference is a finding."""
    present = {t.name: t.id.hex for t in cluster.metadata().topics}
    ours = [p for p in plans if present.get(p.name) == ids.get(p.name, "")]
    configs = topic_configs(cluster, [p.name for p in ours]) if ours else {}
    wanted = {p.name: merge_configs(p, configs[p.name].own, p.final) for p in ours}
    changes = {p.name: change_between(configs[p.name].own, wanted[p.name]) for p in ours}
    reasons = {name: _alter_one_by_one(cluster, name, changes[name]) for name in alter_topic_configs(cluster, changes)}
    found = wait_for_configs(cluster, {name: each for name, each in wanted.items() if name not in reasons})
    found |= wait_for_configs(
        cluster, {name: _without(wanted[name], configs[name].own, reasons[name]) for name in reasons}
    )
    differing = [_differing(p, found[p.name], reasons.get(p.name, {})) for p in ours]
    return [*(_gone(p.name) for p in plans if p not in ours), *(f for some in differing for f in some)]


def _without(wanted: Mapping[str, str], own: Mapping[str, str], refused: Iterable[str]) -> dict[str, str]:
    """The wanted configs, except that the refused ones stay as they are."""
    stays = {name: own[name] for name in refused if name in own}
    return {**{name: value for name, value in wanted.items() if name not in set(refused)}, **stays}


def _alter_one_by_one(cluster: Cluster, topic: str, change: ConfigChange) -> dict[str, str]:
    """Apply a refused change config by config; returns the configs that are still refused, with reasons."""
    each_alone = {name: ConfigChange({name: value}) for name, value in change.set.items()}
    each_alone |= {name: ConfigChange(unset=(name,)) for name in change.unset}
    refused = {name: alter_topic_configs(cluster, {topic: one}) for name, one in each_alone.items()}
    return {name: str(found[topic].error()) for name, found in refused.items() if found}


def _differing(plan: TopicPlan, own: Mapping[str, str], reasons: Mapping[str, str]) -> list[Finding]:
    left = change_between(own, plan.final)
    texts = {k: f"{k} should be {v} and is {own.get(k, 'not set')}" for k, v in left.set.items()}
    texts |= {k: f"{k} should not be set and is {own[k]}" for k in left.unset}
    return [
        Finding(
            code="config-differs",
            severity=Severity.WARNING,
            where=plan.name,
            what=what + (f": {reasons[name]}" if name in reasons else ""),
            remedy="set it with kafka-configs --alter; until then the topic keeps its present value",
        )
        for name, what in texts.items()
    ]


def _gone(name: str) -> Finding:
    return Finding(
        code="topic-gone",
        severity=Severity.DAMAGE,
        where=name,
        what="the topic that was restored to was deleted or recreated; its configs were not changed",
        remedy="restore it again",
    )


def abort_topics(cluster: Cluster, plans: Sequence[TopicPlan], stored: Ids) -> tuple[list[str], list[Finding]]:
    """Delete the topics that this restore created; reset the configs of others. Returns the deleted topics."""
    present = {t.name: t for t in cluster.metadata().topics}
    ids = find_own_topics(cluster, plans, stored, present)
    made = {p.name: UUID(hex=ids[p.name]) for p in plans if not p.existing and p.name in ids}
    refused = delete_topics(cluster, made)
    kept = [
        Finding(
            code="topic-stays",
            severity=Severity.WARNING,
            where=name,
            what=f"it could not be deleted: {each.error()}",
            remedy="delete it with kafka-topics --delete",
        )
        for name, each in refused.items()
    ]
    existing = [p for p in plans if p.existing]
    reset = finish_topics(cluster, existing, {p.name: p.existing_id for p in existing})
    return sorted(made.keys() - refused.keys()), [*kept, *reset]


_INVALID_CONFIG = 40
_POLICY = 44
_ABOUT_CONFIGS = frozenset({_INVALID_CONFIG, _POLICY})


def validate_topics(cluster: Cluster, plans: Sequence[TopicPlan]) -> tuple[list[TopicPlan], list[ClusterError]]:
    """The plans without final configs that the target refuses; and the errors that remain."""
    refused = _refused(cluster, plans, final=True)
    reduced = [_without_refused(cluster, p, refused[p.name]) if p.name in refused else p for p in plans]
    still = _refused(cluster, reduced, final=True) | _refused(cluster, reduced, final=False)
    return reduced, [each.error() for each in still.values()]


def _refused(cluster: Cluster, plans: Sequence[TopicPlan], *, final: bool) -> dict[str, Refusal]:
    """Topics that would be refused with their final or their temporary configs."""
    new = [
        NewTopic(p.name, p.partitions, p.replication_factor, p.final if final else p.while_restoring)
        for p in plans
        if not p.existing
    ]
    _, refused = create_topics(cluster, new, validate_only=True)
    existing = {p.name: change_between(p.final, p.while_restoring) for p in plans if p.existing and not final}
    return refused | alter_topic_configs(cluster, existing, validate_only=True)


def _without_refused(cluster: Cluster, plan: TopicPlan, refusal: Refusal) -> TopicPlan:
    """The plan without configs that are refused on their own."""
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
