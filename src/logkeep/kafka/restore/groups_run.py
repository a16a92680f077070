"""`kafka groups restore` and its rollback: sets group offsets by the map of an earlier restore, or unchanged.

Every run is a restore with its own id and receipt, and may be repeated. The previous offsets are stored before anything
is changed, so that a killed run can be rolled back. A rollback is a run too, and can be rolled back itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from logkeep.errors import LogkeepError, TargetUnsafe, UsageError
from logkeep.formats.kafka.internal_topics.offsets_topic import PositionKey
from logkeep.formats.run_map.file_format import decode_all
from logkeep.kafka.admin.offsets import LogBounds, log_bounds
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import GroupRecord
from logkeep.kafka.restore.facts.units import ReplayOutcome
from logkeep.kafka.restore.groups import read_groups, roll_back, set_groups
from logkeep.kafka.restore.plan.group_offsets import Routes
from logkeep.kafka.restore.plan.group_rollback import Rollback, plan_rollback
from logkeep.kafka.restore.plan.group_routes import routes_as_they_are, routes_by_map, targets_of
from logkeep.kafka.restore.plan.groups import (
    ForeignOffset,
    GroupPosition,
    GroupsPlan,
    plan_groups,
    rows_of,
    with_foreign,
)
from logkeep.kafka.restore.plan.selection import SelectedLogs
from logkeep.model.findings import Finding, error_finding
from logkeep.model.ids import RestoreId
from logkeep.model.time import Clock, TokenSource
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import (
    NewRestore,
    ReceiptDocument,
    RestoredGroup,
    RestoreTargetRef,
    RestoreVerdict,
    newest_first,
    newest_producers,
    newest_receipt,
    plan_body,
    read_map,
    read_plan,
)
from logkeep.repository.restores.stored import StoredRestore

KIND = "kafka-groups"


class GroupsBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The stored plan of a run: the offsets to set, and the previous ones."""

    groups: tuple[RestoredGroup, ...]


@dataclass(frozen=True)
class GroupsTask:
    restores: SourceRef
    """The source that holds plans and receipts."""
    cluster: Cluster
    clock: Clock
    tokens: TokenSource

    def routes_of_restore(self, restore_id: RestoreId) -> Routes:
        """Where a restore has written the records. Raises UsageError if it has not ended, and TargetUnsafe."""
        receipt = self._with_records(restore_id)
        if receipt is None or not receipt.partitions:
            raise UsageError(
                "this restore has not restored any records" if receipt else "this restore has not ended",
                subject=f"restore {restore_id}",
                remedy="`logkeep receipts list` shows all; --backup ID uses the archived offsets unchanged",
            )
        self._check_cluster(receipt.target)
        self._check_topics(restore_id)
        maps = decode_all(read_map(self.restores, restore_id, receipt.map)) if receipt.map else {}
        return routes_by_map(receipt.partitions, maps, self._bounds(targets_of(receipt.partitions)))

    def _with_records(self, restore_id: RestoreId) -> ReceiptDocument | None:
        """The last receipt of a complete restore; a later proof may have found that retention deleted records. If the
        restore is not complete, its newest receipt."""
        whole = (
            r
            for r in newest_first(self.restores, restore_id)
            if r.records_there and all(row.outcome == ReplayOutcome.DONE for row in r.partitions)
        )
        return next(whole, None) or newest_receipt(self.restores, restore_id)

    def routes_as_they_are(self, chosen: SelectedLogs) -> Routes:
        return routes_as_they_are(chosen.logs, self._bounds({log.target for log in chosen.logs}))

    def plan(
        self,
        groups: tuple[GroupRecord, ...],
        routes: Routes,
        patterns: tuple[str, ...],
        recovered: Mapping[PositionKey, GroupPosition],
        foreign: tuple[ForeignOffset, ...] = (),
    ) -> GroupsPlan:
        names = {g.name for g in groups} | {key.group for key in recovered}
        plan = plan_groups(groups, routes, patterns, read_groups(self.cluster, names), recovered)
        return with_foreign(plan, foreign, patterns)

    def restore(self, plan: GroupsPlan, backup: int, options: dict[str, str]) -> RestoreId:
        return self._run(rows_of(plan), backup, options, lambda: set_groups(self.cluster, plan))

    def plan_rollback(self, restore_id: RestoreId) -> tuple[Rollback, int]:
        """The changes that undo a restore of groups, and its backup."""
        stored = read_plan(self.restores, restore_id)
        self._check_cluster(stored.target)
        receipt = newest_receipt(self.restores, restore_id)
        rows = plan_body(stored, GroupsBody).groups if stored.kind == KIND else receipt.groups if receipt else ()
        if not any(row.offset is not None or row.previous_offset is not None for row in rows):
            raise UsageError("has set no groups", subject=f"restore {restore_id}")
        return plan_rollback(rows, read_groups(self.cluster, {row.group for row in rows})), stored.backup

    def rollback(self, plan: Rollback, backup: int, options: dict[str, str]) -> RestoreId:
        return self._run(plan.rows, backup, options, lambda: roll_back(self.cluster, plan.groups))

    def _run(
        self, rows: tuple[RestoredGroup, ...], backup: int, options: dict[str, str], change: Callable[[], None]
    ) -> RestoreId:
        target = RestoreTargetRef(cluster_id=self.cluster.known().cluster_id)
        body = msgspec.json.encode(GroupsBody(groups=rows))
        new = NewRestore(backup, KIND, target, body, options)
        stored = StoredRestore.begin(self.restores, new, self.clock, self.tokens)
        run = self.tokens()

        def end(verdict: RestoreVerdict, findings: tuple[Finding, ...] = ()) -> None:
            stored.put(msgspec.structs.replace(stored.draft(verdict, findings, run=run), groups=rows))

        try:
            change()
        except LogkeepError as error:
            end(RestoreVerdict.FAILED, (error_finding(error, "groups"),))
            raise
        # Not `proven`, which is for records; the offsets of the groups were read back.
        end(RestoreVerdict.SET)
        return stored.id

    def _check_cluster(self, target: RestoreTargetRef) -> None:
        here = self.cluster.known().cluster_id
        if target.cluster_id != here:
            raise TargetUnsafe(
                f"that restore went to cluster {target.cluster_id}, and this is {here}",
                remedy="name the brokers of that cluster; its offsets are not valid in another one",
            )

    def _check_topics(self, restore_id: RestoreId) -> None:
        """The offset map is valid only for the topics that were restored to, not for later ones with the same names."""
        producers = newest_producers(self.restores, restore_id)
        present = {t.name: t.id.hex for t in self.cluster.metadata().topics}
        stored = producers.topics if producers else {}
        other = [name for name, each in sorted(stored.items()) if each and present.get(name, each) != each]
        if other:
            raise TargetUnsafe(
                "topics were deleted and created again since that restore",
                subject=", ".join(other[:5]),
                remedy="its offset map is not valid there; restore the records again, then the groups with that "
                "restore; --backup ID uses archived offsets unchanged, and says where the topic holds other records",
            )

    def _bounds(self, wanted: set[TopicPartition]) -> dict[TopicPartition, LogBounds]:
        """Bounds of the logs that the cluster has."""
        metadata = self.cluster.metadata()
        return log_bounds(self.cluster, sorted(log for log in wanted if metadata.find(log) is not None))
