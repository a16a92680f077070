"""The steps of `kafka backup`.

Facts → last archived batches compared → plan → copy in tasks → copied batches compared → a second round for logs that
lost their end meanwhile → record, manifest → commit. A run connects to the cluster once and plans once; it plans again
only to resume an interrupted run, or when another run committed between the plan and the lease.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property, partial

import msgspec

from logkeep.errors import BackupFailed, LogkeepError, TopicMissing
from logkeep.kafka.admin.offsets import log_bounds
from logkeep.kafka.backup.application_cut import ApplicationCut
from logkeep.kafka.backup.assemble import (
    Assembled,
    assemble,
    changed_log_findings,
    changed_logs,
    deleted_logs,
    done_ranges,
    earlier_results,
    join_rounds,
    refuse_failures,
    refuse_unconfirmed_deletions,
    results_in_plan,
)
from logkeep.kafka.backup.burial import ArchivedLogs, buried_counts, bury, compare_logs, hold_before
from logkeep.kafka.backup.continuity import ArchivedRows, LogContinuity
from logkeep.kafka.backup.copy_task import copy_ranges
from logkeep.kafka.backup.deletion_passes import PASSES, CompactedMode, DeletionPasses, copied_again, first_pass
from logkeep.kafka.backup.deletion_proof import judge_logs
from logkeep.kafka.backup.facts import Facts, gather
from logkeep.kafka.backup.findings import cluster_findings, damage_findings, gone_topics, undecided_past
from logkeep.kafka.backup.generations.plan import CaughtUp, GenerationRule, due_by_age, gaps_in_cut, without_unready
from logkeep.kafka.backup.generations.round import GenerationRound, oldest_logs, refuse_damaged
from logkeep.kafka.backup.history_check import (
    BrokenLog,
    archive_progress,
    broken_logs,
    changed_meanwhile,
    of_another_past,
    truncated_since,
)
from logkeep.kafka.backup.past_check import (
    SeenLogs,
    compare_before_commit,
    compare_before_plan,
    gap_ends,
    partition_of,
    trusted_logs,
)
from logkeep.kafka.backup.plan import (
    Plan,
    UsedNumbers,
    expected_bytes,
    next_history,
    plan_backup,
    refuse_no_topics,
    refuse_unknown,
    same_topic,
    used_numbers,
)
from logkeep.kafka.backup.preparation import PreparedBackup, PreviousBackup, new_histories
from logkeep.kafka.backup.record_builder import acls_of, groups_of, logs_of, quotas_of, topics_of
from logkeep.kafka.backup.units import DEFAULT_SEGMENT_BYTES, CopyResult, CopyUnit, RangeResult
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.rate_limit import share
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.logs.burials import join_burials, unreadable_burials
from logkeep.kafka.logs.lost_offset import Cause
from logkeep.kafka.record.documents import (
    ArchivedReach,
    ClusterRecord,
    PartitionRecord,
    check_consistent,
    reached_by,
    reached_in,
    same_cluster,
)
from logkeep.kafka.record.folded_over import folded_ends
from logkeep.kafka.record.lost_burials import lost_burials
from logkeep.kafka.record.scram import ScramOptions, SealedScram, collect_scram, probe_scram, put_scram, scram_left_out
from logkeep.kafka.record.stored_record import put_record, read_record
from logkeep.kafka.record.unproven_deletions import unproven_by_rows
from logkeep.kafka.registry.attachment import put_registry
from logkeep.kafka.registry.capture import CapturedRegistry, capture, probe
from logkeep.kafka.registry.settings import RegistrySettings
from logkeep.model.findings import DELETION_DOUBTS, Finding
from logkeep.model.ids import BackupId
from logkeep.model.ranges import Range
from logkeep.model.segments import Codec, LogName
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import Engine, EngineFor
from logkeep.repository.backups.backup import FinishedRun, OngoingBackup, begin, check_wanted, resume
from logkeep.repository.backups.burials import burials_by_log
from logkeep.repository.backups.catch_ups import CatchUpReceipt
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.folds import with_dense
from logkeep.repository.backups.journal import open_ids
from logkeep.repository.backups.manifest import AttachmentRef, KnownGap, Manifest
from logkeep.repository.backups.source import check_source, ensure_source, read_manifest
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.format import PACKED_RECORDS, ZSTD_FRAMES, require_feature
from logkeep.repository.chain.write_session import Writing, writing
from logkeep.repository.parts import dense_logs
from logkeep.repository.resume import usable_receipts

KIND = "kafka"
_MANY_BYTES = 512 << 20
"""Fewer are copied before another engine could start."""
_TOPIC_READS = 10
"""Each takes well under a second: more would help only while topics are deleted all the time."""


@dataclass(frozen=True)
class KafkaBackupOptions:
    """What the user asked for."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    internal: bool = False
    wanted_id: BackupId | None = None
    resume: bool = False
    tags: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    """The sources that take part under the same id."""
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    compression: Codec = Codec.NONE
    limit_download: int | None = None
    """Bytes per second from all brokers to all tasks together."""
    lease_ttl: timedelta = timedelta(minutes=5)
    scram: ScramOptions | None = None
    compacted: CompactedMode = CompactedMode.AUTO
    accept_deletions: tuple[str, ...] = ()
    """Topics whose deletions are buried, however many they are."""
    registry: RegistrySettings | None = None
    """The schema registry whose schemas are archived too."""
    generations: GenerationRule = field(default_factory=GenerationRule)
    application: ApplicationCut | None = None
    """The application whose checkpoint this backup has."""


