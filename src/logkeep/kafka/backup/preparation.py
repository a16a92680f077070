"""What a backup continues, and what it will do: values between the steps of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from logkeep.kafka.backup.assemble import assemble
from logkeep.kafka.backup.continuity.history_check import BrokenLog
from logkeep.kafka.backup.deletion_proof import KnownLogs, expected_doubts, known_logs, with_later_cuts
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.findings import cluster_findings, gone_topics, undecided_past
from logkeep.kafka.backup.plan import Plan, UsedNumbers
from logkeep.kafka.backup.record_builder import groups_of
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import ArchivedReach, ClusterRecord, reached_in
from logkeep.model.findings import Finding, Severity
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName
from logkeep.repository.backups.manifest import KnownGap
from logkeep.repository.chain.fold import BackupEntry


@dataclass(frozen=True)
class PreviousBackup:
    """The backup that a run continues, read once."""

    entry: BackupEntry | None = None
    findings: tuple[Finding, ...] = ()
    record: ClusterRecord | None = None
    gaps: tuple[KnownGap, ...] = ()
    used: UsedNumbers = field(default_factory=dict)
    folded_to: Mapping[LogName, int] = field(default_factory=dict)
    """The offset below which each log was folded."""

    tips: Mapping[TopicPartition, ArchivedReach] = field(default_factory=dict)
    """The logs of `reached` whose last batch is not in the record, with that batch."""

    unproven: Mapping[TopicPartition, Range] = field(default_factory=dict)
    """For logs whose times this backup does not have: offsets whose deletions may be missing."""
    later: Mapping[TopicPartition, ArchivedReach] = field(default_factory=dict)
    """The logs in a later round that found nothing new and stored nothing: their cuts have later times."""

    begun: Mapping[str, str] = field(default_factory=dict)
    """By topic, the history of a new generation that becomes active with this run, in place of the last one."""
    compared_units: frozenset[str] = frozenset()
    """Units of catch-ups: the active logs were compared in every round since they were copied."""

    lost: Mapping[TopicPartition, Range] = field(default_factory=dict)
    """Logs of which the chain lost a burial: all their offsets. Their times prove nothing, until they are compared."""

    @cached_property
    def reached(self) -> dict[TopicPartition, ArchivedReach]:
        stored = {**(reached_in(self.record) if self.record is not None else {}), **self.tips}
        moved = with_later_cuts(stored, self.later)
        return {log: replace(reach, deletions=None) if log in self.lost else reach for log, reach in moved.items()}

    @property
    def known(self) -> KnownLogs:
        return known_logs(self.reached, self.record, {**self.unproven, **self.lost})


@dataclass(frozen=True)
class PreparedBackup:
    """What a run will do."""

    facts: Facts
    base: PreviousBackup
    plan: Plan
    broken: tuple[BrokenLog, ...]
    """Logs that begin a new history."""
    generation: int
    """The generation of the chain that the plan continues."""
    undecided: tuple[LogName, ...] = ()
    """Logs that are continued although it is not known whether they have the same past."""
    recopied: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Logs that are copied again, and why."""
    due: tuple[str, ...] = ()
    """Topics whose new generation the run would begin."""

    def removed_topics(self, now: Facts) -> set[str]:
        """Topics that were deleted since, or created again under the same name: another plan would leave them out."""
        there = {(topic.name, topic.id) for topic in now.topics}
        return {topic.name for topic in self.facts.topics if (topic.name, topic.id) not in there}

    @property
    def comparisons(self) -> list[tuple[LogName, str, int]]:
        """Logs that a run would compare with the live ones, each with the reason and about how many bytes are read."""
        return [
            (
                each.log,
                each.why or "an earlier backup left its deletions unproven",
                self.facts.sizes.get(TopicPartition(each.log.name, each.log.partition), 0),
            )
            for each in expected_doubts(self.base.known, self.facts, self.plan.cut)
        ]

    @property
    def recopy_notes(self) -> list[Finding]:
        return [
            Finding(
                code="new-history",
                severity=Severity.NOTE,
                where=f"{log.topic}/{log.partition}",
                what=f"copied again as a new history, because {why}; earlier backups keep the old one",
            )
            for log, why in sorted(self.recopied.items())
        ]

    @property
    def generation_notes(self) -> list[Finding]:
        return [
            Finding(
                code="new-generation",
                severity=Severity.NOTE,
                where=topic,
                what=f"generation {history.partition('-')[2]} is active from this backup on; earlier backups keep "
                "the one that they have",
            )
            for topic, history in sorted(self.base.begun.items())
        ]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings that are known before anything is copied."""
        planned = (*assemble(self.plan, ()).findings, *new_histories(self.broken), *groups_of(self.facts)[1])
        planned += tuple(map(undecided_past, self.undecided))
        return (*planned, *cluster_findings(self.facts), *gone_topics(self.base.reached, self.facts))


def new_histories(broken: Sequence[BrokenLog]) -> list[Finding]:
    return [
        Finding(
            code="new-history",
            severity=Severity.WARNING,
            where=str(b.log),
            what=f"the log does not continue what is archived of it ({b.cause}); it begins a new history, "
            "and earlier backups keep the log as it was",
        )
        for b in broken
    ]
