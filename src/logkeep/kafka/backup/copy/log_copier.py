"""Copies the logs of a plan in tasks, and copies each log that lost its end meanwhile a second time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from logkeep.errors import BackupFailed
from logkeep.kafka.backup.assemble import (
    assemble,
    changed_log_findings,
    changed_logs,
    deleted_logs,
    join_rounds,
    refuse_failures,
    refuse_unconfirmed_deletions,
    results_in_plan,
)
from logkeep.kafka.backup.continuity.history_check import changed_meanwhile, of_another_past
from logkeep.kafka.backup.continuity.log_continuity import ArchivedRows
from logkeep.kafka.backup.continuity.past_check import compare_before_commit, gap_ends
from logkeep.kafka.backup.copy.copy_task import copy_ranges
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.findings import undecided_past
from logkeep.kafka.backup.plan import Plan, UsedNumbers, next_history, plan_backup, same_topic
from logkeep.kafka.backup.planner import BackupPlanner
from logkeep.kafka.backup.preparation import PreparedBackup, PreviousBackup
from logkeep.kafka.backup.units import CopyResult, CopyUnit, RangeResult
from logkeep.kafka.backup.values import CopiedLogs
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.rate_limit import share
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.record.documents import ArchivedReach
from logkeep.model.ids import BackupId
from logkeep.model.segments import LogName
from logkeep.model.work import Engine
from logkeep.repository.backups.backup import OngoingBackup


@dataclass(frozen=True)
class LogCopier:
    """The copies of one run over one connected cluster."""

    planner: BackupPlanner
    settings: ClientSettings

    def copy(
        self, ongoing: OngoingBackup, prepared: PreparedBackup, earlier: Sequence[CopyResult], engine: Engine
    ) -> CopiedLogs:
        """Copy all logs, and copy each log that turned out not to be the planned one a second time."""
        plan, facts = prepared.plan, prepared.facts
        added = self.copy_units(ongoing.id, ongoing.run, plan, engine)
        results = [*results_in_plan(plan, earlier), *added]
        refuse_failures(results)
        changed, undecided = self._changed(results, plan, prepared.base, facts)
        assembled = assemble(plan, results, {r.log for r in changed})
        assembled = replace(assembled, findings=(*assembled.findings, *map(undecided_past, undecided)))
        if not changed:
            return CopiedLogs(assembled, facts, tuple(results), tuple(added))
        again = self.planner.gather_facts()
        second = self._plan_again(again, changed, prepared.base.used)
        repeated = self.copy_units(ongoing.id, ongoing.run, second, engine)
        refuse_failures(repeated)
        changing, doubtful = self._changed(repeated, second, PreviousBackup(), again)
        if changing:
            raise BackupFailed("logs keep changing their history while they are copied", subject=str(changing[0].log))
        whole = join_rounds(assembled, assemble(second, repeated))
        findings = (*whole.findings, *changed_log_findings(changed), *map(undecided_past, doubtful))
        return CopiedLogs(replace(whole, findings=findings), _with_new(facts, again, changed), steady=False)

    def _changed(
        self, results: Sequence[CopyResult], plan: Plan, base: PreviousBackup, facts: Facts
    ) -> tuple[list[RangeResult], tuple[LogName, ...]]:
        """Ranges of logs that turned out not to be the planned ones, while they were copied or since; and logs of which
        that is not known."""
        topics = self.planner.cluster.metadata().topics
        refuse_unconfirmed_deletions(deleted_logs(results), topics)
        changed = [
            *changed_logs(results),
            *changed_meanwhile(results, base.reached, topics, self.planner.continuity.epoch_ends),
        ]
        ended = {r.log for r in changed}
        others = self.planner.continuity.went_back(gap_ends(results, plan.gaps, topics, ended))
        doubted = [each for each in results if each.unit not in base.compared_units]
        wanted = compare_before_commit(doubted, base.reached, topics, ended | others, facts)
        judged = self.planner.continuity.before_commit(
            wanted, ArchivedRows(self.planner.place, base.entry, results), facts, base.record
        )
        return [*changed, *of_another_past(results, others.union(judged.others))], judged.undecided

    def _plan_again(self, facts: Facts, changed: Sequence[RangeResult], used: UsedNumbers) -> Plan:
        """A plan of the logs that lost their end: from their beginning, as a history of their own."""
        ended = {TopicPartition(r.log.name, r.log.partition): r.log.history for r in changed}
        topics = []
        for topic in facts.topics:
            kept = tuple(p for p in topic.partitions if TopicPartition(topic.name, p.index) in ended)
            if kept:
                topics.append(replace(topic, partitions=kept))
        there = {TopicPartition(t.name, p.index): t for t in topics for p in t.partitions}
        for log, history in ended.items():
            if log not in there or not same_topic(history, there[log]):
                raise BackupFailed("it lost its end and was deleted, both while it was copied", subject=str(log))
        anew = {
            log: ArchivedReach(next_history(log.topic, history, used), facts.bounds[log].start, -1)
            for log, history in ended.items()
        }
        return plan_backup(topics, facts.bounds, facts.sizes, anew)

    def copy_units(
        self, backup: BackupId, run: str, plan: Plan, engine: Engine, catch_up: str = ""
    ) -> list[CopyResult]:
        settings, options = self.settings, self.planner.options
        tasks = engine.at_once(len(plan.units))
        limits = FetchLimits(
            rack=settings.rack, client_id=settings.client_id, bytes_per_s=share(options.limit_download, tasks)
        )
        units = [
            CopyUnit(
                name=u.name,
                place=self.planner.place,
                backup=backup,
                run=run,
                broker=u.broker,
                ranges=u.ranges,
                brokers=SettingsBrokers(settings),
                segment_bytes=options.segment_bytes,
                limits=limits,
                codec=options.compression,
                catch_up=catch_up,
            )
            for u in plan.units
        ]
        return engine.map(copy_ranges, units, CopyResult, label="copy", weight=lambda u: u.size_bytes)


def _with_new(facts: Facts, again: Facts, changed: Sequence[RangeResult]) -> Facts:
    """The facts of the first round, with those of the second for the logs that were copied again."""
    names = {TopicPartition(r.log.name, r.log.partition) for r in changed}
    return replace(facts, log_ends=facts.log_ends.without(names).joined(again.log_ends.only(names)))
