"""A repository against a dictionary: any order of backup, delete, prune, trim, hold, crash, other runs and collection.

The model is a dict from id to the content a backup must give back. After every step the repository has exactly the
backups of the model; those that a step may have touched and one more, in turn, read back, and at the end all of them
do, after everything that nobody needs was swept.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from logkeep.engine.inline import InlineEngine
from logkeep.errors import LeaseLost, LogkeepError, UsageError
from logkeep.formats.kafka.buried_offsets import BuriedOffsets, decode_runs, encode_runs
from logkeep.kafka.logs.burials import join_burials
from logkeep.model.ids import BackupId
from logkeep.repository.access import create_repository
from logkeep.repository.backups.backup import FinishedRun, begin
from logkeep.repository.backups.burials import put_burial, read_burial
from logkeep.repository.backups.catch_ups import (
    CatchUpReceipt,
    CatchUpStep,
    catch_up_receipts,
    put_catch_up_receipt,
)
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.holds import reader_holds, reading
from logkeep.repository.backups.journal import open_ids
from logkeep.repository.backups.manifest import LogCut
from logkeep.repository.backups.source import ensure_source, read_manifest
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import (
    BegunCatchUp,
    BuriedLog,
    BuryAction,
    EndedCatchUp,
    GenerationsAction,
    HoldAction,
    ReleaseAction,
)
from logkeep.repository.chain.commits import SourceRef, checkpoints, read_chain, read_whole_chain
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.lease import DEFAULT_TTL
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import Writing, pin, writing
from logkeep.repository.parts import objects
from logkeep.repository.upkeep.garbage import GarbageRules, collect
from logkeep.repository.upkeep.prune import PruneSituation, delete, plan_delete, plan_prune
from logkeep.repository.upkeep.repair import repair
from logkeep.repository.upkeep.retention import Policy
from logkeep.repository.upkeep.trim import commit_trim, measure_trim
from logkeep.repository.verify.run import Verifier
from logkeep.store.memory import MemoryStore
from tests.support.faults.plan import Fault, Plan
from tests.support.faults.store import FaultyStore
from tests.support.scripted.backup import back_up, expected, log_of, restored, write_segment
from tests.support.scripted.merge import merge_neighbours


class Crash(BaseException):
    """The end of a process, as far as one process can play it: nothing catches it on the way out."""


class DiesAt:
    """Raises `Crash` at a store call and at every later one: a dead process makes no more calls."""

    def __init__(self, call: int) -> None:
        self._call = call

    def __call__(self, number: int, operation: str, name: str) -> Fault | None:
        if number >= self._call:
            raise Crash
        return None


class StopsAfterCopy(InlineEngine):
    """Copies everything and then fails: receipts are there, a commit is not."""

    def map(self, task, units, result, *, label, weight):  # type: ignore[no-untyped-def]  # same as the parent's
        results = super().map(task, units, result, label=label, weight=weight)
        if label == "copy":
            raise Crash
        return results


@dataclass(frozen=True)
class Reader:
    """Somebody who restores slowly: it goes by the chain as it was when it began."""

    hold: AbstractContextManager[BackupEntry]
    folded: Folded
    id: int
    ends: dict[int, int]
    begins: dict[int, int]


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = datetime(2026, 11, 15, tzinfo=UTC)
        self.tokens = count(1)
        self.store = MemoryStore(lambda: self.now)
        self.place = SourceRef(self.store, "", "prod")
        self.model: dict[int, dict[int, int]] = {}
        self.held: set[int] = set()
        self.begins: dict[int, dict[int, int]] = {}
        self.ends = {0: 0, 1: 0}
        self.starts = {0: 0, 1: 0}
        self.sleeper: tuple[Callable[[], object], int] | None = None
        self.readers: list[Reader] = []
        self.buried: list[tuple[int, int, set[int]]] = []
        self.changed: set[int] = set()
        self.steps = count()

    def token(self) -> str:
        return f"{next(self.tokens):016x}"

    def clock(self) -> datetime:
        return self.now

    @initialize()
    def create(self) -> None:
        repository = create_repository(self.store, StoreFacts(True, True, False), self.now, self.token)
        self.place = repository.place("prod")
        self.back_up(3, 2)

    def run(self, plan: Plan | None = None, *, resumed: bool = False) -> int:
        store = FaultyStore(self.store, plan) if plan else self.store
        place = SourceRef(store, self.place.repository, "prod")
        engine = InlineEngine()
        entry = back_up(place, self.ends, engine, self.clock, self.token, resumed=resumed, starts=self.starts)
        return entry.id

    @rule(more0=st.integers(0, 6), more1=st.integers(0, 6))
    def back_up(self, more0: int, more1: int) -> None:
        self.now += timedelta(minutes=7)
        self.ends = {0: self.ends[0] + more0, 1: self.ends[1] + more1}
        self.complete(self.run())

    def complete(self, backup_id: int) -> None:
        self.model[backup_id], self.begins[backup_id] = dict(self.ends), dict(self.starts)
        self.changed.add(backup_id)

    @rule(more=st.integers(1, 9), at=st.integers(1, 60))
    def crash_in_a_backup(self, more: int, at: int) -> None:
        """The process dies at some call. What it had acknowledged stands; its lease is taken over after its time."""
        self.now += timedelta(minutes=7)
        self.ends = {**self.ends, 0: self.ends[0] + more}
        try:
            self.complete(self.run(DiesAt(at)))
        except Crash:
            self.now += timedelta(hours=1)
            for entry in read_chain(self.place).completed:
                if entry.id not in self.model:
                    self.complete(entry.id)

    @rule(resumed=st.booleans())
    def go_on_after_a_crash(self, resumed: bool) -> None:
        self.now += timedelta(minutes=7)
        self.complete(self.run(resumed=resumed))

    @rule()
    def idle_backup(self) -> None:
        self.now += timedelta(minutes=7)
        self.complete(self.run())
        before = self.data()
        self.now += timedelta(minutes=7)
        self.complete(self.run())
        assert self.data() == before, "a backup of nothing new wrote data"

    @rule(more=st.integers(1, 9))
    def a_failed_backup_is_adopted(self, more: int) -> None:
        """What a failed run has copied is not copied again by the next one."""
        self.now += timedelta(minutes=7)
        self.ends = {**self.ends, 1: self.ends[1] + more}
        with suppress(Crash):
            back_up(self.place, self.ends, StopsAfterCopy(), self.clock, self.token, starts=self.starts)
        before = self.data()
        self.complete(self.run())
        assert self.data() == before, "the next run did not adopt what was there"

    @rule(choice=st.integers(0, 50))
    def merge_two_segments(self, choice: int) -> None:
        """Old manifests are served by the merged object; whoever needs the old ones is in the model or is a reader."""
        with self.writing("merge") as session:
            merge_neighbours(session, choice)
        self.changed.update(self.model)

    @rule(partition=st.integers(0, 1), offsets=st.sets(st.integers(0, 30), min_size=1))
    def offsets_are_buried(self, partition: int, offsets: set[int]) -> None:
        """In an interrupted backup or the next one, and in all later ones unless it fails; earlier ones keep them."""
        with self.writing("backup") as session:
            last = session.folded.last_id
            first = (*open_ids(self.place, last), last + 1)[0]
            runs = encode_runs(BuriedOffsets.of(np.array(sorted(offsets), np.int64)))
            ref = put_burial(session.place, runs, self.token())
            session.commit(BuryAction(first, (BuriedLog(log_of(partition), ref, len(offsets)),), "scripted"))
        self.buried.append((first, partition, offsets))

    @rule()
    def burials_are_joined(self) -> None:
        """Whatever is joined, every kept backup leaves out the same offsets; their number is compared too."""
        with self.writing("backup") as session:
            before = {each.id: self.buried_in(session.folded, each.id) for each in session.folded.completed}
            join_burials(session, many=1)
            assert {each.id: self.buried_in(session.folded, each.id) for each in session.folded.completed} == before

    def buried_in(self, folded: Folded, backup_id: int) -> dict[int, tuple[int, set[int]]]:
        """By partition, how many offsets are buried in a backup, and which."""
        found = dict[int, tuple[int, set[int]]]()
        for burial in folded.burials(backup_id):
            runs = decode_runs(read_burial(self.place, burial.object), "buried")
            every = np.arange(32)
            many, offsets = found.get(burial.log.partition, (0, set()))
            found[burial.log.partition] = many + burial.offsets, offsets | set(every[runs.hides(every)].tolist())
        return found

    @rule(number=st.integers(1, 3))
    def a_catch_up_begins(self, number: int) -> None:
        with self.writing("generations") as session:
            new = BegunCatchUp(self.token(), "scripted", "history", number, "scripted")
            session.commit(GenerationsAction(begun=(new,)))

    @precondition(lambda self: bool(read_chain(self.place).catch_ups))
    @rule(step=st.sampled_from(CatchUpStep), length=st.integers(1, 3))
    def a_share_is_copied(self, step: CatchUpStep, length: int) -> None:
        (first, *_) = read_chain(self.place).catch_ups or ()
        copied = write_segment(self.place, 0, 0, length)
        receipt = CatchUpReceipt(
            repository=self.place.repository, source="prod", catch_up=first.token, step=step, run="r", unit="u",
            segments=(copied,),
        )  # fmt: skip
        put_catch_up_receipt(self.place, receipt, self.token())

    @precondition(lambda self: bool(read_chain(self.place).catch_ups))
    @rule()
    def a_catch_up_ends(self) -> None:
        with self.writing("generations") as session:
            (first, *_) = session.folded.catch_ups or ()
            session.commit(GenerationsAction(ended=(EndedCatchUp(first.token, "scripted"),)))

    def caught_up(self) -> set[str]:
        """The objects of open catch-ups: none of them is garbage."""
        receipts = [r for c in read_chain(self.place).catch_ups or () for r in catch_up_receipts(self.place, c)]
        return {layout.segment("prod", s) for r in receipts for s in r.segments}

    @rule(index=st.integers(0, 20))
    def a_reader_begins(self, index: int) -> None:
        chosen = sorted(self.model)[index % len(self.model)]
        hold = reading(self.place, BackupId(chosen), this_process("reader"), "restore", self.token)
        folded = read_chain(self.place)
        hold.__enter__()
        self.readers.append(Reader(hold, folded, chosen, self.model[chosen], self.begins[chosen]))

    @precondition(lambda self: self.readers)
    @rule()
    def a_reader_ends(self) -> None:
        """Its backup may be deleted, its segments merged and collected around it: it reads what it began with."""
        reader = self.readers.pop(0)
        assert restored(self.place, reader.id, reader.folded) == expected(reader.ends, reader.begins)
        self.buried_in(reader.folded, reader.id)
        reader.hold.__exit__(None, None, None)

    @rule(index=st.integers(0, 20), which=st.integers(0, 50))
    def verify_finds_a_damaged_object(self, index: int, which: int) -> None:
        """And believes it again when the bytes are back."""
        chosen = sorted(self.model)[index % len(self.model)]
        verifier = Verifier(self.place, InlineEngine(), this_process("verify"), self.clock, self.token)
        names = self.objects_of(chosen)
        if not names:
            return
        name = sorted(names)[which % len(names)]
        good = self.store.get(name, 1 << 20)
        self.overwrite(name, bytes([good[0] ^ 1]) + good[1:])
        self.now += timedelta(minutes=1)
        found = verifier.verify(BackupId(chosen), "data")
        assert found.document.damaged_objects == (name,)
        self.overwrite(name, good)
        self.now += timedelta(minutes=1)
        for backup_id in (chosen, *found.also_damaged):
            assert verifier.verify(BackupId(backup_id), "data").document.verdict == GOOD

    @rule(what=st.sampled_from(("lease", "source", "checkpoint")))
    def repair_after_a_cache_was_lost(self, what: str) -> None:
        """The lease stays where a writer sleeps on it: whoever repairs would have to take it first."""
        if what == "checkpoint":
            with self.writing("gc") as session:
                session.fence("to be spoiled")
            self.overwrite(checkpoints(self.place)[-1][1], b"spoiled")
        elif what == "source":
            self.store.delete(layout.source_document("prod"))
        elif self.sleeper is None:
            self.overwrite(layout.lease("prod"), b"spoiled")
        self.now += timedelta(hours=1)
        repair(self.place, self.clock, self.token, DEFAULT_TTL, accept_loss=False, dry_run=False)

    @rule(index=st.integers(0, 20))
    def delete_one(self, index: int) -> None:
        chosen = sorted(self.model)[index % len(self.model)]
        with self.writing("delete") as session:
            try:
                plan_delete(self.situation(session), [BackupId(chosen)])
            except UsageError:
                assert chosen in self.held or len(self.model) == 1
                return
            delete(session, [chosen], "wanted")
        del self.model[chosen]

    @rule(last=st.integers(1, 4))
    def prune(self, last: int) -> None:
        with self.writing("prune") as session:
            verdicts = plan_prune(self.situation(session), Policy(keep_last=last), self.now)
            gone = [v.id for v in verdicts if not v.keep]
            delete(session, gone, "policy")
        newest = sorted(self.model)[-last:]
        assert set(gone) == set(self.model) - set(newest) - self.held
        for backup_id in gone:
            del self.model[backup_id]

    @rule(partition=st.integers(0, 1), more=st.integers(1, 9))
    def the_source_deletes_old_records(self, partition: int, more: int) -> None:
        start = min(self.starts[partition] + more, self.ends[partition])
        self.starts = {**self.starts, partition: start}

    @rule(less=st.integers(0, 3), readers_seen=st.booleans())
    def trim(self, less: int, readers_seen: bool) -> None:
        """Backups before the newest one begin later. A reader that began between plan and commit reads what it had."""
        newest = max(self.model)
        protected = self.held & set(self.model) | ({r.id for r in self.readers} if readers_seen else set())
        floors = {}
        for partition, start in self.begins[newest].items():
            kept = (self.begins[i][partition] for i in protected if i < newest and i in self.model)
            floors[log_of(partition)] = max(min([start - less, *kept]), 0)
        with self.writing("prune") as session:
            measured = measure_trim(self.place, session.folded, newest, floors)
            commit_trim(session, measured, protected, "scripted")
        for backup_id in (i for i in self.model if i < newest):
            begins, ends = self.begins[backup_id], self.model[backup_id]
            later = {p: min(max(start, floors[log_of(p)]), ends[p]) for p, start in begins.items()}
            assert (later != begins) == (backup_id in measured.ids)
            self.begins[backup_id] = later
        self.changed.update(self.model)

    @rule(index=st.integers(0, 20), hold=st.booleans())
    def pin(self, index: int, hold: bool) -> None:
        chosen = sorted(self.model)[index % len(self.model)]
        pin(self.place, HoldAction(chosen, "why") if hold else ReleaseAction(chosen), self.clock, self.token)
        (self.held.add if hold else self.held.discard)(chosen)

    @rule(hours=st.integers(0, 40))
    def collect_garbage(self, hours: int) -> None:
        self.now += timedelta(hours=hours)
        self.readers_renew()
        with self.writing("gc") as session:
            collect(session, GarbageRules())
        self.changed.update(self.model)

    def readers_renew(self) -> None:
        for hold in reader_holds(self.place):
            info = self.store.head(hold.name)
            self.store.replace(hold.name, self.store.get(hold.name, 1 << 20), info.version)

    @precondition(lambda self: self.sleeper is None)
    @rule()
    def a_writer_falls_asleep(self) -> None:
        """It has its lease and its request, and will try to commit much later."""
        context = self.writing("backup")
        session = context.__enter__()
        ongoing = begin(session, ensure_source(self.place, "scripted", {"id": "s-1"}, self.now))
        base = self.model.get(ongoing.base.id, {0: 0, 1: 0}) if ongoing.base else {0: 0, 1: 0}
        cut = [LogCut(log_of(p), 0, end) for p, end in base.items()]
        self.now += timedelta(hours=1)

        def wake() -> object:
            try:
                return ongoing.complete(FinishedRun(cut=cut, new=[]))
            finally:
                context.__exit__(None, None, None)

        self.sleeper = (wake, ongoing.id)

    @precondition(lambda self: self.sleeper is not None)
    @rule(more=st.integers(0, 5))
    def another_run_takes_over_and_the_sleeper_wakes(self, more: int) -> None:
        assert self.sleeper is not None
        wake, _ = self.sleeper
        self.sleeper = None
        self.back_up(more, 0)
        try:
            wake()
        except LeaseLost:
            return
        raise AssertionError("a writer that lost its lease has committed")

    @invariant()
    def the_repository_has_the_backups_of_the_model(self) -> None:
        if not self.place.repository:
            return
        folded = read_chain(self.place)
        assert {e.id for e in folded.completed} == set(self.model)
        assert {e.id for e in folded.completed if e.hold is not None} == self.held & set(self.model)
        assert folded == read_whole_chain(self.place)
        in_turn = sorted(self.model)[next(self.steps) % len(self.model)]
        assert self.caught_up() <= self.data(), "what a catch-up has copied was collected"
        self.read_back({*self.changed, in_turn})
        self.changed.clear()

    def read_back(self, ids: Iterable[int]) -> None:
        for backup_id in set(ids) & set(self.model):
            self.look_at_burials(backup_id)
            content = expected(self.model[backup_id], self.begins[backup_id])
            assert restored(self.place, backup_id) == content, f"backup {backup_id}"

    def look_at_burials(self, backup_id: int) -> None:
        """Exactly those that were buried in it or before it, and their objects read back."""
        expected_now = dict[int, tuple[int, set[int]]]()
        for first, partition, offsets in self.in_force():
            if first <= backup_id:
                many, others = expected_now.get(partition, (0, set()))
                expected_now[partition] = many + len(offsets), others | offsets
        assert self.buried_in(read_chain(self.place), backup_id) == expected_now

    def in_force(self) -> list[tuple[int, int, set[int]]]:
        """Without the burials of backups that failed."""
        failed = {each.id for each in read_chain(self.place).failed}
        return [each for each in self.buried if each[0] not in failed]

    def data(self) -> set[str]:
        return {i.name for i in self.store.list("sources/prod/topics/")}

    def objects_of(self, backup_id: int) -> set[str]:
        folded = read_chain(self.place)
        entry = folded.entry(backup_id)
        assert entry is not None
        manifest = read_manifest(self.place, entry)
        rows = rows_of(PartReader(self.place), manifest, served_parts(manifest, folded))
        return {name for _, name, _, _ in objects(rows, "prod")}

    def overwrite(self, name: str, data: bytes) -> None:
        self.store.delete(name)
        self.store.put_new(name, data)

    def sweep_all_and_look_again(self) -> None:
        """When nobody reads or works any more, exactly what the backups need is left, and it reads back."""
        while self.readers:
            self.a_reader_ends()
        self.now += timedelta(hours=1)
        self.complete(self.run())
        for days in (10, 2, 2):
            self.now += timedelta(days=days)
            with self.writing("gc") as session:
                collect(session, GarbageRules())
        self.read_back(self.model)
        needed = self.caught_up().union(*(self.objects_of(i) for i in self.model))
        assert self.data() == needed, "garbage, or less than needed"
        open_tokens = {c.token for c in read_chain(self.place).catch_ups or ()}
        assert {layout.catch_up_of(i.name) for i in self.store.list("sources/prod/catch-ups/")} <= open_tokens
        named = {layout.buried("prod", each.object.token) for each in read_chain(self.place).buried or ()}
        assert {info.name for info in self.store.list("sources/prod/buried/")} == named
        assert len(named) <= len(self.in_force())

    def writing(self, operation: str) -> AbstractContextManager[Writing]:
        return writing(self.place, operation, self.clock, self.token)

    def situation(self, session: Writing) -> PruneSituation:
        return PruneSituation(session.folded, {}, {})

    def teardown(self) -> None:
        if self.sleeper is not None:
            self.now += timedelta(hours=1)
            with self.writing("gc"), suppress(LogkeepError):
                self.sleeper[0]()
        if self.place.repository:
            self.sweep_all_and_look_again()
