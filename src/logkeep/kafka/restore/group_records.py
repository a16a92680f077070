"""Checks offsets that `kafka groups restore --backup` sets unchanged, in topics that are not the archived ones."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from functools import cached_property
from uuid import UUID

from logkeep.errors import Damaged, FormatTooNew, ObjectMissing
from logkeep.kafka.admin.offsets import LogBounds, log_bounds
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.retry import ProgressBackoff
from logkeep.kafka.client.topology import ClusterMetadata, TopicPartition
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.logs.live import LiveLogs, LiveRange
from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.kafka.record.documents import KIND
from logkeep.kafka.record.history_names import topic_id_of
from logkeep.kafka.restore.facts.neighbour_records import archived_around, live_around
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.kafka.restore.plan.group_offsets import Reason
from logkeep.kafka.restore.plan.group_records import KeptOffsets, find_doubt, recreated_logs, with_doubts
from logkeep.kafka.restore.plan.groups import GroupsPlan
from logkeep.kafka.restore.plan.selection import ChosenLog, SelectedLogs
from logkeep.kafka.restore.plan.values import RestorePlan
from logkeep.model.ids import RestoreId
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import RestoreState, list_restores, newest_producers, plan_body, read_plan

_GOOD = frozenset({RestoreState.PROVEN, RestoreState.UNPROVEN})


class GroupRecordsCheck:
    """The chosen logs of a backup, and the topics with their names. Nothing is read where topic ids are the same."""

    def __init__(self, view: KafkaBackupView, chosen: SelectedLogs, cluster: Cluster, restores: SourceRef) -> None:
        self._view, self._cluster, self._restores = view, cluster, restores
        self._logs = {log.target: log for log in chosen.logs}
        self._present = {t.name: t.id.hex for t in cluster.metadata().topics}
        self._found: dict[tuple[TopicPartition, int], Reason | None] = {}

    def check(self, plan: GroupsPlan) -> GroupsPlan:
        """The plan with the doubts about its offsets. Raises ClusterUnreachable, ClusterNotReady, NotAuthorised or a
        StoreError."""
        archived = {target: topic_id_of(log.log.history) for target, log in self._logs.items()}
        recreated = recreated_logs(archived, self._present)
        if not recreated:
            return plan
        brokers = SettingsBrokers(self._cluster.settings)
        with closing(LiveLogs(brokers, -1, FetchLimits(), ProgressBackoff(time.sleep))) as logs:
            return with_doubts(plan, recreated, lambda target, at: self._doubt(logs, target, at))

    def _doubt(self, logs: LiveLogs, target: TopicPartition, at: int) -> Reason | None:
        kept = self._kept_offsets.get((self._logs[target].log, target))
        if kept is not None and kept.topic_id == self._present[target.topic] and at <= kept.end:
            return None
        if (target, at) not in self._found:
            self._found[target, at] = self._compare(logs, self._logs[target], target, at)
        return self._found[target, at]

    def _compare(self, logs: LiveLogs, log: ChosenLog, target: TopicPartition, at: int) -> Reason | None:
        bounds, found = self._bounds.get(target), self._metadata.find(target)
        if found is None or bounds is None:
            return Reason.UNPROVEN
        try:
            archived = archived_around(self._view.place, self._segments[log.log], at, log.start, log.end)
        except (Damaged, ObjectMissing):
            return Reason.UNPROVEN
        topic_id = UUID(hex=self._present[target.topic])
        whole = LiveRange(target.topic, topic_id, target.partition, bounds.start, bounds.high_watermark)
        live = live_around(logs, whole, found.leader, at, archived.below)
        return find_doubt(archived, live, bounds.start, bounds.high_watermark)

    @cached_property
    def _bounds(self) -> Mapping[TopicPartition, LogBounds]:
        found = sorted(log for log in self._logs if self._metadata.find(log) is not None)
        return log_bounds(self._cluster, found)

    @cached_property
    def _metadata(self) -> ClusterMetadata:
        """Read once: there may be a position for each group and partition."""
        return self._cluster.metadata()

    @cached_property
    def _segments(self) -> Mapping[LogName, tuple[Segment, ...]]:
        return self._view.segments({log.log: Range(log.start, log.end) for log in self._logs.values()})

    @cached_property
    def _kept_offsets(self) -> Mapping[tuple[LogName, TopicPartition], KeptOffsets]:
        """Where a finished restore to this cluster has put archived logs, at their own offsets."""
        return dict(kept_offsets(self._restores, self._cluster.known().cluster_id))


def kept_offsets(restores: SourceRef, cluster_id: str) -> Iterator[tuple[tuple[LogName, TopicPartition], KeptOffsets]]:
    """Archived logs that finished restores have put into a cluster at their own offsets, and where. Restores whose
    documents cannot be read are left out."""
    for row in list_restores(restores):
        if row.state in _GOOD and not row.part and not row.drill:
            with suppress(Damaged, ObjectMissing, FormatTooNew):
                yield from _kept_by(restores, row.id, cluster_id)


def _kept_by(
    restores: SourceRef, restore_id: RestoreId, cluster_id: str
) -> Iterator[tuple[tuple[LogName, TopicPartition], KeptOffsets]]:
    document = read_plan(restores, restore_id)
    plan = plan_body(document, RestorePlan) if document.kind == KIND else None
    producers = newest_producers(restores, restore_id)
    if plan is not None and producers is not None and plan.cluster_id == cluster_id:
        for log in plan.logs if plan.offsets is Offsets.PRESERVE else ():
            yield (log.log, log.target), KeptOffsets(producers.topics[log.topic], log.end)
