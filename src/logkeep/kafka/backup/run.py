"""The steps of `kafka backup`.

Facts → last archived batches compared → plan → copy in tasks → copied batches compared → a second round for logs that
lost their end meanwhile → record, manifest → commit. A run connects to the cluster once and plans once; it plans again
only to resume an interrupted run, or when another run committed between the plan and the lease.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from logkeep.errors import LogkeepError
from logkeep.kafka.backup.assemble import assemble, earlier_results
from logkeep.kafka.backup.burial import ArchivedLogs, buried_counts, bury, compare_logs, hold_before, release_notes
from logkeep.kafka.backup.continuity.past_check import SeenLogs
from logkeep.kafka.backup.copy.log_copier import LogCopier
from logkeep.kafka.backup.deletion_passes import PASSES, CompactedMode, DeletionPasses, copied_again, first_pass
from logkeep.kafka.backup.deletion_proof import judge_logs
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.findings import undecided_past
from logkeep.kafka.backup.generations.plan import CaughtUp, GenerationRule, due_by_age, gaps_in_cut, without_unready
from logkeep.kafka.backup.generations.round import GenerationRound, oldest_logs, refuse_damaged
from logkeep.kafka.backup.plan import Plan
from logkeep.kafka.backup.planner import BackupPlanner, cluster_identity
from logkeep.kafka.backup.preparation import PreparedBackup, new_histories
from logkeep.kafka.backup.recorder import BackupRecorder
from logkeep.kafka.backup.units import CopyResult
from logkeep.kafka.backup.values import CopiedLogs, KafkaBackupDone, KafkaBackupOptions
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.logs.burials import join_burials, unreadable_burials
from logkeep.kafka.record.documents import KIND, ArchivedReach, reached_by, same_cluster
from logkeep.kafka.record.scram import collect_scram
from logkeep.model.findings import DELETION_DOUBTS, Finding
from logkeep.model.ids import BackupId
from logkeep.model.segments import Codec
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import Engine, EngineFor
from logkeep.repository.backups.backup import OngoingBackup, begin, resume
from logkeep.repository.backups.burials import burials_by_log
from logkeep.repository.backups.catch_ups import CatchUpReceipt
from logkeep.repository.backups.journal import open_ids
from logkeep.repository.backups.source import ensure_source
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.format import PACKED_RECORDS, ZSTD_FRAMES, require_feature
from logkeep.repository.chain.write_session import Writing, writing
from logkeep.repository.resume import usable_receipts


@dataclass(frozen=True)
class KafkaBackup:
    """Backups of one cluster into one source of a repository. Every call connects once, and closes what it opened."""

    place: SourceRef
    settings: ClientSettings
    clock: Clock
    tokens: TokenSource
    catch_up_receipts: dict[str, CatchUpReceipt] = field(default_factory=dict, compare=False)
    """Receipts of catch-ups that earlier rounds have read, by name."""

    def prepare(self, options: KafkaBackupOptions) -> PreparedBackup:
        """Plan a run. Writes nothing, and refuses whatever a run would refuse."""
        with Cluster(self.settings) as cluster:
            prepared = BackupPlanner(self.place, options, cluster).checked_plan()
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
            planner = BackupPlanner(self.place, options, cluster, expect=expect)
            run = _BackupRun(self, planner)
            prepared = planner.checked_plan()
            engine = engine_for(prepared.plan.size_bytes)
            with self._writing(options) as session:
                ongoing = run.cut_application(session, prepared.facts)
                if ongoing is not None or prepared.generation != session.folded.generation:
                    prepared = planner.plan(session.folded)
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
            planner = BackupPlanner(self.place, options, cluster, seen or {}, later or {})
            run = _BackupRun(self, planner, suspected or {})
            prepared = planner.plan(session.folded)
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
    planner: BackupPlanner
    suspected: Mapping[str, Finding] = field(default_factory=dict)

    @property
    def place(self) -> SourceRef:
        return self.task.place

    @property
    def options(self) -> KafkaBackupOptions:
        return self.planner.options

    @property
    def copier(self) -> LogCopier:
        return LogCopier(self.planner, self.task.settings)

    @property
    def recorder(self) -> BackupRecorder:
        return BackupRecorder(self.place, self.options, self.task.clock)

    def unchanged(self, session: Writing, prepared: PreparedBackup) -> KafkaBackupDone | None:
        """The last backup as a result, if it still describes the cluster."""
        facts, base, plan = prepared.facts, prepared.base, prepared.plan
        if base.entry is None or prepared.broken or not plan.empty or open_ids(self.place, session.folded.last_id):
            return None
        if any(tip.last_batch is not None for tip in base.tips.values()):
            return None  # an older release did not record these batches: the next record does, so they are read once
        nothing = assemble(plan, ())
        passes = first_pass(judge_logs(base.known, facts, nothing), facts, nothing)
        counts = buried_counts(session.folded, base.entry.id, [c.log for c in nothing.cut])
        record, found = self.recorder.record(base.entry.id, base, facts, nothing, passes, counts)
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

        def copy(plan: Plan, token: str, engine: Engine) -> list[CopyResult]:
            return self.copier.copy_units(BackupId(done.entry.id), session.run, plan, engine, token)

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
        scram = collect_scram(self.options.scram, self.planner.cluster) if self.options.scram is not None else None
        require_feature(self.place.store, PACKED_RECORDS)  # before the first receipt, which has new fields too
        ongoing = started or self._begin(session, prepared.facts)
        if self.options.compression is Codec.ZSTD:
            require_feature(self.place.store, ZSTD_FRAMES)
        earlier = self.planner.continuity.copied(earlier_results(usable_receipts(session, ongoing, engine).values()))
        base = prepared.base
        if ongoing.base != base.entry:
            # A resumed run continues the backup that it began from.
            base = self.planner.read_base(ongoing.base, session.folded)
        earlier = without_unready(earlier, session.folded.catch_ups or (), ready)
        if ready:
            begun = {each.catch_up.topic: each.history for each in ready}
            base = replace(base, begun=begun, compared_units=frozenset[str]().union(*(each.units for each in ready)))
            earlier = [*(result for each in ready for result in each.results), *earlier]
        if earlier or base is not prepared.base:
            prepared = self.planner.plan_from(prepared.facts, base, prepared.generation, earlier)
        copied = self.copier.copy(ongoing, prepared, earlier, engine)
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
        done = self.recorder.complete(
            session, ongoing, replace(prepared, facts=facts), assembled, passes, scram, switched
        )
        if passes.held_back():
            hold_before(session, prepared.base.entry)
        elif self.options.accept_deletions:
            done = replace(done, findings=(*done.findings, *release_notes(session.folded)))
        return replace(done, switched=frozenset(prepared.base.begun))

    def _prove(
        self, session: Writing, ongoing: OngoingBackup, prepared: PreparedBackup, copied: CopiedLogs, engine: Engine
    ) -> tuple[PreparedBackup, CopiedLogs, DeletionPasses]:
        """Compare or copy again what is not proven, and read what came since, at most three times.

        If a topic was deleted meanwhile, this is left out: another cut would leave out what was copied of the topic,
        which may be the only copy left. A comparison counts only together with what was written since.
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
            facts = self.planner.gather_facts()
            if prepared.removed_topics(facts):
                return prepared, copied, before
            prepared = self.planner.plan_from(facts, base, prepared.generation, copied.results, recopied)
            copied = self.copier.copy(ongoing, prepared, copied.results, engine)
            passes = passes.extended(copied.facts, assemble(prepared.plan, copied.added))
            if recopied:
                break
        return prepared, copied, passes

    def _begin(self, session: Writing, facts: Facts) -> OngoingBackup:
        source = ensure_source(self.place, KIND, cluster_identity(facts), self.task.clock())
        resumed = resume(session, source) if self.options.resume else None
        options = self.options
        return resumed or begin(session, source, wanted=options.wanted_id, tags=options.tags, group=options.group)
