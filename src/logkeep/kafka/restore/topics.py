"""Topics of a restore: checked, made, told their final configs, or taken away again.

A topic is known by its id. One that this restore made and whose id was never written down (it was killed in between,
or a reply was lost) is recognised: it has exactly the configs that only a restore sets, and nothing was ever in it.

Asking the target whether it would take the planned topics, without making any of them.

A config that it refuses by its value is found by asking for each alone, and becomes a difference of the plan.
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
from logkeep.kafka.restore.plan.refusals import named
from logkeep.kafka.restore.plan.topics import DifferenceReason, TopicDifference, TopicPlan
from logkeep.model.findings import Finding, Severity

_LIMIT = "max.message.bytes"
Ids = Mapping[str, str]
"""Target topic to its id in hex: what was stored when it was made."""


def make_topics(cluster: Cluster, plans: Sequence[TopicPlan], stored: Ids) -> dict[str, str]:
    """All topics with their temporary configs and leaders; their ids, which must be stored. May be repeated.

    Raises `TargetUnsafe` for topics that are there and not ours, `RestoreFailed` for ours that are gone, and what the
    cluster refuses; topics that this very call made are deleted again then.
    """
    present = {t.name: t for t in cluster.metadata().topics}
    ids = recognised(cluster, plans, stored, present)
    missing = [p for p in plans if p.name not in present]
    gone = [p.name for p in missing if p.name in stored or p.existing]
    if gone:
        raise RestoreFailed(
            "topics of this restore are gone", subject=named(gone), remedy="begin a new restore: nothing can go on here"
        )
    strangers = [p.name for p in plans if p.name in present and p.name not in ids]
    if strangers:
        raise TargetUnsafe(
            "topics are there that this restore did not make",
            subject=named(strangers),
            remedy="somebody made them meanwhile; delete them, or restore under other names with --rename",
        )
    ids |= _made(cluster, missing)
    wait_for_leaders(cluster, {p.name: p.partitions for p in plans})
    _quiet(cluster, [p for p in plans if p.name in present])
    return ids


def recognised(
    cluster: Cluster, plans: Sequence[TopicPlan], stored: Ids, present: Mapping[str, Topic]
) -> dict[str, str]:
    """Ids of the topics that are there and belong to this restore."""
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


def _made(cluster: Cluster, plans: Sequence[TopicPlan]) -> dict[str, str]:
    wanted = [NewTopic(p.name, p.partitions, p.replication_factor, p.while_restoring) for p in plans]
    made, refused = create_topics(cluster, wanted)
    ids = {name: each.id for name, each in made.items()}
    doubted = [p for p in plans if p.name in refused and refused[p.name].code == TOPIC_EXISTS]
    if doubted:
        # The reply to the first request may have been lost: then they are ours.
        present = wait_for_leaders(cluster, {p.name: p.partitions for p in doubted})
        ours = recognised(cluster, doubted, {}, present)
        ids |= {name: UUID(hex=each) for name, each in ours.items()}
        refused = {name: each for name, each in refused.items() if name not in ours}
    if refused:
        delete_topics(cluster, {name: each.id for name, each in made.items()})
        raise_first(refused.values())
    return {name: each.hex for name, each in ids.items()}


def _quiet(cluster: Cluster, plans: Sequence[TopicPlan]) -> None:
    """Temporary configs for topics that are there. A limit that somebody has raised since is left raised."""
    if plans:
        configs = topic_configs(cluster, [p.name for p in plans])
        wanted = {p.name: towards(p, configs[p.name].own, _raised(p, configs[p.name].own)) for p in plans}
        changes = {p.name: change_between(configs[p.name].own, wanted[p.name]) for p in plans}
        raise_first(alter_topic_configs(cluster, changes).values())
        settled(cluster, wanted)


def _raised(plan: TopicPlan, own: Mapping[str, str]) -> dict[str, str]:
    limit, found = plan.while_restoring.get(_LIMIT, "0"), own.get(_LIMIT, "0")
    return {**plan.while_restoring, **({_LIMIT: found} if int(found) > int(limit) else {})}


def towards(plan: TopicPlan, own: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """What a topic's own configs shall be: of those that a restore changes as wanted, all others as they are. Pure."""
    ours = {k for k in {*plan.while_restoring, *plan.final} if plan.while_restoring.get(k) != plan.final.get(k)}
    others = {k: v for k, v in own.items() if k not in ours}
    return {**others, **{k: v for k, v in wanted.items() if k in ours}}


