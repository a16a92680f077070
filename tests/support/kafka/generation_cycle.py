"""A compacted topic made by hand, and runs that back it up with its generations: the steps of `kafka backup` after the
facts, without a broker."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count

from logkeep.engine.inline import InlineEngine
from logkeep.formats.kafka.batches import walk
from logkeep.kafka.backup.assemble import assemble, done_ranges, earlier_results
from logkeep.kafka.backup.continuity.history_check import archive_progress
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.generations.plan import CaughtUp, GenerationRule, Reached, new_catch_up, without_unready
from logkeep.kafka.backup.generations.round import GenerationRound, commit_generations, refuse_damaged
from logkeep.kafka.backup.plan import Plan, plan_backup
from logkeep.kafka.backup.units import CopyOutcome, CopyRange, CopyResult, CopyUnit, RangeResult, put_copied
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.logs.leader_epochs import EpochRun
from logkeep.kafka.record.documents import ArchivedReach
from logkeep.kafka.record.history_names import history_number
from logkeep.model.segments import LogName
from logkeep.model.time import Clock, random_token, utc_now
from logkeep.model.work import Engine
from logkeep.repository.access import create_repository
from logkeep.repository.backups.backup import FinishedRun, begin, resume
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.source import ensure_source, read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import GenerationsAction
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.chain.format import GENERATIONS, StoreFacts, open_format
from logkeep.repository.chain.write_session import Writing, writing
from logkeep.repository.resume import usable_receipts
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from logkeep.repository.upkeep.garbage import GarbageRules, collect
from logkeep.store.base import Store
from tests.support.kafka.cluster_values import bounds, facts, topic
from tests.support.kafka.handmade_batches import dense
from tests.support.kafka.many_small_backups import IDENTITY, read_back

PARTITIONS = 2
CLEANED = 20
"""The cleaner removes every second batch below this offset, after the first backup."""
TOPIC = topic("accounts", leaders=(1,) * PARTITIONS)
SHARE = GenerationRule(share_bytes=700)
"""Less than one partition has at first, so that a catch-up takes several rounds."""
AT_ONCE = GarbageRules(age=timedelta(0), interval=timedelta(0))
ROUNDS = 5


def batches(partition: int, start: int, end: int, *, cleaned: bool) -> list[bytes]:
    return [
        dense(base, 2, epoch=partition).encode()
        for base in range(start, end, 2)
        if not (cleaned and base < CLEANED and base // 2 % 2)
    ]


def facts_at(end: int) -> Facts:
    """Every partition ends there, and has about 100 bytes for each offset that is not copied."""
    logs = [TopicPartition(TOPIC.name, p) for p in range(PARTITIONS)]
    return replace(facts((TOPIC,), {log: bounds(0, end) for log in logs}, {}), sizes=dict.fromkeys(logs, 100 * end))


@dataclass
class Cycle:
    """One repository with one source, a clock that moves on, and the topic as it is now."""

    store: Store
    now: datetime = datetime(2026, 11, 15, tzinfo=UTC)
    clock: Clock | None = None
    end: int = CLEANED
    cleaned: bool = False
    numbers: count = field(default_factory=lambda: count(1))  # type: ignore[type-arg]
    place: SourceRef = None  # type: ignore[assignment]  # set below
    random: bool = False
    """Whether its tokens are: other processes work on the repository too."""

    def __post_init__(self) -> None:
        if self.place is None:
            made = create_repository(self.store, StoreFacts(True, True, False), self.time(), self.token)
            self.place = made.place("prod")

    def time(self) -> datetime:
        """The real one, or the one of the test."""
        return self.clock() if self.clock is not None else self.now

    def token(self) -> str:
        return random_token() if self.random else f"{next(self.numbers):016x}"

    def on(self, store: Store) -> SourceRef:
        return SourceRef(store, self.place.repository, "prod")

    def begin_new(self, place: SourceRef | None = None) -> None:
        with self.session(place) as session:
            if not session.folded.catch_ups:
                logs = [c.log for c in read_manifest(session.place, session.folded.completed[-1]).cut]
                new = new_catch_up(session.folded, TOPIC.name, logs, self.token(), "asked for")
                commit_generations(session, GenerationsAction(begun=(new,)))

    def session(self, place: SourceRef | None = None):  # type: ignore[no-untyped-def]
        return writing(place or self.place, "backup", self.time, self.token)

    def back_up(self, place: SourceRef | None = None, rule: GenerationRule = SHARE) -> BackupEntry:
        """One run, as `kafka backup --follow` does it: it resumes what was interrupted."""
        self.now += timedelta(minutes=7)
        found, engine = facts_at(self.end), InlineEngine()
        with self.session(place) as session:
            base = session.folded.completed[-1] if session.folded.completed else None
            reached = _reached(session.place, base)
            here = GenerationRound(session, rule)
            ready = here.begin(found, reached, ())
            entry, after, plan = self._carry_out(session, found, reached, ready, engine)
            here.share(found, after, plan, self._share(session), lambda _: engine)
            return entry

    def _carry_out(
        self, session: Writing, found: Facts, reached: Reached, ready: Sequence[CaughtUp], engine: Engine
    ) -> tuple[BackupEntry, Reached, Plan]:
        source = ensure_source(session.place, "kafka", IDENTITY, self.time())
        ongoing = resume(session, source) or begin(session, source)
        own = earlier_results(usable_receipts(session, ongoing, engine).values())
        own = without_unready(own, session.folded.catch_ups or (), ready)
        earlier = [*(result for each in ready for result in each.results), *own]
        begun = {each.catch_up.topic: each.history for each in ready}
        now = archive_progress(found.topics, found.bounds, reached, earlier, begun)
        plan = plan_backup(found.topics, found.bounds, found.sizes, now.reached, done_ranges(earlier), now.furthest)
        added = self.copy(session, plan, ongoing.id)
        whole = assemble(plan, [*earlier, *added])
        refuse_damaged(session.place, whole.segments, ready, engine)
        switched = tuple(each.catch_up.token for each in ready)
        entry = ongoing.complete(FinishedRun(cut=whole.cut, new=whole.segments, gaps=whole.gaps, switched=switched))
        return entry, _reached(session.place, entry), plan

    def _share(self, session: Writing) -> Callable[[Plan, str, Engine], list[CopyResult]]:
        return lambda plan, token, _: self.copy(session, plan, 1, token)

    def copy(self, session: Writing, plan: Plan, backup: int, catch_up: str = "") -> list[CopyResult]:
        """What the copy task does, from the topic as it is now."""
        done = []
        for unit in plan.units:
            copied = [self._copied(session.place, each) for each in unit.ranges]
            result = CopyResult(
                unit=unit.name,
                ranges=tuple(one for one, _ in copied),
                segments=tuple(s for _, writer in copied for s in writer.segments),
            )
            made = CopyUnit(
                unit.name, session.place, backup, session.run, 1, unit.ranges,
                SettingsBrokers(ClientSettings(())), catch_up=catch_up,
            )  # fmt: skip
            put_copied(made, result, self.token())
            done.append(result)
        return done

    def _copied(self, place: SourceRef, wanted: CopyRange) -> tuple[RangeResult, SegmentWriter]:
        data = b"".join(batches(wanted.partition, wanted.lo, wanted.hi, cleaned=self.cleaned))
        writer = SegmentWriter(place, wanted.log, wanted.lo, SegmentLimits(1 << 20), 0, self.token)
        writer.write(memoryview(data), walk(data).batches)
        writer.finish(wanted.hi)
        epochs = (EpochRun(wanted.partition, wanted.lo, wanted.hi),)
        return RangeResult(
            log=wanted.log, lo=wanted.lo, hi=wanted.hi, outcome=CopyOutcome.COPIED, reached=wanted.hi, epochs=epochs
        ), writer

    def prune_to(self, last: int, place: SourceRef | None = None) -> None:
        """Keep the newest backups, and collect everything that no kept one needs, at once."""
        from logkeep.repository.upkeep.prune import delete  # noqa: PLC0415 - only here

        with self.session(place) as session:
            gone = [e.id for e in session.folded.completed][:-last]
            if gone:
                delete(session, gone, "policy")
            collect(session, AT_ONCE)

    def expected(self, entry: BackupEntry) -> dict[int, list[bytes]]:
        """By the generation of each log: an old one was copied before the cleaner, a new one after."""
        cut = read_manifest(self.place, entry).cut
        return {
            c.log.partition: batches(c.log.partition, 0, c.end, cleaned=history_number(c.log.history) > 0) for c in cut
        }

    def check(self) -> None:
        """Every kept backup reads back, in one generation for all partitions."""
        reader = PartReader(self.place)
        for entry in read_chain(self.place).completed:
            numbers = {history_number(c.log.history) for c in read_manifest(self.place, entry).cut}
            assert len(numbers) == 1, f"backup {entry.id} mixes generations"
            found = read_back(self.place, entry.id, reader)
            assert found == self.expected(entry), f"backup {entry.id} does not read back"

    def objects(self) -> set[str]:
        return {i.name for i in self.place.store.list("sources/prod/topics/") if i.name.endswith(".log")}

    def needed(self) -> set[str]:
        folded, names = read_chain(self.place), set[str]()
        for entry in folded.completed:
            manifest = read_manifest(self.place, entry)
            rows = rows_of(PartReader(self.place), manifest, served_parts(manifest, folded)).to_segments()
            names |= {layout.segment("prod", s) for s in rows if s.has_object}
        return names

    def active_number(self) -> int:
        entry = read_chain(self.place).completed[-1]
        return max(history_number(c.log.history) for c in read_manifest(self.place, entry).cut)


def archived(made: Cycle) -> Cycle:
    """One backup, and a cleaner that has worked since."""
    made.back_up()
    made.cleaned = True
    return made


def continued(place: SourceRef) -> Cycle:
    """The same in another process, by the real clock."""
    return Cycle(place.store, clock=utc_now, cleaned=True, place=place, random=True)


def renew(made: Cycle, store: Store) -> None:
    """A whole cycle: begin, catch up beside the active generation, switch, go on; old backups are deleted meanwhile."""
    place = made.on(store)
    made.begin_new(place)
    for number in range(ROUNDS):
        made.end += 2
        made.back_up(place)
        if number in (1, ROUNDS - 1):
            made.prune_to(2, place)


def bring_to_its_end(made: Cycle) -> None:
    """As the next runs do: kept backups are whole, the new generation becomes active, and nothing is left over."""
    made.now += timedelta(hours=1)
    made.check()
    if not made.active_number():
        made.begin_new()
    for _ in range(ROUNDS + 2):
        made.end += 2
        made.back_up()
        if not read_chain(made.place).catch_ups:
            break
    assert made.active_number() >= 1, "the catch-up never became active"
    made.check()
    made.now += timedelta(hours=1)
    made.prune_to(1)
    made.check()
    folded = read_chain(made.place)
    assert not folded.catch_ups
    assert made.objects() == made.needed(), "garbage is left, or less than needed"
    assert GENERATIONS in open_format(made.store).document.required_features


def _reached(place: SourceRef, entry: BackupEntry | None) -> dict[TopicPartition, ArchivedReach]:
    cut = read_manifest(place, entry).cut if entry is not None else ()
    return {_partition(c.log): ArchivedReach(c.log.history, c.end, c.log.partition, c.end, c.start) for c in cut}


def _partition(log: LogName) -> TopicPartition:
    return TopicPartition(log.name, log.partition)
