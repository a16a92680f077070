"""Schedules of the simulator: no orphan, nothing lost, nothing twice, nothing stuck; and a naive cut is found wrong."""

import ast
import inspect
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import msgspec
import pytest

from logkeep.checkpoint.simulator import judge, schedules
from logkeep.checkpoint.simulator.plan import SHIPPED_EVERY, Fault, SchedulePlan, make_plan
from logkeep.checkpoint.simulator.schedules import ScheduleOutcome, SimFinding
from logkeep.checkpoint.simulator.sim_transport import SENDING
from logkeep.checkpoint.simulator.workload import SHOP
from logkeep.checkpoint.simulator.world import SimWorld

PART = 1_250


@pytest.mark.parametrize("part", range(4))
def test_r33_r34_no_schedule_breaks_a_cut(part: int) -> None:
    """Cuts are closed under happens-before; each completed backup is restored and drained."""
    totals = schedules.run_seeds(range(part * PART, (part + 1) * PART))
    assert [str(failed.plan) + str(failed.findings) for failed in totals.failed] == []
    assert totals.schedules == PART
    least = {"completed": 500, "failed": 200, "with messages under way": 300, "forced": 200, "crashes": 2_000}
    assert {name: totals.counts[name] for name in least if totals.counts[name] < least[name]} == {}


def test_the_shipped_actor_coordinator_and_restore_are_among_the_schedules() -> None:
    """What their backups become is judged by the same rules, with faults in the store and leaders that change."""
    counts, kinds = Counter[str](), Counter[str]()
    for seed in range(0, 60 * SHIPPED_EVERY, SHIPPED_EVERY):
        plan = make_plan(seed)
        assert plan.shipped
        counts.update(schedules.run_plan(plan).counts)
        kinds.update(fault.kind for fault in plan.faults)
    assert min(counts["completed"], counts["failed"], counts["with messages under way"]) >= 10, counts
    assert len(kinds) == 8


def test_a_naive_cut_has_orphans() -> None:
    """All log ends, read at slightly different times, without any checkpoint."""
    orphans = Counter(_naive_orphans(make_plan(seed)) > 0 for seed in range(40))
    assert orphans[True] >= 10


def _naive_orphans(plan: SchedulePlan) -> int:
    """Orphans if all logs are cut at their ends at one moment that each partition reads at another time."""
    world = SimWorld(plan, SHOP)
    world.run()
    sendings = [judge.SendingFacts(s.partition, s.known) for s in world.transport.sendings]
    logs = [log.everything for log in world.logs]
    ends = [len(log) * (2 + number % 2) // 4 for number, log in enumerate(logs)]
    return len(judge.Judge(logs, sendings, SENDING).orphans(ends))


def test_the_judge_knows_records_only_and_never_a_checkpoint() -> None:
    source = inspect.getsource(judge)
    imported = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name and name.startswith("logkeep")} == {"logkeep.checkpoint.records"}
    names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    assert not {
        name for name in names if "checkpoint" in name.lower() or "stamp" in name.lower() or name == "document_of"
    }


@pytest.mark.parametrize("seed", [77, 5 * SHIPPED_EVERY])
def test_a_schedule_is_the_same_every_time(seed: int) -> None:
    """Also after others, of which leases may be left."""
    first = schedules.run_plan(make_plan(seed))
    schedules.run_seeds(range(0, 4 * SHIPPED_EVERY, SHIPPED_EVERY))
    assert schedules.run_plan(make_plan(seed)) == first


def test_a_deposed_leader_whose_log_is_gone_ends() -> None:
    """It had not begun to read when the next leader took a snapshot and compacted the log."""
    assert schedules.run_plan(make_plan(1_006_445)).findings == ()


def test_replay_applies_no_acknowledgement_from_behind_an_input_without_a_result() -> None:
    """A create without a result, an acknowledgement, and a new leader that takes a snapshot before the create."""
    assert schedules.run_plan(make_plan(1_030_058)).findings == ()


def test_a_copy_of_a_deposed_leader_fails_if_the_next_one_has_compacted_its_log() -> None:
    outcome = schedules.run_plan(make_plan(1_092_560))
    assert outcome.findings == ()
    assert outcome.counts["failed"] == 1


def test_a_failure_is_shortened_to_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pretended failure that needs one crash: the shortest schedule has nothing else."""

    def pretended(plan: SchedulePlan, _workload: object = None) -> ScheduleOutcome:
        crashed = any(fault.kind == "crash" for fault in plan.faults)
        return ScheduleOutcome(plan, (SimFinding("orphan", "x"),) if crashed else (), {})

    faults = (Fault(3, "outage", 1), Fault(5, "crash", 0), Fault(9, "snapshot", 2))
    long = msgspec.structs.replace(make_plan(1), faults=faults)
    monkeypatch.setattr(schedules, "run_plan", pretended)
    shortest = schedules.shorten(pretended(long)).plan
    assert (shortest.faults, shortest.commands, shortest.backups) == ((Fault(5, "crash", 0),), 1, 1)
    assert (shortest.loss, shortest.doubles, shortest.store_errors) == (0.0, 0.0, 0.0)


@pytest.mark.soak
def test_many_schedules_on_all_cores() -> None:
    """As many schedules as LOGKEEP_MINUTES give, 60 unless set; seeds that `make test` does not run. A failure is
    printed at once, and the others go on."""
    minutes = float(os.environ.get("LOGKEEP_MINUTES") or 60)
    began, counts, failed, done, first = time.monotonic(), Counter[str](), list[str](), 0, 1_000_000
    run = partial(schedules.run_seeds, most_failures=PART)
    with ProcessPoolExecutor() as pool:
        while time.monotonic() - began < minutes * 60:
            ranges = [range(first + part * PART, first + (part + 1) * PART) for part in range(os.cpu_count() or 1)]
            first += len(ranges) * PART
            for totals in pool.map(run, ranges):
                for each in totals.failed:
                    failed.append(f"{each.plan}\n{each.findings}")
                    print(failed[-1], flush=True)
                counts.update(totals.counts)
                done += totals.schedules
    took = time.monotonic() - began
    print(f"{done} schedules in {took:.0f} s, {done / took:.0f} per second: {dict(counts)}")
    assert failed == []
