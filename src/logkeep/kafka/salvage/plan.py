"""What a salvage would do, found out by reading the disks and decided before the first byte is copied.

metadata log → which directories are copies of what → positions of groups → survey of all copies → decisions → plan.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.findings import gone_topics
from logkeep.kafka.backup.plan import Plan, next_history, plan_backup
from logkeep.kafka.backup.transaction_activity import POSITIONS_TOPIC
from logkeep.kafka.backup.units import DEFAULT_SEGMENT_BYTES
from logkeep.kafka.client.topology import Topic, TopicPartition
from logkeep.kafka.disks.directories import Disks
from logkeep.kafka.disks.metadata_image import ClusterImage, newest_image
from logkeep.kafka.record.documents import ArchivedReach, ClusterRecord, reached_in
from logkeep.kafka.salvage.decide import Decided, FoundLog, decide
from logkeep.kafka.salvage.facts import Stays, facts_of, merged, staying_topics, what_stays
from logkeep.kafka.salvage.findings import INCOMPLETE, about_copies, about_histories, about_positions, about_tiers
from logkeep.kafka.salvage.groups_task import FoundGroup, PositionsUnit, SalvagedGroups, read_positions
from logkeep.kafka.salvage.inventory import Inventory, missing_partitions, take_stock
from logkeep.kafka.salvage.survey_task import SalvageSurveyUnit, Survey, survey
from logkeep.kafka.salvage.units import PlannedSalvage, plan_units, sources_of
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
    """Everything that is known before the first byte is copied."""

    facts: Facts
    plan: Plan
    units: tuple[PlannedSalvage, ...]
    decided: tuple[Decided, ...]
    stays: Stays
    image: ClusterImage | None
    last: ClusterRecord | None
    findings: tuple[Finding, ...]

    @property
    def size_bytes(self) -> int:
        return sum(r.wanted.size_bytes for u in self.units for r in u.ranges)


def foresee(disks: Disks, wish: SalvageOptions, engine: Engine, last: ClusterRecord | None) -> SalvagePlan:
    """Look at everything, and decide. Reads all that is not archived yet, and writes nothing."""
    image, problems = newest_image(disks.metadata_logs)
    stock = take_stock(disks.copies, image)
    groups, told = _groups(stock, image, engine)
    stays = what_stays(last, stock.topics, image, groups_known=not any(f.code == INCOMPLETE for f in told))
    everything = merged(stock.topics, staying_topics(stays))
    chosen = choose_topics(everything, wish.include, wish.exclude, internal=wish.internal)
    names = {t.name for t in chosen}
    here = [t for t in stock.topics if t.name in names]
    stays = replace(stays, logs=tuple(r for r in stays.logs if r.topic in names))
    decided, surveys = _decide(here, stock, image, last, engine)
    facts = facts_of(disks.cluster_id, chosen, decided, groups, image, last, stays)
    plan = _plan(here, facts, decided, last)
    before = [TopicPartition(r.topic, r.partition) for r in last.logs] if last is not None else []
    findings = [
        *disks.findings,
        *gone_topics(before, replace(facts, metadata=replace(facts.metadata, topics=tuple(everything)))),
        *_about_metadata(disks, problems, image),
        *stock.findings,
        *missing_partitions(here, image, (TopicPartition(r.topic, r.partition) for r in stays.logs)),
        *about_copies(surveys, image),
        *about_tiers(surveys, image),
        *(f for d in decided for f in d.findings),
        *about_histories(decided),
        *told,
    ]
    units = tuple(plan_units(plan, decided))
    return SalvagePlan(facts, plan, units, tuple(decided), stays, image, last, tuple(findings))


def _groups(stock: Inventory, image: ClusterImage | None, engine: Engine) -> tuple[list[FoundGroup], list[Finding]]:
    topic = [t for t in stock.topics if t.name == POSITIONS_TOPIC]
    found = [_found(s, stock, image) for s in _survey(topic, stock, image, {}, engine)]
    units = [PositionsUnit(f.log.partition, tuple(sources_of(f, Range(0, max(f.taken.end, 1))))) for f in found]
    read = engine.map(read_positions, units, SalvagedGroups, label="groups", weight=lambda u: u.size_bytes)
    groups = [group for one in read for group in one.groups]
    topic_id = image.topics.get(POSITIONS_TOPIC) if image is not None else None
    known = image.replicas.get(topic_id, {}) if image is not None and topic_id is not None else {}
    expected = max([len(known), *(f.log.partition + 1 for f in found)])
    share = [g.name for g in groups if g.kind == "share"]
    return sorted(groups, key=lambda g: g.name), about_positions(read, expected, share)


def _survey(
    topics: Iterable[Topic],
    stock: Inventory,
    image: ClusterImage | None,
    from_offsets: dict[TopicPartition, int],
    engine: Engine,
) -> list[Survey]:
    units = [
        SalvageSurveyUnit(
            log,
            tuple(c.copy for c in stock.copies[log]),
            from_offsets.get(log, 0),
            compacted=image is None or image.compacted(log.topic),
        )
        for t in topics
        for p in t.partitions
        if (log := TopicPartition(t.name, p.index)) in stock.copies
    ]
    return engine.map(survey, units, Survey, label="survey", weight=lambda u: u.size_bytes)


def _decide(
    topics: Sequence[Topic],
    stock: Inventory,
    image: ClusterImage | None,
    last: ClusterRecord | None,
    engine: Engine,
) -> tuple[list[Decided], list[Survey]]:
    """Look at each log from where the archive ends; at one with another past, from its beginning."""
    known = {TopicPartition(r.topic, r.partition): r for r in (last.logs if last else ())}
    ids = {t.name: t.id.hex for t in topics}
    read_from = {
        log: min(r.end, r.last_stable) for log, r in known.items() if r.history.partition("-")[0] == ids.get(log.topic)
    }
    surveys = _survey(topics, stock, image, read_from, engine)
    judged = [decide(_found(s, stock, image), known.get(TopicPartition(s.topic, s.partition))) for s in surveys]
    broken = {d.found.log for d in judged if d.cause.new_history}
    if not broken:
        return judged, surveys
    anew = [replace(t, partitions=tuple(p for p in t.partitions if (t.name, p.index) in broken)) for t in topics]
    again = {(s.topic, s.partition): s for s in _survey(anew, stock, image, {}, engine)}
    surveys = [again.get((s.topic, s.partition), s) for s in surveys]
    found = [_found(s, stock, image) for s in surveys]
    return [decide(f, known.get(f.log)) for f in found], surveys


def _found(surveyed: Survey, stock: Inventory, image: ClusterImage | None) -> FoundLog:
    log = TopicPartition(surveyed.topic, surveyed.partition)
    watermark = max(c.high_watermark for c in stock.copies[log])
    replicas = len(image.replicas_of(*log)) if image is not None else 0
    compacted = image is None or log.topic not in image.topics or image.compacted(log.topic)
    return FoundLog(log, stock.ids[log.topic], surveyed.scans, watermark, replicas, compacted)


def _plan(topics: Sequence[Topic], facts: Facts, decided: Iterable[Decided], last: ClusterRecord | None) -> Plan:
    reached = reached_in(last) if last is not None else {}
    anew = {
        d.found.log: ArchivedReach(next_history(reached[d.found.log].history), d.bounds.start, -1)
        for d in decided
        if d.cause.new_history
    }
    return plan_backup(topics, facts.bounds, facts.sizes, {**reached, **anew})


def _about_metadata(disks: Disks, problems: Iterable[str], image: ClusterImage | None) -> list[Finding]:
    found = [
        Finding(code="metadata-unreadable", severity=Severity.WARNING, where=disks.cluster_id, what=problem)
        for problem in problems
    ]
    if image is None:
        what = "no metadata log could be read: partition counts are as seen, and configs, ACLs and quotas unknown"
        found.append(Finding(code="metadata-missing", severity=Severity.WARNING, where=disks.cluster_id, what=what))
    return found