@dataclass(frozen=True)
class CopiedLogs:
    """What was copied up to one cut."""

    assembled: Assembled
    facts: Facts
    results: tuple[CopyResult, ...] = ()
    """Of all ranges; another cut continues them."""
    added: tuple[CopyResult, ...] = ()
    """Of those, the ones that were copied last."""
    steady: bool = True
    """False: logs changed their history meanwhile, and were copied again; no other cut follows in this run."""


@dataclass(frozen=True)
class KafkaBackupDone:
    """The result of a run."""

    entry: BackupEntry
    facts: Facts
    plan: Plan
    gaps: tuple[KnownGap, ...]
    findings: tuple[Finding, ...]
    logs: tuple[PartitionRecord, ...]
    offsets: int = 0
    """New in this backup, including those that an interrupted run had copied."""
    changed: bool = True
    """False: nothing was committed, because `entry` still describes the cluster."""
    catch_up: str | None = None
    """What was copied of the next generation of a topic."""
    switched: frozenset[str] = frozenset()
    """Topics whose new generation is active from this backup on."""


@dataclass(frozen=True)
class KafkaBackup:
    """Backups of one cluster into one source of a repository. Every call connects once, and closes what it opened."""

    place: SourceRef
    settings: ClientSettings
    clock: Clock
    tokens: TokenSource
    catch_up_receipts: dict[str, CatchUpReceipt] = field(default_factory=dict, compare=False)
    """Those of catch-ups that earlier rounds have read."""

    def prepare(self, options: KafkaBackupOptions) -> PreparedBackup:
        """Plan a run. Writes nothing, and refuses whatever a run would refuse."""
        with Cluster(self.settings) as cluster:
            prepared = _BackupRun(self, options, cluster).checked_plan()
        return replace(prepared, due=self._due(options.generations, prepared))

    def _due(self, rule: GenerationRule, prepared: PreparedBackup) -> tuple[str, ...]:
        if rule.length is None:
            return ()
        folded, reached = read_chain(self.place), prepared.base.reached
        oldest = oldest_logs(self.place, folded)
        return tuple(due_by_age(folded, prepared.facts, oldest, reached, rule.length, self.clock()))

    def run(
        self, options: KafkaBackupOptions, engine_for: EngineFor, expect: Callable[[int], None] = lambda _: None
    ) -> KafkaBackupDone:
        """Take the backup. Raises errors of the cluster and of the store; none of them changes earlier backups.

        What a run refuses is refused before the lease is taken, so it leaves no trace in the repository. `expect` gets
        about the bytes to copy, where these are many, before groups and configs are read.
        """
        with Cluster(self.settings) as cluster:
            run = _BackupRun(self, options, cluster, expect=expect)
            prepared = run.checked_plan()
            engine = engine_for(prepared.plan.size_bytes)
            with self._writing(options) as session:
                ongoing = run.cut_application(session, prepared.facts)
                if ongoing is not None or prepared.generation != session.folded.generation:
                    prepared = run.plan(session.folded)
                ready = run.generations(session, prepared)
                done = run.carry_out(session, prepared, engine, ready, ongoing)
                return run.with_share(session, done, engine_for)

    def run_if_changed(
        self,
        options: KafkaBackupOptions,
        engine_for: EngineFor,
        seen: SeenLogs | None = None,
        later: Mapping[TopicPartition, ArchivedReach] | None = None,
        suspected: Mapping[str, Finding] | None = None,
    ) -> KafkaBackupDone:
        """The same, unless the last backup still describes the cluster: then nothing is written but the lease.

        `seen`: the logs as the round before saw them, if no broker was restarted since. `later`: the logs of that round
        if it stored nothing; the times of its cuts count. `suspected`: logs with suspicious deletions that were
        compared a short time ago, and what was found.
        """
        with self._writing(options) as session, Cluster(self.settings) as cluster:
            run = _BackupRun(self, options, cluster, seen or {}, later or {}, suspected or {})
            prepared = run.plan(session.folded)
            ready = run.generations(session, prepared)
            done = None if ready else run.unchanged(session, prepared)
            done = done or run.carry_out(session, prepared, engine_for(prepared.plan.size_bytes), ready)
            return run.with_share(session, done, engine_for)

    def _writing(self, options: KafkaBackupOptions) -> AbstractContextManager[Writing]:
        return writing(self.place, "backup", self.clock, self.tokens, options.lease_ttl)


