"""What a cluster has to export: the facts of a backup, with the last stable offset as the end of each log."""

import time
from collections.abc import Iterable

from logkeep.kafka.backup.facts import Facts, gather
from logkeep.kafka.backup.findings import no_topics
from logkeep.kafka.backup.record_builder import acls_of, groups_of, quotas_of, topics_of
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.datasets.sources.selection import ExportSelection
from logkeep.kafka.datasets.values import ExportableLog, ExportableLogs
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.kafka.record.documents import OpenTransaction
from logkeep.model.findings import Finding, Severity


def read_cluster(cluster: Cluster, wanted: ExportSelection) -> ExportableLogs:
    """The selected logs of a cluster. Raises UsageError if nothing is selected, and errors of the cluster."""
    facts = gather(cluster, wanted.include, wanted.exclude, internal=wanted.internal, pause=time.sleep)
    logs = wanted.chosen(_logs(facts))
    return ExportableLogs(
        cluster_id=facts.metadata.cluster_id,
        live=True,
        topics=topics_of(facts),
        logs=logs,
        groups=groups_of(facts)[0],
        acls=acls_of(facts),
        quotas=quotas_of(facts),
        configs_known=True,
        cut=facts.cut,
        named=facts.named,
        findings=(*no_topics(facts), *facts.findings, *hanging_transactions(facts.log_ends.undecided, logs)),
    )


def hanging_transactions(undecided: Iterable[OpenTransaction], logs: Iterable[ExportableLog]) -> list[Finding]:
    """A dataset waits for them, and they may never end."""
    exported = {each.log for each in logs}
    return [
        Finding(
            code="transaction-undecided",
            severity=Severity.WARNING,
            where=f"{each.topic}/{each.partition} from offset {each.first_offset}",
            what=f"a transaction of producer {each.producer_id} has no marker, and no coordinator reports it as "
            "ongoing: the dataset ends there until it is committed or aborted",
            remedy="check with kafka-transactions.sh find-hanging whether it hangs, and abort it; or allow this user "
            "to describe transactional ids",
        )
        for each in undecided
        if DatasetLog(each.topic, each.partition) in exported
    ]


def _logs(facts: Facts) -> list[ExportableLog]:
    found = []
    for topic in facts.topics:
        for partition in topic.partitions:
            log = TopicPartition(topic.name, partition.index)
            bounds = facts.bounds[log]
            source = ExportableLog(
                log=DatasetLog(*log),
                history=topic.id.hex,
                start=bounds.start,
                end=max(min(bounds.last_stable, bounds.high_watermark), bounds.start),
                size_bytes=facts.sizes.get(log, 0),
                broker=partition.leader,
            )
            found.append(source)
    return found
