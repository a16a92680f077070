"""Plans a run of `kafka backup`: reads the cluster and the backup to continue, and compares logs with their archive.

Writes nothing. A run plans once; it plans again to resume an interrupted run, or for a second cut.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from logkeep.errors import TopicMissing
from logkeep.kafka.admin.offsets import log_bounds
from logkeep.kafka.backup.assemble import done_ranges
from logkeep.kafka.backup.continuity.history_check import BrokenLog, archive_progress, broken_logs, truncated_since
from logkeep.kafka.backup.continuity.log_continuity import ArchivedRows, LogContinuity
from logkeep.kafka.backup.continuity.past_check import SeenLogs, compare_before_plan, partition_of, trusted_logs
from logkeep.kafka.backup.deletion_passes import RECOPIED, CompactedMode
from logkeep.kafka.backup.facts import Facts, gather
from logkeep.kafka.backup.plan import (
    expected_bytes,
    next_history,
    plan_backup,
    refuse_no_topics,
    refuse_unknown,
    used_numbers,
)
from logkeep.kafka.backup.preparation import PreparedBackup, PreviousBackup
from logkeep.kafka.backup.units import CopyResult
from logkeep.kafka.backup.values import KafkaBackupOptions
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.lost_offset import Cause
from logkeep.kafka.record.deletion_times import cleanup_rule
from logkeep.kafka.record.documents import KIND, ArchivedReach, ClusterRecord, reached_in
from logkeep.kafka.record.folded_backups import folded_ends
from logkeep.kafka.record.lost_burials import lost_burials
from logkeep.kafka.record.scram import probe_scram, scram_left_out
from logkeep.kafka.record.stored_record import read_record
from logkeep.kafka.record.unproven_deletions import unproven_by_rows
from logkeep.kafka.registry.capture import probe
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName
from logkeep.repository.backups.backup import check_wanted
from logkeep.repository.backups.burials import burials_by_log
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.folds import with_dense
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.source import check_source, read_manifest
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.parts import dense_logs

_MANY_BYTES = 512 << 20
"""Fewer bytes are copied before another engine could start."""
_TOPIC_READS = 10
"""Each takes well under a second: more would help only while topics are deleted all the time."""


@dataclass(frozen=True)
class BackupPlanner:
    """The plans of one run over one connected cluster."""

    place: SourceRef
    options: KafkaBackupOptions
    cluster: Cluster
    seen: SeenLogs = field(default_factory=dict)
    """The logs as the round before saw them, if no broker was restarted since."""
    later: Mapping[TopicPartition, ArchivedReach] = field(default_factory=dict)
    """The logs of that round if it stored nothing."""
    expect: Callable[[int], None] = lambda _: None
    """Gets about the bytes to copy, where these are many."""
    _records: dict[int, tuple[Manifest, ClusterRecord | None]] = field(default_factory=dict)

    @cached_property
    def continuity(self) -> LogContinuity:
        return LogContinuity(self.cluster, self.place, self.options.limit_download or 0)

    def checked_plan(self) -> PreparedBackup:
        """The plan on the newest commit, and all checks that need no lease."""
        folded = read_chain(self.place)
        check_wanted(self.options.wanted_id, folded.last_id)
        facts = self.gather_facts(folded)
        check_source(self.place, KIND, cluster_identity(facts))
        prepared = self.plan(folded, facts)
        if self.options.scram is not None:
            probe_scram(self.options.scram, self.cluster)
        if self.options.registry is not None:
            probe(self.options.registry)
        return prepared

    def plan(self, folded: Folded, facts: Facts | None = None) -> PreparedBackup:
        facts = facts or self.gather_facts(folded)
        refuse_unknown(self.options.accept_deletions, facts.topics)
        base = self.read_base(folded.completed[-1] if folded.completed else None, folded)
        refuse_no_topics(facts.topics, base.reached)
        return self.plan_from(facts, base, folded.generation)

    def plan_from(
        self,
        facts: Facts,
        base: PreviousBackup,
        generation: int,
        earlier: Sequence[CopyResult] = (),
        recopied: Mapping[str, str] | None = None,
    ) -> PreparedBackup:
        """Where each log continues. One that does not continue its archived history begins the next one, and so do all
        logs of topics that are copied again."""
        recopied = recopied or {}
        now = archive_progress(facts.topics, facts.bounds, base.reached, earlier, base.begun)
        broken = broken_logs(facts.topics, facts.bounds, now.furthest, self.continuity.epoch_ends)
        kept = {log: reach for log, reach in now.reached.items() if log not in {b.log for b in broken}}
        trusted = trusted_logs(self.seen, facts.topics, facts.bounds)
        doubted = [each for each in earlier if each.unit not in base.compared_units]
        wanted = compare_before_plan(facts.topics, facts.bounds, kept, base.reached, doubted, trusted, base.gaps)
        judged = self.continuity.before_plan(wanted, ArchivedRows(self.place, base.entry, earlier), facts, base.record)
        broken += [BrokenLog(partition_of(log), Cause.OTHER_PAST, log.history) for log in sorted(judged.others)]
        ended = {**{log: r.history for log, r in now.reached.items() if log.topic in recopied}}
        ended |= {b.log: b.history for b in broken}
        anew = {
            log: ArchivedReach(next_history(log.topic, history, base.used), facts.bounds[log].start, -1)
            for log, history in ended.items()
            if log in facts.bounds
        }
        known, furthest = {**now.reached, **anew}, {**now.furthest, **anew}
        bounds = judged.bounds_after(facts.bounds)
        plan = plan_backup(facts.topics, bounds, facts.sizes, known, done_ranges(earlier), furthest, used=base.used)
        began = truncated_since(base.reached, now, base.begun)
        recopied_before = self._recopied_before(facts, base, began)
        ended_histories = (*(b for b in began if b.log not in recopied_before), *broken)
        again = {log: recopied[log.topic] for log in ended if log.topic in recopied}
        again |= dict.fromkeys(recopied_before, RECOPIED)
        return PreparedBackup(facts, base, plan, ended_histories, generation, judged.undecided, again)

    def _recopied_before(self, facts: Facts, base: PreviousBackup, began: Sequence[BrokenLog]) -> set[TopicPartition]:
        """Logs that an interrupted run with --compacted recopy began to copy again: by their leaders' epochs they still
        continue what the last backup has."""
        if not began or self.options.compacted is not CompactedMode.RECOPY:
            return set()
        compacted = {t for t, configs in facts.configs.items() if cleanup_rule(configs.own, configs.inherited).compacts}
        asked = {b.log: base.reached[b.log] for b in began if b.log.topic in compacted}
        lost = broken_logs(facts.topics, facts.bounds, asked, self.continuity.epoch_ends)
        return asked.keys() - {each.log for each in lost}

    def gather_facts(self, folded: Folded | None = None) -> Facts:
        """All facts; read from the beginning again when a topic is deleted between two requests."""
        for _ in range(_TOPIC_READS - 1):
            with suppress(TopicMissing):
                return self._facts(folded)
        return self._facts(folded)

    def _facts(self, folded: Folded | None) -> Facts:
        options = self.options
        facts = gather(
            self.cluster,
            options.include,
            options.exclude,
            internal=options.internal,
            pause=time.sleep,
            sized=partial(self._expect, folded),
        )
        left_out = scram_left_out(self.cluster) if options.scram is None else ()
        return replace(facts, findings=(*facts.findings, *left_out))

    def _expect(self, folded: Folded | None, sizes: Mapping[TopicPartition, int]) -> None:
        if folded is None or sum(sizes.values()) < _MANY_BYTES:
            return
        last = folded.completed[-1] if folded.completed else None
        record = self._record_of(last)[1] if last is not None else None
        bounds = log_bounds(self.cluster, sizes)
        self.expect(expected_bytes(sizes, bounds, reached_in(record) if record is not None else {}))

    def _record_of(self, entry: BackupEntry) -> tuple[Manifest, ClusterRecord | None]:
        """Read once: a manifest never changes."""
        if entry.id not in self._records:
            manifest = read_manifest(self.place, entry)
            self._records[entry.id] = manifest, read_record(self.place, manifest)
        return self._records[entry.id]

    def read_base(self, entry: BackupEntry | None, folded: Folded) -> PreviousBackup:
        if entry is None:
            return PreviousBackup(used=used_numbers(folded))
        manifest, record = self._record_of(entry)
        base = PreviousBackup(entry, manifest.findings, record, manifest.gaps, used_numbers(folded))

        def dense() -> set[LogName]:
            found = dense_logs(rows_of(PartReader(self.place), manifest, served_parts(manifest, folded)))
            return with_dense(folded, entry.id, found)

        unproven = unproven_by_rows(base.record, manifest, dense) if base.record is not None else {}
        tips = self.continuity.unrecorded(entry, base.reached)
        burials = burials_by_log(folded, entry.id, [c.log for c in manifest.cut])
        lost = {
            TopicPartition(log.topic, log.partition): Range(log.start, log.end)
            for log in (lost_burials(record, burials) if record is not None else ())
        }
        ends = folded_ends(folded, record)
        return replace(base, tips=tips, unproven=unproven, later=self.later, lost=lost, folded_to=ends)


def cluster_identity(facts: Facts) -> dict[str, str]:
    return {"cluster_id": facts.metadata.cluster_id}
