"""Backups, merges, deletions and collections in any order: a backup that is kept reads as it did when it was taken."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import collect
from logkeep.repository.upkeep.prune import delete
from tests.crash.points import AT_ONCE
from tests.support.zookeeper.merged_backups import Growing, everything, optimize
from tests.support.zookeeper.repositories import new_place

_UNTIMED = settings(deadline=None, suppress_health_check=(HealthCheck.too_slow,))


class Merging(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        root = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.growing = Growing(root / "server", new_place())
        self.place = self.growing.place
        self.kept = everything(self.place)

    @rule(more=st.integers(1, 3), roll=st.booleans())
    def back_up(self, more: int, roll: bool) -> None:
        self.growing.backup(more, roll=roll)
        now = everything(self.place)
        assert {number: now[number] for number in self.kept} == self.kept
        self.kept = now

    @rule(target_bytes=st.sampled_from((300, 700, 1 << 20)), least=st.integers(2, 3))
    def merge(self, target_bytes: int, least: int) -> None:
        assert optimize(self.place, target_bytes, least).findings == ()
        assert everything(self.place) == self.kept

    @precondition(lambda self: len(self.kept) > 1)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(sorted(self.kept)))
        with writing(self.place, "delete", utc_now, random_token) as session:
            delete(session, [gone], "test")
        del self.kept[gone]

    @rule()
    def sweep(self) -> None:
        with writing(self.place, "gc", utc_now, random_token) as session:
            collect(session, AT_ONCE)
        assert everything(self.place) == self.kept

    def teardown(self) -> None:
        self.stack.close()


def test_merges_in_any_order_keep_every_backup() -> None:
    run_state_machine_as_test(Merging, settings=settings(_UNTIMED, max_examples=3, stateful_step_count=10))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_merges_in_long_walks_keep_every_backup() -> None:
    run_state_machine_as_test(Merging, settings=settings(_UNTIMED, max_examples=100, stateful_step_count=30))
    print("merges of ZooKeeper logs: 100 walks of up to 30 steps, every backup read back")