@dataclass(frozen=True)
class _BackupRun:
    """One run over one connected cluster."""

    task: KafkaBackup
    options: KafkaBackupOptions
    cluster: Cluster
    seen: SeenLogs = field(default_factory=dict)
    later: Mapping[TopicPartition, ArchivedReach] = field(default_factory=dict)
    suspected: Mapping[str, Finding] = field(default_factory=dict)
    expect: Callable[[int], None] = lambda _: None
    _records: dict[int, tuple[Manifest, ClusterRecord | None]] = field(default_factory=dict)

    @cached_property
    def continuity(self) -> LogContinuity:
        return LogContinuity(self.cluster, self.place, self.options.limit_download or 0)

    @property
    def place(self) -> SourceRef:
        return self.task.place

    def checked_plan(self) -> PreparedBackup:
        """The plan on the newest commit, and all checks that need no lease."""
        folded = read_chain(self.place)
        check_wanted(self.options.wanted_id, folded.last_id)
        facts = self._gather(folded)
        check_source(self.place, KIND, _identity(facts))
        prepared = self.plan(folded, facts)
        if self.options.scram is not None:
            probe_scram(self.options.scram, self.cluster)
        if self.options.registry is not None:
            probe(self.options.registry)
        return prepared

    def plan(self, folded: Folded, facts: Facts | None = None) -> PreparedBackup:
        facts = facts or self._gather(folded)
        refuse_unknown(self.options.accept_deletions, facts.topics)
        base = self._read_base(folded.completed[-1] if folded.completed else None, folded)
        refuse_no_topics(facts.topics, base.reached)
        return self._planned(facts, base, folded.generation)

    def unchanged(self, session: Writing, prepared: PreparedBackup) -> KafkaBackupDone | None:
        """The last backup as a result, if it still describes the cluster."""
        facts, base, plan = prepared.facts, prepared.base, prepared.plan
        if base.entry is None or prepared.broken or not plan.empty or open_ids(self.place, session.folded.last_id):
            return None
        if any(tip.last_batch is not None for tip in base.tips.values()):
            return None  # an older release did not record these batches: the next record does, so they are read once
        nothing = assemble(plan, ())
        passes = first_pass(judge_logs(base.known, facts, nothing), facts, nothing)
        counts = buried_counts(session.folded, base.entry.id, {}, [c.log for c in nothing.cut])
        record, found = self._record(base.entry.id, base, facts, nothing, passes, counts)
        # The record compares which deletions are unproven; the finding also says why, which only the first run knows.
        findings = (*(f for f in found if f.code not in DELETION_DOUBTS), *map(undecided_past, prepared.undecided))
        if base.record is None or not same_cluster(base.record, record) or not set(findings) <= set(base.findings):
            return None
        return KafkaBackupDone(base.entry, facts, plan, (), (), record.logs, changed=False)

    def generations(self, session: Writing, prepared: PreparedBackup) -> tuple[CaughtUp, ...]:
        """Catch-ups that become active with this run; others begin and end here."""
        here = GenerationRound(session, self.options.generations, self.task.catch_up_receipts)
        return here.begin(prepared.facts, prepared.base.reached, prepared.broken)

    def with_share(self, session: Writing, done: KafkaBackupDone, engine_for: EngineFor) -> KafkaBackupDone:
        """After the backup: copy a part of the next generation beside the active one."""
        here = GenerationRound(session, self.options.generations, self.task.catch_up_receipts)
        copy = lambda plan, token, engine: self._copy_units(BackupId(done.entry.id), session.run, plan, engine, token)  # noqa: E731
        found = here.share(done.facts, reached_by(done.logs), done.plan, copy, engine_for)
        return replace(done, findings=(*done.findings, *found.findings), catch_up=found.what)

    def cut_application(self, session: Writing, facts: Facts) -> OngoingBackup | None:
        """Begin the backup, and let the application take its checkpoint: the request is stored before it is asked."""
        application = self.options.application
        if application is None:
            return None
        ongoing = self._begin(session, facts)
        try:
            application.take(ongoing.id)
        except LogkeepError as error:
            ongoing.fail(f"{error.subject}: {error.what}" if error.subject else error.what)
            raise
        return ongoing

    def carry_out(
        self,
        session: Writing,
        prepared: PreparedBackup,
        engine: Engine,
        ready: tuple[CaughtUp, ...] = (),
        started: OngoingBackup | None = None,
    ) -> KafkaBackupDone:
        scram = collect_scram(self.options.scram, self.cluster) if self.options.scram is not None else None
        require_feature(self.place.store, PACKED_RECORDS)  # before the first receipt, which has new fields too
        ongoing = started or self._begin(session, prepared.facts)
        if self.options.compression is Codec.ZSTD:
            require_feature(self.place.store, ZSTD_FRAMES)
        earlier = self.continuity.copied(earlier_results(usable_receipts(session, ongoing, engine).values()))
        base = prepared.base
        if ongoing.base != base.entry:
            # A resumed run continues the backup that it began from.
            base = self._read_base(ongoing.base, session.folded)
        earlier = without_unready(earlier, session.folded.catch_ups or (), ready)
        if ready:
            begun = {each.catch_up.topic: each.history for each in ready}
            base = replace(base, begun=begun, vouched=frozenset[str]().union(*(each.units for each in ready)))
            earlier = [*(result for each in ready for result in each.results), *earlier]
        if earlier or base is not prepared.base:
            prepared = self._planned(prepared.facts, base, prepared.generation, earlier)
        copied = self._copy(ongoing, prepared, earlier, engine)
        prepared, copied, passes = self._prove(session, ongoing, prepared, copied, engine)
        assembled, facts = copied.assembled, copied.facts
        refuse_damaged(self.place, assembled.segments, ready, engine)
        assembled = replace(assembled, gaps=gaps_in_cut(assembled.gaps, assembled.cut, prepared.base.begun))
        known = (*new_histories(prepared.broken), *prepared.recopy_notes, *map(undecided_past, prepared.undecided))
        known += tuple(prepared.generation_notes)
        assembled = replace(assembled, findings=tuple(dict.fromkeys((*assembled.findings, *known))))
        bury(session, ongoing.id, passes.buried())
        join_burials(session)
        switched = tuple(each.catch_up.token for each in ready)
        done = self._complete(session, ongoing, replace(prepared, facts=facts), assembled, passes, scram, switched)
        if passes.held_back():
            hold_before(session, prepared.base.entry)
        return replace(done, switched=frozenset(prepared.base.begun))

    def _prove(
        self, session: Writing, ongoing: OngoingBackup, prepared: PreparedBackup, copied: CopiedLogs, engine: Engine
    ) -> tuple[PreparedBackup, CopiedLogs, DeletionPasses]:
        """Compare or copy again what is not proven, and read what came since, at most three times.

        Not where a topic was deleted meanwhile: another cut would leave out what was copied of it, perhaps the only
        copy left. A comparison counts only with what came since.
        """
        judged = judge_logs(prepared.base.known, copied.facts, copied.assembled)
        accepted = self.options.accept_deletions
        passes = first_pass(judged, copied.facts, copied.assembled, accepted, self.suspected)
        mode, base = self.options.compacted, prepared.base
        compares = mode is not CompactedMode.INCREMENTAL
        burials = burials_by_log(session.folded, ongoing.id, [c.log for c in copied.assembled.cut])
        unreadable = unreadable_burials(self.place, session.folded, burials, passes.doubtful() if compares else ())
        for number in range(PASSES):
            before, doubtful = passes, passes.doubtful() if compares else ()
            recopied = copied_again(mode, doubtful, unreadable)
            if not copied.steady or not (doubtful or recopied):
                break
            compared = [log for log in doubtful if log.name not in recopied]
            if compared:
                there = ArchivedLogs(self.place, session.folded, ongoing.id, base.entry, copied.assembled)
                units = there.units(compared, copied.facts, SettingsBrokers(self.task.settings))
                passes = passes.compared(compare_logs(units, engine), last=number == PASSES - 1)
            facts = self._gather()
            if prepared.removed_topics(facts):
                return prepared, copied, before
            prepared = self._planned(facts, base, prepared.generation, copied.results, recopied)
            copied = self._copy(ongoing, prepared, copied.results, engine)
            passes = passes.extended(copied.facts, assemble(prepared.plan, copied.added))
            if recopied:
                break
        return prepared, copied, passes

    def _gather(self, folded: Folded | None = None) -> Facts:
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

    def _begin(self, session: Writing, facts: Facts) -> OngoingBackup:
        source = ensure_source(self.place, KIND, _identity(facts), self.task.clock())
        resumed = resume(session, source) if self.options.resume else None
        options = self.options
        return resumed or begin(session, source, wanted=options.wanted_id, tags=options.tags, group=options.group)

    def _read_base(self, entry: BackupEntry | None, folded: Folded) -> PreviousBackup:
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

    def _planned(
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
        doubted = [each for each in earlier if each.unit not in base.vouched]
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
        ended_histories = (*truncated_since(base.reached, now, base.begun), *broken)
        again = {log: recopied[log.topic] for log in ended if log.topic in recopied}
        return PreparedBackup(facts, base, plan, ended_histories, generation, judged.undecided, again)

    def _copy(
        self, ongoing: OngoingBackup, prepared: PreparedBackup, earlier: Sequence[CopyResult], engine: Engine
    ) -> CopiedLogs:
        """Copy, and copy once more each log that turned out not to be the planned one."""
        plan, facts = prepared.plan, prepared.facts
        added = self._copy_units(ongoing.id, ongoing.run, plan, engine)
        results = [*results_in_plan(plan, earlier), *added]
        refuse_failures(results)
        changed, undecided = self._changed(results, plan, prepared.base, facts)
        assembled = assemble(plan, results, {r.log for r in changed})
        assembled = replace(assembled, findings=(*assembled.findings, *map(undecided_past, undecided)))
        if not changed:
            return CopiedLogs(assembled, facts, tuple(results), tuple(added))
        again = self._gather()
        second = self._plan_again(again, changed, prepared.base.used)
        repeated = self._copy_units(ongoing.id, ongoing.run, second, engine)
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
        topics = self.cluster.metadata().topics
        refuse_unconfirmed_deletions(deleted_logs(results), topics)
        changed = [
            *changed_logs(results),
            *changed_meanwhile(results, base.reached, topics, self.continuity.epoch_ends),
        ]
        ended = {r.log for r in changed}
        others = self.continuity.went_back(gap_ends(results, plan.gaps, topics, ended))
        doubted = [each for each in results if each.unit not in base.vouched]
        wanted = compare_before_commit(doubted, base.reached, topics, ended | others, facts)
        judged = self.continuity.before_commit(
            wanted, ArchivedRows(self.place, base.entry, results), facts, base.record
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

    def _copy_units(
        self, backup: BackupId, run: str, plan: Plan, engine: Engine, catch_up: str = ""
    ) -> list[CopyResult]:
        settings, options = self.task.settings, self.options
        tasks = engine.at_once(len(plan.units))
        limits = FetchLimits(
            rack=settings.rack, client_id=settings.client_id, bytes_per_s=share(options.limit_download, tasks)
        )
        units = [
            CopyUnit(
                name=u.name,
                place=self.place,
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

    def _complete(
        self,
        session: Writing,
        ongoing: OngoingBackup,
        prepared: PreparedBackup,
        assembled: Assembled,
        passes: DeletionPasses,
        scram: SealedScram | None,
        switched: tuple[str, ...] = (),
    ) -> KafkaBackupDone:
        counts = buried_counts(session.folded, ongoing.id, {}, [c.log for c in assembled.cut])
        record, findings = self._record(ongoing.id, prepared.base, prepared.facts, assembled, passes, counts)
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
            captured=self.task.clock(),
            token=session.tokens(),
        )

    def _record(
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


def _identity(facts: Facts) -> dict[str, str]:
    return {"cluster_id": facts.metadata.cluster_id}


def _with_new(facts: Facts, again: Facts, changed: Sequence[RangeResult]) -> Facts:
    """The facts of the first round, with those of the second for the logs that were copied again."""
    names = {TopicPartition(r.log.name, r.log.partition) for r in changed}
    return replace(facts, log_ends=facts.log_ends.without(names).joined(again.log_ends.only(names)))
