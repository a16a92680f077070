"""Plans a salvage: reads the disks and decides everything before the first byte is copied.

metadata log → inventory of directories → offsets of groups → survey of all copies → decisions → plan.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from logkeep.kafka.backup.continuity.log_continuity import ArchivedRows
from logkeep.kafka.backup.continuity.past_check import PastVerdict
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.findings import gone_topics
from logkeep.kafka.backup.plan import Plan, UsedNumbers, next_history, plan_backup
from logkeep.kafka.backup.transaction_activity import POSITIONS_TOPIC
from logkeep.kafka.backup.units import DEFAULT_SEGMENT_BYTES
from logkeep.kafka.client.topology import Topic, TopicPartition
from logkeep.kafka.disks.directories import LogDirectories
from logkeep.kafka.disks.metadata_image import ClusterImage, newest_image
from logkeep.kafka.record.contents import METADATA_MISSING
from logkeep.kafka.record.documents import ArchivedReach, ClusterRecord, reached_in
from logkeep.kafka.record.history_names import topic_id_of
from logkeep.kafka.salvage.decide import FoundLog, LogDecision, decide
from logkeep.kafka.salvage.facts import CarriedOver, carried_over, carried_topics, facts_of, merge_topics
from logkeep.kafka.salvage.findings import INCOMPLETE, copy_findings, group_findings, history_findings, tier_findings
from logkeep.kafka.salvage.groups_task import FoundGroup, PositionsUnit, SalvagedGroups, read_positions
from logkeep.kafka.salvage.inventory import Inventory, missing_partitions, take_inventory
from logkeep.kafka.salvage.past_on_disk import last_archived, past_of
from logkeep.kafka.salvage.survey_task import SalvageSurvey, SalvageSurveyUnit, survey
from logkeep.kafka.salvage.units import PlannedSalvageUnit, plan_units, sources_of
from logkeep.kafka.topic_selection import choose_topics
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.model.ranges import Range
from logkeep.model.work import Engine


@dataclass(frozen=True)
class SalvageOptions:
    """What the user asked for."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    internal: bool = False
    wanted_id: BackupId | None = None
    tags: tuple[str, ...] = ()
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    lease_ttl: timedelta = timedelta(minutes=5)


@dataclass(frozen=True)
class SalvagePlan:
    """Everything that is decided before the first byte is copied."""

    facts: Facts
    copy_plan: Plan
    units: tuple[PlannedSalvageUnit, ...]
    decided: tuple[LogDecision, ...]
    carried: CarriedOver
    image: ClusterImage | None
    last: ClusterRecord | None
    findings: tuple[Finding, ...]

    @property
    def size_bytes(self) -> int:
        return sum(r.wanted.size_bytes for u in self.units for r in u.ranges)


def plan_salvage(
    disks: LogDirectories,
    options: SalvageOptions,
    engine: Engine,
    last: ClusterRecord | None,
    archived: ArchivedRows,
    used: UsedNumbers,
) -> SalvagePlan:
    """Read the disks and decide. Reads everything that is not archived yet, and writes nothing.

    No new history has a number of `used`.
    """
    image, problems = newest_image(disks.metadata_logs)
    inventory = take_inventory(disks.copies, image)
    groups, about_groups = _read_groups(inventory, image, engine)
    carried = carried_over(
        last, inventory.topics, image, groups_known=not any(f.code == INCOMPLETE for f in about_groups)
    )
    everything = merge_topics(inventory.topics, carried_topics(carried))
    chosen = choose_topics(everything, options.include, options.exclude, internal=options.internal)
    names = {t.name for t in chosen}
    here = [t for t in inventory.topics if t.name in names]
    carried = replace(carried, logs=tuple(r for r in carried.logs if r.topic in names))
    decided, surveys = _decide(here, inventory, image, last, archived, engine)
    facts = facts_of(disks.cluster_id, chosen, decided, groups, image, last, carried)
    facts = replace(facts, chosen=bool(options.include or options.exclude))
    plan = _plan(here, facts, decided, last, used)
    before = [TopicPartition(r.topic, r.partition) for r in last.logs] if last is not None else []
    findings = [
        *disks.findings,
        *gone_topics(before, replace(facts, metadata=replace(facts.metadata, topics=tuple(everything)))),
        *_metadata_findings(disks, problems, image),
        *inventory.findings,
        *missing_partitions(here, image, (TopicPartition(r.topic, r.partition) for r in carried.logs)),
        *copy_findings(surveys, image),
        *tier_findings(surveys, image),
        *(f for d in decided for f in d.findings),
        *history_findings(decided),
        *about_groups,
    ]
    units = tuple(plan_units(plan, decided))
    return SalvagePlan(facts, plan, units, tuple(decided), carried, image, last, tuple(findings))


