"""Completes a backup of Kafka: the cluster record, its attachments, findings, and the commit."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from logkeep.kafka.backup.assemble import Assembled
from logkeep.kafka.backup.burial import buried_counts
from logkeep.kafka.backup.deletion_passes import DeletionPasses
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.findings import cluster_findings, damage_findings, gone_topics
from logkeep.kafka.backup.preparation import PreparedBackup, PreviousBackup
from logkeep.kafka.backup.record_builder import acls_of, groups_of, logs_of, quotas_of, topics_of
from logkeep.kafka.backup.values import KafkaBackupDone, KafkaBackupOptions
from logkeep.kafka.record.documents import ClusterRecord, check_consistent
from logkeep.kafka.record.scram import SealedScram, put_scram
from logkeep.kafka.record.stored_record import put_record
from logkeep.kafka.registry.attachment import put_registry
from logkeep.kafka.registry.capture import CapturedRegistry, capture
from logkeep.model.findings import Finding
from logkeep.model.segments import LogName
from logkeep.model.time import Clock
from logkeep.repository.backups.backup import FinishedRun, OngoingBackup
from logkeep.repository.backups.manifest import AttachmentRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.write_session import Writing


@dataclass(frozen=True)
class BackupRecorder:
    """Writes what one run records besides the logs."""

    place: SourceRef
    options: KafkaBackupOptions
    clock: Clock

    def complete(
        self,
        session: Writing,
        ongoing: OngoingBackup,
        prepared: PreparedBackup,
        assembled: Assembled,
        passes: DeletionPasses,
        scram: SealedScram | None,
        switched: tuple[str, ...] = (),
    ) -> KafkaBackupDone:
        counts = buried_counts(session.folded, ongoing.id, [c.log for c in assembled.cut])
        record, findings = self.record(ongoing.id, prepared.base, prepared.facts, assembled, passes, counts)
        check_consistent(record, assembled.cut)
        refs = [put_record(self.place, ongoing.id, record, session.tokens())]
        if scram is not None:
            refs.append(put_scram(self.place, ongoing.id, scram, session.tokens()))
        if self.options.application is not None:
            refs.append(self.options.application.attach(self.place, ongoing.id, session.tokens()))
        if self.options.registry is not None:
            # After the copy: records of the backup may have schemas that were registered while it ran.
            refs.append(self._put_registry(ongoing, capture(self.options.registry), session))
        finished = FinishedRun(
            cut=assembled.cut,
            new=assembled.segments,
            gaps=assembled.gaps,
            attachments=refs,
            findings=findings,
            switched=switched,
        )
        return KafkaBackupDone(
            entry=ongoing.complete(finished),
            facts=prepared.facts,
            plan=prepared.plan,
            gaps=assembled.gaps,
            findings=(*findings, *damage_findings(ongoing.rests_on)),
            logs=record.logs,
            offsets=assembled.offsets,
        )

    def _put_registry(self, ongoing: OngoingBackup, found: CapturedRegistry, session: Writing) -> AttachmentRef:
        return put_registry(
            self.place,
            ongoing.id,
            found.registry,
            url=found.url,
            export=found.export,
            captured=self.clock(),
            token=session.tokens(),
        )

    def record(
        self,
        backup_id: int,
        base: PreviousBackup,
        facts: Facts,
        assembled: Assembled,
        passes: DeletionPasses,
        buried: Mapping[LogName, int],
    ) -> tuple[ClusterRecord, tuple[Finding, ...]]:
        """What is archived of the cluster besides its logs, and everything that the user should know."""
        groups, clamped = groups_of(facts)
        if self.options.application is not None:
            groups, clamped = self.options.application.groups(groups), [*clamped, *self.options.application.findings()]
        record = ClusterRecord(
            repository=self.place.repository,
            source=self.place.source,
            id=backup_id,
            cluster_id=facts.metadata.cluster_id,
            topics=topics_of(facts),
            logs=logs_of(base.reached, facts, assembled, passes.times(assembled, buried), base.folded_to),
            open_transactions=facts.open_transactions,
            groups=groups,
            acls=acls_of(facts),
            quotas=quotas_of(facts),
            chosen=facts.chosen or msgspec.UNSET,
        )
        found = (*assembled.findings, *clamped, *cluster_findings(facts), *gone_topics(base.reached, facts))
        return record, (*found, *passes.findings())
