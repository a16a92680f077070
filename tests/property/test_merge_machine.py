"""Rounds, retention, deletions, merges and collections in any order: every kept backup reads back byte for byte."""

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from logkeep.engine.inline import InlineEngine
from logkeep.kafka.merge import optimizing
from logkeep.model.ids import BackupId
from logkeep.repository.access import create_repository
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import GarbageRules, collect
from logkeep.repository.upkeep.merge_plan import MergeRule
from logkeep.repository.upkeep.prune import delete
from logkeep.repository.verify.run import Verifier
from logkeep.store.memory import MemoryStore
from tests.support.kafka.many_small_backups import Cuts, expected, read_back, take_round

_AT_ONCE = GarbageRules(age=timedelta(0), interval=timedelta(0))
_UNTIMED = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


class Merging(RuleBasedStateMachine):
    """Three partitions, of which a round may leave some out, as a user who changes --topics does."""

    def __init__(self) -> None:
        super().__init__()
        self.now = datetime(2026, 11, 1, tzinfo=UTC)
        self.numbers = count(1)
        facts = StoreFacts(put_new=True, replace=True, durable=True)
        self.place = create_repository(MemoryStore(self.clock), facts, self.now, self.token).place("prod")
        self.logs: dict[int, tuple[int, int]] = dict.fromkeys(range(3), (0, 0))
        self.kept: dict[int, Cuts] = {}

    def clock(self) -> datetime:
        self.now += timedelta(milliseconds=100)
        return self.now

    def token(self) -> str:
        return f"{next(self.numbers):016x}"

    @rule(grown=st.lists(st.integers(0, 6), min_size=3, max_size=3), chosen=st.sets(st.integers(0, 2), min_size=1))
    def back_up(self, grown: list[int], chosen: set[int]) -> None:
        self.logs = {p: (start, end + 2 * grown[p]) for p, (start, end) in self.logs.items()}
        cuts = {p: self.logs[p] for p in sorted(chosen)}
        self.kept[take_round(self.place, cuts, self.clock, self.token)] = cuts

    @rule(partition=st.integers(0, 2), more=st.integers(1, 5))
    def forget(self, partition: int, more: int) -> None:
        """Retention moves the log start; the source itself stays whole, so that gaps are no matter here."""
        start, end = self.logs[partition]
        newest = list(self.kept.values())[-1].get(partition, (0, 0)) if self.kept else (0, 0)
        self.logs[partition] = (max(start, min(start + 2 * more, newest[1])), end)

    @precondition(lambda self: len(self.kept) > 1)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(sorted(self.kept)))
        with writing(self.place, "delete", self.clock, self.token) as session:
            delete(session, [gone], "test")
        del self.kept[gone]

    @rule(size_bytes=st.sampled_from((300, 700, 1 << 20)), least=st.integers(2, 4))
    def optimize(self, size_bytes: int, least: int) -> None:
        done = optimizing(self.place, self.clock, self.token).run(
            MergeRule(size_bytes, least), lambda _: InlineEngine()
        )
        assert done.findings == ()
        self.everything_reads_back()

    @rule()
    def sweep(self) -> None:
        with writing(self.place, "gc", self.clock, self.token) as session:
            collect(session, _AT_ONCE)
        self.everything_reads_back()

    def everything_reads_back(self) -> None:
        for backup_id, cuts in self.kept.items():
            assert read_back(self.place, backup_id) == expected(cuts), f"backup {backup_id} is another one"

    def teardown(self) -> None:
        self.everything_reads_back()
        verifier = Verifier(self.place, InlineEngine(), this_process("verify"), self.clock, self.token)
        for backup_id in self.kept:
            verified = verifier.verify(BackupId(backup_id), "data")
            assert verified.document.verdict == GOOD, verified.findings


def test_merges_in_any_order_keep_every_backup() -> None:
    run_state_machine_as_test(Merging, settings=settings(_UNTIMED, max_examples=6, stateful_step_count=20))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_merges_in_long_walks_keep_every_backup() -> None:
    run_state_machine_as_test(Merging, settings=settings(_UNTIMED, max_examples=150, stateful_step_count=50))
    print("merges: 150 walks of up to 50 steps, every backup read back")