def _read_groups(
    inventory: Inventory, image: ClusterImage | None, engine: Engine
) -> tuple[list[FoundGroup], list[Finding]]:
    topic = [t for t in inventory.topics if t.name == POSITIONS_TOPIC]
    found = [_found_log(s, inventory, image) for s in _survey(topic, inventory, image, {}, engine)]
    units = [PositionsUnit(f.log.partition, tuple(sources_of(f, Range(0, max(f.taken.end, 1))))) for f in found]
    read = engine.map(read_positions, units, SalvagedGroups, label="groups", weight=lambda u: u.size_bytes)
    groups = [group for one in read for group in one.groups]
    topic_id = image.topics.get(POSITIONS_TOPIC) if image is not None else None
    known = image.replicas.get(topic_id, {}) if image is not None and topic_id is not None else {}
    expected = max([len(known), *(f.log.partition + 1 for f in found)])
    share = [g.name for g in groups if g.kind == "share"]
    return sorted(groups, key=lambda g: g.name), group_findings(read, expected, share)


def _survey(
    topics: Iterable[Topic],
    inventory: Inventory,
    image: ClusterImage | None,
    from_offsets: dict[TopicPartition, int],
    engine: Engine,
    compare_at: Mapping[TopicPartition, int] | None = None,
) -> list[SalvageSurvey]:
    units = [
        SalvageSurveyUnit(
            log,
            tuple(c.copy for c in inventory.copies[log]),
            from_offsets.get(log, 0),
            compacted=image is None or image.compacted(log.topic),
            compare_at=(compare_at or {}).get(log, -1),
        )
        for t in topics
        for p in t.partitions
        if (log := TopicPartition(t.name, p.index)) in inventory.copies
    ]
    return engine.map(survey, units, SalvageSurvey, label="survey", weight=lambda u: u.size_bytes)


def _decide(
    topics: Sequence[Topic],
    inventory: Inventory,
    image: ClusterImage | None,
    last: ClusterRecord | None,
    archived: ArchivedRows,
    engine: Engine,
) -> tuple[list[LogDecision], list[SalvageSurvey]]:
    """Survey each log from its last archived batch on; a log with a new history, from its start."""
    known = {TopicPartition(r.topic, r.partition): r for r in (last.logs if last else ())}
    ids = {t.name: t.id.hex for t in topics}
    same = {log: r for log, r in known.items() if topic_id_of(r.history) == ids.get(log.topic)}
    at = {log: b.last_offset for log, r in same.items() if (b := last_archived(r, archived)) is not None}
    read_from = {log: min(r.end, r.last_stable, at.get(log, r.end) + 1) for log, r in same.items()}
    surveys = _survey(topics, inventory, image, read_from, engine, at)
    found = [_found_log(s, inventory, image) for s in surveys]
    pasts = {f.log: past_of(f, same[f.log], archived) for f in found if f.log in same}
    decisions = [decide(f, known.get(f.log), pasts.get(f.log, PastVerdict.SAME)) for f in found]
    broken = {d.found.log for d in decisions if d.cause.new_history}
    if not broken:
        return decisions, surveys
    restarted = [replace(t, partitions=tuple(p for p in t.partitions if (t.name, p.index) in broken)) for t in topics]
    again = {(s.topic, s.partition): s for s in _survey(restarted, inventory, image, {}, engine)}
    surveys = [again.get((s.topic, s.partition), s) for s in surveys]
    found = [_found_log(s, inventory, image) for s in surveys]
    return [decide(f, known.get(f.log), pasts.get(f.log, PastVerdict.SAME)) for f in found], surveys


def _found_log(surveyed: SalvageSurvey, inventory: Inventory, image: ClusterImage | None) -> FoundLog:
    log = TopicPartition(surveyed.topic, surveyed.partition)
    watermark = max(c.high_watermark for c in inventory.copies[log])
    replicas = len(image.replicas_of(*log)) if image is not None else 0
    compacted = image is None or log.topic not in image.topics or image.compacted(log.topic)
    return FoundLog(log, inventory.ids[log.topic], surveyed.scans, watermark, replicas, compacted)


def _plan(
    topics: Sequence[Topic],
    facts: Facts,
    decided: Iterable[LogDecision],
    last: ClusterRecord | None,
    used: UsedNumbers,
) -> Plan:
    reached = reached_in(last) if last is not None else {}
    restarted = {
        log: ArchivedReach(next_history(log.topic, reached[log].history, used), d.bounds.start, -1)
        for d in decided
        if d.cause.new_history and (log := d.found.log)
    }
    return plan_backup(topics, facts.bounds, facts.sizes, {**reached, **restarted}, used=used)


def _metadata_findings(disks: LogDirectories, problems: Iterable[str], image: ClusterImage | None) -> list[Finding]:
    found = [
        Finding(code="metadata-unreadable", severity=Severity.WARNING, where=disks.cluster_id, what=problem)
        for problem in problems
    ]
    if image is None:
        what = "no metadata log is readable: partition counts are as found, and configs, ACLs and quotas are unknown"
        found.append(Finding(code=METADATA_MISSING, severity=Severity.WARNING, where=disks.cluster_id, what=what))
    return found