def settled(cluster: Cluster, wanted: Mapping[str, Mapping[str, str]]) -> dict[str, Mapping[str, str]]:
    """The configs of the topics' own, as soon as all brokers' talk is of the wanted ones, or patience ends."""
    own: dict[str, Mapping[str, str]] = {}
    for _ in cluster.patience.tries() if wanted else ():
        own = {name: each.own for name, each in topic_configs(cluster, list(wanted)).items()}
        if own == wanted:
            break
    return own


def finish_topics(cluster: Cluster, plans: Sequence[TopicPlan], ids: Ids) -> list[Finding]:
    """Final configs, exactly: what was temporary is unset. Read again; every difference is a finding."""
    present = {t.name: t.id.hex for t in cluster.metadata().topics}
    ours = [p for p in plans if present.get(p.name) == ids.get(p.name, "")]
    configs = topic_configs(cluster, [p.name for p in ours]) if ours else {}
    wanted = {p.name: towards(p, configs[p.name].own, p.final) for p in ours}
    changes = {p.name: change_between(configs[p.name].own, wanted[p.name]) for p in ours}
    reasons = {name: _piecemeal(cluster, name, changes[name]) for name in alter_topic_configs(cluster, changes)}
    found = settled(cluster, {name: each for name, each in wanted.items() if name not in reasons})
    found |= settled(cluster, {name: _but(wanted[name], configs[name].own, reasons[name]) for name in reasons})
    differing = [_differing(p, found[p.name], reasons.get(p.name, {})) for p in ours]
    return [*(_gone(p.name) for p in plans if p not in ours), *(f for some in differing for f in some)]


def _but(wanted: Mapping[str, str], own: Mapping[str, str], refused: Iterable[str]) -> dict[str, str]:
    """What a topic will have when these configs stay as they are."""
    stays = {name: own[name] for name in refused if name in own}
    return {**{name: value for name, value in wanted.items() if name not in set(refused)}, **stays}


def _piecemeal(cluster: Cluster, topic: str, change: ConfigChange) -> dict[str, str]:
    """A change that was refused as a whole, one config after the other; those that stay refused, with the reason."""
    each_alone = {name: ConfigChange({name: value}) for name, value in change.set.items()}
    each_alone |= {name: ConfigChange(unset=(name,)) for name in change.unset}
    refused = {name: alter_topic_configs(cluster, {topic: one}) for name, one in each_alone.items()}
    return {name: str(found[topic].error()) for name, found in refused.items() if found}


def _differing(plan: TopicPlan, own: Mapping[str, str], reasons: Mapping[str, str]) -> list[Finding]:
    left = change_between(own, plan.final)
    told = {k: f"{k} should be {v} and is {own.get(k, 'not set')}" for k, v in left.set.items()}
    told |= {k: f"{k} should not be set and is {own[k]}" for k in left.unset}
    return [
        Finding(
            code="config-differs",
            severity=Severity.WARNING,
            where=plan.name,
            what=what + (f": {reasons[name]}" if name in reasons else ""),
            remedy="set it with kafka-configs --alter; until then the topic goes on with what it has",
        )
        for name, what in told.items()
    ]


def _gone(name: str) -> Finding:
    return Finding(
        code="topic-gone",
        severity=Severity.DAMAGE,
        where=name,
        what="the topic that was restored to is gone, or was made again under its name; its configs were not touched",
        remedy="find out who deleted it, then restore it again",
    )


def abort_topics(cluster: Cluster, plans: Sequence[TopicPlan], stored: Ids) -> tuple[list[str], list[Finding]]:
    """Delete by id what this restore made; give topics that were there before their configs back. What is gone."""
    present = {t.name: t for t in cluster.metadata().topics}
    ids = recognised(cluster, plans, stored, present)
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
    told = finish_topics(cluster, existing, {p.name: p.existing_id for p in existing})
    return sorted(made.keys() - refused.keys()), [*kept, *told]


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
