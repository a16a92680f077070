"""A model of one log with several pasts, backed up by the product's own deciding code, ranges, writers and claims.

The broker is a value: batches, log start, end, leader epochs. It is restarted, rolled back to any earlier state,
compacted and cut by retention at any moment, also between two reads of one backup. Each batch knows the write that made
it, and each state which writes its past ever had: a backup must hold writes of one past only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from logkeep.formats.kafka.plain_records import bodies_of
from logkeep.kafka.admin.offsets import EpochEnd, LogBounds
from logkeep.kafka.backup.assemble import (
    Assembled,
    assemble,
    changed_logs,
    done_ranges,
    join_rounds,
    results_in_plan,
)
from logkeep.kafka.backup.continuity.archived_batch import by_log, header_of, read_batch
from logkeep.kafka.backup.continuity.history_check import (
    BrokenLog,
    archive_progress,
    broken_logs,
    changed_meanwhile,
    of_another_past,
)
from logkeep.kafka.backup.continuity.past_check import (
    ArchivedBatch,
    JudgedPasts,
    LeaderBatch,
    PastVerdict,
    ToCompare,
    compare_before_commit,
    compare_before_plan,
    compare_bodies,
    compare_headers,
    gap_ends,
)
from logkeep.kafka.backup.copy.range_state import RangeCopy
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.plan import Plan, next_history, plan_backup
from logkeep.kafka.backup.record_builder import logs_of
from logkeep.kafka.backup.units import CopyOutcome, CopyRange, CopyResult
from logkeep.kafka.client.fetch import Code, DivergingEpoch, FetchedPartition
from logkeep.kafka.client.topology import Partition, Topic, TopicPartition
from logkeep.kafka.logs.lost_offset import Cause, LogFacts, OffsetVerdict, explain
from logkeep.kafka.record.documents import ArchivedReach
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.cut_coverage import inherited_gaps
from logkeep.repository.backups.manifest import KnownGap
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from logkeep.store.memory import MemoryStore
from tests.support.kafka.cluster_values import facts
from tests.support.kafka.copied_logs import archived
from tests.support.kafka.slow_records import Slow, batch_of

TOPIC = UUID(int=7)
LOG = TopicPartition("orders", 0)
WIDTH = 700
"""Offsets per record: wide enough that a range of a few batches is cut into units."""
UNIT_BYTES = 1 << 30


@dataclass(frozen=True)
class Write:
    """One batch as the broker has it; `left` are the numbers of its records that compaction has left."""

    uid: int
    base: int
    records: int
    epoch: int
    producer: int
    left: tuple[int, ...]

    @property
    def last(self) -> int:
        return self.base + self.records * WIDTH - 1

    @property
    def data(self) -> bytes:
        kept = [Slow(n * WIDTH, n, b"k%d" % n, b"write %d" % self.uid) for n in self.left]
        made = batch_of(self.base, kept, delta=self.last - self.base, base_time_ms=1000, producer=self.producer)
        return made[:12] + self.epoch.to_bytes(4, "big") + made[16:]  # no CRC covers the leader epoch


@dataclass(frozen=True)
class Broker:
    """One state of the log. `past` has every write that ever was in it, also those that are gone."""

    writes: tuple[Write, ...] = ()
    start: int = 0
    end: int = 0
    borders: tuple[tuple[int, int], ...] = ((0, 0),)
    """Leader epochs and their first offsets."""
    past: frozenset[int] = frozenset()
    cleaned: frozenset[int] = frozenset()
    """Writes that compaction has removed."""

    @property
    def epoch(self) -> int:
        return self.borders[-1][0]

    def restarted(self) -> "Broker":
        return replace(self, borders=(*self.borders, (self.epoch + 1, self.end)))

    def written(self, uid: int, records: int, producer: int) -> "Broker":
        made = Write(uid, self.end, records, self.epoch, producer, tuple(range(records)))
        return replace(self, writes=(*self.writes, made), end=made.last + 1, past=self.past | {uid})

    def without_tail(self, count: int) -> "Broker":
        """The last writes were not on the disk yet."""
        gone = self.writes[len(self.writes) - count :]
        end = gone[0].base if gone else self.end
        borders = tuple(b for b in self.borders if b[1] <= end) or ((0, 0),)
        past = self.past - {w.uid for w in gone}
        return replace(self, writes=self.writes[: len(self.writes) - count], end=end, borders=borders, past=past)

    def retained(self, start: int) -> "Broker":
        start = min(max(start, self.start), self.end)
        return replace(self, start=start, writes=tuple(w for w in self.writes if w.last >= start))

    def compacted(self, keeps: Callable[[Write], tuple[int, ...] | None]) -> "Broker":
        """`keeps` says which records of a write stay; None: the batch goes. The last batch is never cleaned."""
        found = [(w, keeps(w)) for w in self.writes[:-1]]
        kept = tuple(replace(w, left=left) for w, left in found if left is not None)
        gone = {w.uid for w, left in found if left is None}
        return replace(self, writes=(*kept, *self.writes[-1:]), cleaned=self.cleaned | gone)

    def epoch_end(self, epoch: int) -> EpochEnd:
        known = [e for e, _ in self.borders if e <= epoch]
        if not known or epoch > self.epoch:
            return EpochEnd(-1, -1)
        later = [offset for e, offset in self.borders if e > max(known)]
        return EpochEnd(max(known), later[0] if later else self.end)

    def at(self, offset: int) -> Write | None:
        return next((w for w in self.writes if w.last >= offset), None)

    def fetch(self, offset: int) -> FetchedPartition | None:
        if not self.start <= offset <= self.end:
            return None
        data = b"".join(w.data for w in [w for w in self.writes if w.last >= offset][:2])
        return FetchedPartition(TOPIC, 0, Code.NONE, self.end, self.end, self.start, None, -1, -1, memoryview(data))


@dataclass(frozen=True)
class ModelBackup:
    log: LogName
    start: int
    end: int
    rows: tuple[Segment, ...]
    gaps: tuple[KnownGap, ...]
    reach: ArchivedReach
    judged: JudgedPasts
    broker: Broker
    """At the commit."""


Disturb = Callable[[], None]


@dataclass
class ModelArchive:
    """Backups of the model; without `compares`, as they were before pasts were compared."""

    broker: Broker = field(default_factory=Broker)
    is_compacted: bool = False
    compares: bool = True
    place: SourceRef = field(default_factory=lambda: SourceRef(MemoryStore(), "r", "prod"))
    backups: list[ModelBackup] = field(default_factory=list)
    receipts: list[CopyResult] = field(default_factory=list)
    _tokens: int = 0

    def back_up(self, disturb: Disturb, dies_after: int | None = None) -> ModelBackup | None:
        """One run, resumed if the one before died. `disturb` is called between any two of its steps."""
        base = self.backups[-1] if self.backups else None
        reached = {LOG: base.reach} if base else {}
        earlier = list(self.receipts)
        topics, bounds, undecided = self._topics(), self._bounds(), JudgedPasts()
        now = archive_progress(topics, bounds, reached, earlier)
        broken = broken_logs(topics, bounds, now.furthest, self._ask)
        disturb()
        kept = {log: reach for log, reach in now.reached.items() if log not in {b.log for b in broken}}
        gaps = base.gaps if base and self.compares else ()
        to_compare = compare_before_plan(topics, bounds, kept, reached, earlier, gaps=gaps)
        undecided = self._judged(to_compare, base, earlier)
        broken += [BrokenLog(LOG, Cause.OTHER_PAST, log.history) for log in undecided.others]
        anew = {b.log: ArchivedReach(next_history(LOG.topic, b.history, {}), bounds[LOG].start, -1) for b in broken}
        sizes = {LOG: 3 * UNIT_BYTES}
        known, furthest = {**now.reached, **anew}, {**now.furthest, **anew}
        moved = undecided.bounds_after(bounds)
        plan = plan_backup(topics, moved, sizes, known, done_ranges(earlier), furthest, unit_bytes=UNIT_BYTES)
        results = results_in_plan(plan, earlier)
        for number, wanted in enumerate(r for unit in plan.units for r in unit.ranges):
            disturb()
            results.append(self._copy(wanted))
            if number + 1 == dies_after:
                self.receipts = [*earlier, *(r for r in results if r.complete)]
                return None
        disturb()
        return self._commit(plan, results, base, facts(tuple(topics), bounds, {}), undecided)

    def _commit(
        self,
        plan: Plan,
        results: list[CopyResult],
        base: ModelBackup | None,
        planned: Facts,
        before: JudgedPasts,
    ) -> ModelBackup:
        reached, bounds = {LOG: base.reach} if base else {}, dict(planned.bounds)
        topics = self._topics()
        changed = [*changed_logs(results), *changed_meanwhile(results, reached, topics, self._ask)]
        ended = {r.log for r in changed}
        found = gap_ends(results, plan.gaps, topics, ended)
        back = {log for log, end in found.items() if self.broker.start < end} if self.compares else set()
        wanted = compare_before_commit(results, reached, topics, ended | back, planned)
        judged = self._judged(wanted, base, results)
        changed += of_another_past(results, back.union(judged.others))
        assembled = assemble(plan, results, {r.log for r in changed})
        if changed:
            bounds, results = self._bounds(), []
            anew = {LOG: ArchivedReach(next_history(LOG.topic, changed[0].log.history, {}), bounds[LOG].start, -1)}
            second = plan_backup(topics, bounds, {LOG: 3 * UNIT_BYTES}, anew, unit_bytes=UNIT_BYTES)
            results = [self._copy(wanted) for unit in second.units for wanted in unit.ranges]
            assembled = join_rounds(assembled, assemble(second, results))
        undecided = {*before.undecided, *judged.undecided}
        made = self._backup(assembled, base, bounds, tuple(sorted(undecided)))
        self.backups.append(made)
        self.receipts = []
        return made

    def _backup(
        self,
        assembled: Assembled,
        base: ModelBackup | None,
        bounds: dict[TopicPartition, LogBounds],
        undecided: tuple[LogName, ...],
    ) -> ModelBackup:
        (cut,) = assembled.cut
        before = {LOG: base.reach} if base else {}
        (record,) = logs_of(before, facts(tuple(self._topics()), bounds, {}), assembled, {})
        inherited = [r for r in (base.rows if base else ()) if r.log == cut.log and r.end > cut.start]
        reach = ArchivedReach(
            record.history, record.end, record.last_epoch, record.last_end, record.start, None, record.last_batch
        )
        rows = by_log([*inherited, *assembled.segments]).get(cut.log, [])
        judged = JudgedPasts((), tuple(log for log in undecided if log == cut.log))
        claims = {cut.log: [Range(row.start, row.end) for row in rows]}
        older = inherited_gaps(base.gaps if base else (), [cut], assembled.gaps, claims)
        gaps = (*assembled.gaps, *older)
        return ModelBackup(cut.log, cut.start, cut.end, tuple(rows), gaps, reach, judged, self.broker)

    def seen(self, backup: ModelBackup) -> list[tuple[int, int, set[int]]]:
        """What a reader of a backup sees: base and last offset of each batch, and the writes that its records name."""
        found = []
        for batch in archived(self.place, backup.rows):
            header = header_of(batch)
            if header.last_offset >= backup.start and header.base_offset < backup.end:
                values = [body.content for body in bodies_of(batch).values()]
                found.append((header.base_offset, header.last_offset, {_uid(content) for content in values}))
        return found

    def _judged(self, wanted: ToCompare, base: ModelBackup | None, copied: Sequence[CopyResult]) -> JudgedPasts:
        if not self.compares:
            return JudgedPasts()
        rows = by_log([*(base.rows if base else ()), *(s for r in copied for s in r.segments)])
        return wanted.judged((each, self._verdict(each, rows.get(each.log, []))) for each in wanted.batches)

    def _verdict(self, each: ArchivedBatch, rows: Sequence[Segment]) -> PastVerdict:
        there = self.broker.at(each.batch.last_offset)
        batch = header_of(there.data) if there is not None else None
        at_leader = LeaderBatch(self.broker.start, self.broker.end, batch)
        verdict = compare_headers(each.batch, at_leader, compacted=self.is_compacted)
        if verdict is not PastVerdict.BY_RECORDS or there is None:
            return verdict
        mine = read_batch(self.place, rows, each.batch.base_offset)
        return compare_bodies(None if mine is None else bodies_of(mine), bodies_of(there.data))

    def _topics(self) -> list[Topic]:
        return [Topic(LOG.topic, TOPIC, False, (Partition(0, 1, self.broker.epoch, (1,)),))]

    def _bounds(self) -> dict[TopicPartition, LogBounds]:
        broker = self.broker
        return {LOG: LogBounds(broker.start, broker.end, broker.end, broker.epoch)}

    def _ask(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, EpochEnd]:
        return {log: self.broker.epoch_end(epoch) for log, epoch in wanted.items()}

    def _token(self) -> str:
        self._tokens += 1
        return f"{self._tokens:016x}"

    def _copy(self, wanted: CopyRange) -> CopyResult:
        copy = RangeCopy(wanted, 1)
        writer = SegmentWriter(self.place, wanted.log, wanted.lo, SegmentLimits(200), 0, self._token)
        while copy.outcome is None:
            fetched = self.broker.fetch(copy.offset)
            if fetched is None or (not len(fetched.records) and self.broker.end < wanted.hi):
                copy.judge(self._explained(copy, ended=fetched is not None))
                continue
            taken = copy.take(fetched)
            if taken.skip:
                writer.skip(taken.skip.start, taken.skip.end)
            writer.write(fetched.records, taken.batches)
            if not len(fetched.records):
                copy.end(CopyOutcome.COPIED)
        writer.finish(copy.claimed_to())
        return CopyResult(unit=self._token(), ranges=(copy.result(),), segments=tuple(writer.segments))

    def _explained(self, copy: RangeCopy, *, ended: bool) -> OffsetVerdict:
        if ended:
            return OffsetVerdict(Cause.TRUNCATED, common_end=self.broker.end)
        answer = self.broker.epoch_end(copy.position.last_epoch) if copy.position.last_epoch >= 0 else None
        known = DivergingEpoch(answer.leader_epoch, answer.end_offset) if answer else None
        return explain(copy.position, LogFacts(TOPIC, self.broker.start, self.broker.end, known))


def _uid(content: bytes) -> int:
    """The write that a record names: its value ends with the number, and no headers follow."""
    return int(content.rpartition(b"write ")[2][:-1])
