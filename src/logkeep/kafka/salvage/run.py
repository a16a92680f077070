"""The steps of `kafka salvage`, a backup from the disks of dead brokers.

lock and list the directories → metadata log → offsets of groups in tasks → survey of all copies in tasks → decide
(pure; `--dry-run` ends here) → copy in tasks → parts, record, manifest → commit. The result is a backup of the same
source as the online backups, and continues them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from logkeep.kafka.backup.assemble import Assembled, assemble
from logkeep.kafka.backup.continuity.log_continuity import ArchivedRows
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.findings import damage_findings
from logkeep.kafka.backup.plan import used_numbers
from logkeep.kafka.backup.record_builder import acls_of, groups_of, quotas_of
from logkeep.kafka.backup.units import CopyResult
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.disks.directories import LogDirectories
from logkeep.kafka.logs.leader_epochs import EpochRun
from logkeep.kafka.logs.log_traits import LogTraits, all_joined
from logkeep.kafka.record.documents import KIND, ClusterRecord, GroupRecord, PartitionRecord, check_consistent
from logkeep.kafka.record.stored_record import last_record, put_record
from logkeep.kafka.salvage.copy_task import SalvageUnit, salvage_ranges
from logkeep.kafka.salvage.facts import topic_records
from logkeep.kafka.salvage.findings import with_reasons
from logkeep.kafka.salvage.plan import SalvageOptions, SalvagePlan, plan_salvage
from logkeep.model.findings import Finding
from logkeep.model.ranges import Range
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import Engine
from logkeep.repository.backups.backup import FinishedRun, OngoingBackup, begin, check_wanted
from logkeep.repository.backups.manifest import KnownGap, LogCut
from logkeep.repository.backups.source import check_source, ensure_source
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.write_session import Writing, writing

_NO_TIP = EpochRun(-1, -1, -1)


@dataclass(frozen=True)
class SalvageDone:
    """The result of a salvage. `entry` is None for a dry run."""

    entry: BackupEntry | None
    plan: SalvagePlan
    gaps: tuple[KnownGap, ...]
    findings: tuple[Finding, ...]
    offsets: int
    """The number of new offsets."""


@dataclass(frozen=True)
class KafkaSalvage:
    """Runs a salvage. The caller holds the locks of the directories (`held`)."""

    place: SourceRef
    disks: LogDirectories
    clock: Clock
    tokens: TokenSource

    @property
    def size_bytes(self) -> int:
        """The size of all copies."""
        return sum(c.copy.size_bytes for c in self.disks.copies)

    def preview(self, options: SalvageOptions, engine: Engine) -> SalvageDone:
        """What a run would copy. Reads all of it, writes nothing, and raises the same errors as a run."""
        folded = read_chain(self.place)
        check_wanted(options.wanted_id, folded.last_id)
        check_source(self.place, KIND, self._identity)
        plan = self._plan(options, engine, folded)
        lost = _damage_gaps(plan)
        offsets = plan.copy_plan.records - sum(gap.end - gap.start for gap in lost)
        findings = (*plan.findings, *groups_of(plan.facts)[1])
        return SalvageDone(None, plan, (*plan.copy_plan.gaps, *lost), findings, offsets)

    def run(self, options: SalvageOptions, engine: Engine) -> SalvageDone:
        """Take the backup. Earlier backups are never changed."""
        with writing(self.place, "salvage", self.clock, self.tokens, options.lease_ttl) as session:
            check_wanted(options.wanted_id, session.folded.last_id)
            check_source(self.place, KIND, self._identity)
            plan = self._plan(options, engine, session.folded)
            source = ensure_source(self.place, KIND, self._identity, self.clock())
            ongoing = begin(session, source, wanted=options.wanted_id, tags=options.tags)
            assembled = assemble(plan.copy_plan, self._copy(ongoing, plan, options, engine))
            return self._complete(session, ongoing, plan, assembled)

    @property
    def _identity(self) -> dict[str, str]:
        return {"cluster_id": self.disks.cluster_id}

    def _plan(self, options: SalvageOptions, engine: Engine, folded: Folded) -> SalvagePlan:
        used = used_numbers(folded)
        return plan_salvage(self.disks, options, engine, last_record(self.place, folded), self._archived(folded), used)

    def _archived(self, folded: Folded) -> ArchivedRows:
        return ArchivedRows(self.place, folded.completed[-1] if folded.completed else None)

    def _copy(
        self, ongoing: OngoingBackup, plan: SalvagePlan, options: SalvageOptions, engine: Engine
    ) -> list[CopyResult]:
        units = [
            SalvageUnit(u.name, self.place, ongoing.id, ongoing.run, u.ranges, options.segment_bytes)
            for u in plan.units
        ]
        return engine.map(salvage_ranges, units, CopyResult, label="copy", weight=lambda u: u.size_bytes)

    def _complete(
        self, session: Writing, ongoing: OngoingBackup, plan: SalvagePlan, assembled: Assembled
    ) -> SalvageDone:
        facts, carried = plan.facts, plan.carried
        groups, clamped = groups_of(facts)
        seen = {g.name for g in groups}
        record = ClusterRecord(
            repository=self.place.repository,
            source=self.place.source,
            id=ongoing.id,
            cluster_id=self.disks.cluster_id,
            topics=topic_records(facts, plan.image, carried),
            logs=(*_logs(plan, assembled), *carried.logs),
            open_transactions=facts.open_transactions,
            groups=(*groups, *(g for g in _in_topics(carried.groups, facts) if g.name not in seen)),
            acls=acls_of(facts),
            quotas=quotas_of(facts),
            chosen=facts.chosen or msgspec.UNSET,
        )
        gaps = tuple(with_reasons(assembled.gaps, plan.decided, plan.copy_plan.gaps))
        findings = (*plan.findings, *clamped)
        cut = (*assembled.cut, *(LogCut(r.log, r.start, r.end) for r in carried.logs))
        check_consistent(record, cut)
        ref = put_record(self.place, ongoing.id, record, session.tokens())
        outcome = FinishedRun(cut=cut, new=assembled.segments, gaps=gaps, attachments=(ref,), findings=findings)
        entry = ongoing.complete(outcome)
        return SalvageDone(entry, plan, gaps, (*findings, *damage_findings(ongoing.rests_on)), assembled.offsets)


def _in_topics(groups: Iterable[GroupRecord], facts: Facts) -> list[GroupRecord]:
    """Groups of the last backup with their offsets in the topics of this one."""
    topics = {t.name for t in facts.topics}
    kept = [msgspec.structs.replace(g, commits=tuple(c for c in g.commits if c.topic in topics)) for g in groups]
    return [g for g in kept if g.commits or not facts.chosen]


def _logs(plan: SalvagePlan, assembled: Assembled) -> list[PartitionRecord]:
    before = {(r.topic, r.partition): r for r in (plan.last.logs if plan.last else ())}
    proven = {d.found.log: d.proven_end for d in plan.decided}
    records = []
    for cut in assembled.cut:
        log = TopicPartition(cut.log.name, cut.log.partition)
        known = before.get(log)
        old = known if known is not None and known.history == cut.log.history else None
        stable = min(plan.facts.bounds[log].last_stable, cut.end)
        tip = assembled.tips.get(cut.log, EpochRun(old.last_epoch, -1, old.last_end) if old else _NO_TIP)
        traits = all_joined((old.traits if old else LogTraits(), assembled.traits.get(cut.log, LogTraits())))
        records.append(
            PartitionRecord(
                *log,
                history=cut.log.history,
                start=cut.start,
                end=cut.end,
                last_stable=stable,
                last_epoch=tip.epoch,
                last_end=tip.end,
                unproven_from=proven[log] if proven[log] < cut.end else -1,
                traits=traits,
                last_batch=assembled.last_batches.get(cut.log, old.last_batch if old else None),
            )
        )
    return records


def _damage_gaps(plan: SalvagePlan) -> list[KnownGap]:
    """The gaps that the copy will have."""
    cuts = {TopicPartition(c.log.name, c.log.partition): c.log for c in plan.copy_plan.cut}
    wanted = [(r.wanted.log, Range(r.wanted.lo, r.wanted.hi)) for u in plan.units for r in u.ranges]
    found = [
        KnownGap(cuts[d.found.log], max(g.start, span.start), min(g.end, span.end), "")
        for d in plan.decided
        for g in d.found.choice.gaps
        for log, span in wanted
        if log == cuts[d.found.log] and g.start < span.end and span.start < g.end
    ]
    return with_reasons(found, plan.decided, ())
