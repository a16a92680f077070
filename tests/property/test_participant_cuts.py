"""Cuts of participants under faults, by the shipped loop and coordinator over a simulated cluster; and their mutants.

The judge reads what records say, and no header and no id. Every record that a client had written before the backup
began is inside; what a group made of records that it had read is inside or appended by the restore, once with
transactions; nothing inside was made of a record outside.
"""

import ast
import inspect
from collections import Counter
from types import ModuleType
from typing import NamedTuple

import pytest

from logkeep.application.kafka import in_transit
from logkeep.application.kafka.coordinator import ParticipantCutter
from logkeep.application.kafka.participant import Participant
from tests.soak_counts import soak_count
from tests.support.mutations import mutate
from tests.support.participants import judge
from tests.support.participants.schedules import CutPlan, CutSchedule, run_cuts, simulated_clients

__all__ = ["simulated_clients"]
pytestmark = pytest.mark.usefixtures("simulated_clients")
IN_MAKE_TEST, MOST_SEEDS = 40, 600


class CutMutant(NamedTuple):
    owner: ModuleType | type
    function: str
    old: str
    new: str
    found_as: set[str]
    first: int = 0
    """Where the search begins; a hint that saves time, no condition."""


NOTED = "before = {log: bounds.high_watermark for log, bounds in topics.bounds(logs).items()}\n    "
READ_FROM = "read_from = self._end(topics, checkpoints_topic(self.application))\n    "
SENT = "self._send_marker(topics, backup_id)\n    "
MUTANTS = {
    # What a task produced before its checkpoint is delivered together with the record of it, in any order: where the
    # record comes first, the coordinator notes the ends of logs that lack outputs. Harmless with transactions.
    "flush after the checkpoint": CutMutant(
        Participant, "_take", "self._commit()\n    self._begin()", "self._begin()", {"lost"}, 56
    ),
    # A task may take the checkpoint and produce before B is noted: what it made after the cut is below B, and is kept.
    "B noted after the first marker": CutMutant(
        ParticipantCutter, "_take", NOTED + READ_FROM + SENT, READ_FROM + SENT + NOTED, {"orphan", "twice"}, 57
    ),
    "in-transit dropped": CutMutant(in_transit, "in_transit", "if inside:", "if False:", {"lost"}),
    "all behind P in transit": CutMutant(in_transit, "in_transit", "if inside:", "if True:", {"orphan", "twice"}),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    mutate(monkeypatch, *mutant[:4])
    for seed in range(mutant.first, MOST_SEEDS):
        findings = run_cuts(CutPlan.of(seed)).findings
        if findings:
            assert {what for what, _ in findings} & mutant.found_as, findings
            return
    pytest.fail(f"{MOST_SEEDS} schedules did not find it")


def run_all(seeds: range) -> Counter[str]:
    counts = Counter[str]()
    for seed in seeds:
        outcome = run_cuts(CutPlan.of(seed))
        assert outcome == CutSchedule(outcome.plan, [], outcome.counts)
        counts.update(outcome.counts)
    return counts


def test_no_schedule_breaks_a_cut() -> None:
    counts = run_all(range(IN_MAKE_TEST))
    least = {"completed": 50, "in transit": 50, "forced": 5, "killed": 5, "expelled": 3}
    assert {name: counts[name] for name in least if counts[name] < least[name]} == {}


@pytest.mark.soak
def test_many_schedules() -> None:
    count = soak_count(5_000)
    print(f"{count} schedules of participants: {dict(run_all(range(10_000, 10_000 + count)))}")


def test_a_schedule_is_the_same_every_time() -> None:
    assert run_cuts(CutPlan.of(5)) == run_cuts(CutPlan.of(5))


def test_the_judge_knows_no_header_and_no_checkpoint() -> None:
    tree = ast.parse(inspect.getsource(judge))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"collections", "collections.abc", "dataclasses"}
