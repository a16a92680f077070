"""Backups, burials, folds, deletions, merges, collections, crashes, lost commits and repairs in any order.

Every kept backup has the latest record of each key that it had when it was taken, or is reported as folded over.
"""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from logkeep.engine.inline import InlineEngine
from logkeep.errors import Damaged
from logkeep.kafka.fold.plan import FoldOptions
from logkeep.kafka.fold.run import LogFolding
from logkeep.kafka.merge import optimizing
from logkeep.kafka.record.backup_view import view_backup
from logkeep.repository.access import create_repository
from logkeep.repository.chain.commits import SourceRef, read_chain, read_links
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.lease import DEFAULT_TTL
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import GarbageRules, collect
from logkeep.repository.upkeep.merge_plan import MergeRule
from logkeep.repository.upkeep.prune import delete
from logkeep.repository.upkeep.repair import repair
from logkeep.store.memory import MemoryStore
from tests.property.repository_machine import Crash, DiesAt
from tests.support.faults.store import FaultyStore
from tests.support.kafka.compacted_backups import CompactedSource

_AT_ONCE = GarbageRules(age=timedelta(0), interval=timedelta(0))
_UNTIMED = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
_PAIRS = st.lists(
    st.tuples(st.sampled_from((b"a", b"b", b"c", b"d")), st.sampled_from((None, b"", b"x", b"y"))), max_size=4
)
Latest = dict[object, tuple[object, ...]]


class FoldMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = datetime(2026, 11, 1, tzinfo=UTC)
        self.numbers = count(1)
        self.store = MemoryStore(self.clock)
        facts = StoreFacts(put_new=True, replace=True, durable=True)
        self.place = create_repository(self.store, facts, self.now, self.token).place("prod")
        self.source = CompactedSource(self.place, clock=self.clock, tokens=self.token)
        self.kept: dict[int, Latest] = {}
        self.ever: dict[int, Latest] = {}
        self.lost = self.swept = False

    def clock(self) -> datetime:
        self.now += timedelta(milliseconds=100)
        return self.now

    def token(self) -> str:
        return f"{next(self.numbers):016x}"

    @rule(batches=st.lists(_PAIRS, min_size=1, max_size=4), commits=st.sampled_from((None, None, True, False)))
    def back_up(self, batches: list[list[tuple[bytes, bytes | None]]], commits: bool | None) -> None:
        for pairs in filter(None, batches):
            self.source.write(pairs)
        if commits is not None:
            self.source.transaction([(b"a", b"t"), (b"t", b"t")], 7, commits)
        self.source.write([(b"z", b"%d" % len(self.kept))])
        self.now += timedelta(minutes=1)
        self.remember(self.source.back_up())

    def remember(self, backup: int) -> None:
        self.kept[backup] = self.ever[backup] = self.source.latest(backup)

    @precondition(lambda self: self.kept)
    @rule(key=st.sampled_from((b"a", b"b", b"c")))
    def bury(self, key: bytes) -> None:
        """The key was deleted at the source, by a tombstone that was never read."""
        newest = list(self.kept)[-1]
        offsets = [
            o for b in self.source.batches(newest) for o, _, r in b.records if r.key == key and not b.transactional
        ]
        self.source.write([(b"z", b"later")])
        self.now += timedelta(minutes=1)
        self.remember(self.source.back_up(bury_offsets=offsets))

    @rule()
    def fold(self) -> None:
        done = self.source.fold()
        assert not any(each.problem for each in done)
        self.everything_restores()

    @rule(at=st.integers(1, 80))
    def crash_in_a_fold(self, at: int) -> None:
        place = SourceRef(FaultyStore(self.store, DiesAt(at)), self.place.repository, "prod")
        with suppress(Crash):
            LogFolding(place, self.clock, self.token).run(FoldOptions(), lambda _: InlineEngine())
        self.now += timedelta(hours=1)
        self.everything_restores()

    @precondition(lambda self: len(self.kept) > 1)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(sorted(self.kept)[:-1]))
        with writing(self.place, "delete", self.clock, self.token) as session:
            delete(session, [gone], "test")
        del self.kept[gone]

    @rule()
    def optimize(self) -> None:
        done = optimizing(self.place, self.clock, self.token).run(MergeRule(1 << 20), lambda _: InlineEngine())
        assert done.findings == ()
        self.everything_restores()

    @precondition(lambda self: not self.lost)
    @rule()
    def sweep(self) -> None:
        with writing(self.place, "gc", self.clock, self.token) as session:
            collect(session, _AT_ONCE)
        self.swept = True
        self.everything_restores()

    @precondition(lambda self: len(self.kept) > 1 and not self.swept)
    @rule(data=st.data())
    def lose_a_commit(self, data: st.DataObject) -> None:
        """The store loses a commit, and a repair continues without it: what it did may be undone."""
        names = [link.name for link in read_links(self.place, 0)]
        self.store.delete(data.draw(st.sampled_from(names[1:])))
        repair(self.place, self.clock, self.token, DEFAULT_TTL, accept_loss=True, dry_run=False)
        self.lost = True
        self.now += timedelta(hours=1)
        there = [entry.id for entry in read_chain(self.place).completed]
        assert set(self.kept) <= set(there)
        self.kept = {backup: self.ever[backup] for backup in there}
        self.everything_restores()

    def everything_restores(self) -> None:
        for entry in read_chain(self.place).completed:
            if not (self.lost and self.refused(entry)):
                assert self.source.latest(entry.id) == self.ever[entry.id], f"backup {entry.id} is another one"

    def refused(self, entry: BackupEntry) -> bool:
        """Whether a restore says that the backup is not whole any more."""
        try:
            view_backup(self.place, entry)
        except Damaged as error:
            return "folded over" in error.what or "the commit that buries" in error.what
        return False

    def teardown(self) -> None:
        self.everything_restores()


def test_folds_in_any_order_keep_every_backup() -> None:
    run_state_machine_as_test(FoldMachine, settings=settings(_UNTIMED, max_examples=4, stateful_step_count=15))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_folds_in_long_walks_keep_every_backup() -> None:
    run_state_machine_as_test(FoldMachine, settings=settings(_UNTIMED, max_examples=150, stateful_step_count=50))
    print("folds: 150 walks of up to 50 steps, every backup restored")
