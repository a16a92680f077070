"""A repository against a dictionary: any order of backup, delete, prune, hold, crash, concurrent run and collection.

The model is a dict from id to the content a backup must give back. After every step every backup of the model reads
back exactly, and the repository has no other.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from itertools import count

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from logkeep.errors import LeaseLost, LogkeepError, UsageError
from logkeep.model.ids import BackupId
from logkeep.repository.actions import HoldAction, ReleaseAction
from logkeep.repository.backup import Outcome, begin
from logkeep.repository.chain import Place, read_chain, read_whole_chain
from logkeep.repository.format import StoreFacts
from logkeep.repository.garbage import GarbageRules, collect
from logkeep.repository.manifest import LogCut
from logkeep.repository.opening import create_repository
from logkeep.repository.prune import Situation, delete, plan_delete, plan_prune
from logkeep.repository.retention import Policy
from logkeep.repository.source import ensure_source
from logkeep.repository.writing import Writing, pin, writing
from logkeep.spark.inline import InlineEngine
from logkeep.store.memory import MemoryStore
from tests.faults.plan import Fault, Plan
from tests.faults.store import FaultyStore
from tests.scripted.backup import back_up, expected, log_of, restored


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


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = datetime(2026, 11, 15, tzinfo=UTC)
        self.tokens = count(1)
        self.store = MemoryStore(lambda: self.now)
        self.place = Place(self.store, "", "prod")
        self.model: dict[int, dict[int, int]] = {}
        self.held: set[int] = set()
        self.ends = {0: 0, 1: 0}
        self.sleeper: tuple[Callable[[], object], int] | None = None

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
        place = Place(store, self.place.repository, "prod")
        entry = back_up(place, self.ends, InlineEngine(), self.clock, self.token, resumed=resumed)
        return entry.id

    @rule(more0=st.integers(0, 6), more1=st.integers(0, 6))
    def back_up(self, more0: int, more1: int) -> None:
        self.now += timedelta(minutes=7)
        self.ends = {0: self.ends[0] + more0, 1: self.ends[1] + more1}
        self.model[self.run()] = dict(self.ends)

    @rule(more=st.integers(1, 9), at=st.integers(1, 60))
    def crash_in_a_backup(self, more: int, at: int) -> None:
        """The process dies at some call. What it had acknowledged stands; its lease is taken over after its time."""
        self.now += timedelta(minutes=7)
        self.ends = {**self.ends, 0: self.ends[0] + more}
        try:
            self.model[self.run(DiesAt(at))] = dict(self.ends)
        except Crash:
            self.now += timedelta(hours=1)
            for entry in read_chain(self.place).completed:
                self.model.setdefault(entry.id, dict(self.ends))

    @rule(resumed=st.booleans())
    def go_on_after_a_crash(self, resumed: bool) -> None:
        self.now += timedelta(minutes=7)
        self.model[self.run(resumed=resumed)] = dict(self.ends)

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

    @rule(index=st.integers(0, 20), hold=st.booleans())
    def pin(self, index: int, hold: bool) -> None:
        chosen = sorted(self.model)[index % len(self.model)]
        pin(self.place, HoldAction(chosen, "why") if hold else ReleaseAction(chosen), self.clock, self.token)
        (self.held.add if hold else self.held.discard)(chosen)

    @rule(hours=st.integers(0, 40))
    def collect_garbage(self, hours: int) -> None:
        self.now += timedelta(hours=hours)
        with self.writing("gc") as session:
            collect(session, GarbageRules())

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
                return ongoing.complete(Outcome(cut=cut, new=[]))
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
    def every_backup_reads_back_and_no_other_exists(self) -> None:
        if not self.place.repository:
            return
        folded = read_chain(self.place)
        assert {e.id for e in folded.completed} == set(self.model)
        assert {e.id for e in folded.completed if e.hold is not None} == self.held & set(self.model)
        assert folded == read_whole_chain(self.place)
        for backup_id, ends in self.model.items():
            assert restored(self.place, backup_id) == expected(ends)

    def writing(self, operation: str) -> AbstractContextManager[Writing]:
        return writing(self.place, operation, self.clock, self.token)

    def situation(self, session: Writing) -> Situation:
        return Situation(session.folded, {}, {})

    def teardown(self) -> None:
        if self.sleeper is not None:
            with suppress(LogkeepError):
                self.sleeper[0]()


TestRepositoryMachine = Machine.TestCase
TestRepositoryMachine.settings = settings(
    max_examples=30, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
