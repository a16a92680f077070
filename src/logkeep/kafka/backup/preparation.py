"""What a backup continues, and what it will do: values between the steps of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from logkeep.kafka.backup.assemble import assemble
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.findings import cluster_findings, gone_topics, undecided_past
from logkeep.kafka.backup.history_check import BrokenLog
from logkeep.kafka.backup.plan import Plan
from logkeep.kafka.backup.record_builder import groups_of
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import ArchivedReach, ClusterRecord, reached_in
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import LogName
from logkeep.repository.chain.fold import BackupEntry


@dataclass(frozen=True)
class PreviousBackup:
    """The backup that a run continues, read once."""

    entry: BackupEntry | None = None
    findings: tuple[Finding, ...] = ()
    record: ClusterRecord | None = None

    tips: Mapping[TopicPartition, ArchivedReach] = field(default_factory=dict)
    """Those of `reached` whose last batch is not in the record, with that batch."""

    @cached_property
    def reached(self) -> dict[TopicPartition, ArchivedReach]:
        return {**(reached_in(self.record) if self.record is not None else {}), **self.tips}


@dataclass(frozen=True)
class PreparedBackup:
    """What a run will do."""

    facts: Facts
    base: PreviousBackup
    plan: Plan
    broken: tuple[BrokenLog, ...]
    """Logs that begin a new history."""
    generation: int
    """Of the chain that the plan continues."""
    undecided: tuple[LogName, ...] = ()
    """Logs that are continued although it is not known whether they have the same past."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those that are known before anything is copied."""
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
            "and earlier backups keep what it was",
        )
        for b in broken
    ]
