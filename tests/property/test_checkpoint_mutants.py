"""The simulator is trusted because it finds what is broken on purpose: each mutant of the shipped code is detected.

A mutant is a change of a function's source: where, the text, what replaces it, and which check finds it. Mutants that
change no outcome that a user could see are found by the test of their own requirement.
"""

from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

import pytest

from logkeep.checkpoint import machine, machine_state, records, snapshot_choice
from logkeep.checkpoint.simulator import schedules
from logkeep.checkpoint.simulator.plan import make_plan
from tests.support.mutations import mutate
from tests.unit.checkpoint import test_machine

MOST_SEEDS = 3_000
FIRST = {
    "low-water mark under an old stamp": 25,
    "create acknowledged before it is processed": 162,
    "snapshot at or behind the position": 66,
}
"""Where the search begins for those that few schedules find; a hint that saves time, no condition."""


class Mutant(NamedTuple):
    owner: ModuleType | type
    function: str
    old: str
    new: str
    found_as: set[str]


CAUSAL = {"orphan", "lost", "twice", "money", "stuck"}
"""What a wrong cut or a forgotten message leads to; which of them comes first depends on the schedule."""
OLD_STAMP = "_addressed(msgspec.structs.replace(state, checkpoint_id=2),"
TWO = "(_forced(state, stamp.checkpoint_id), message)"
FOREIGN = 'return "" if stamp.application == state.application else "other application"'

MUTANTS = {
    "low-water mark under an old stamp": Mutant(
        machine, "resend", "_addressed(state,", OLD_STAMP.replace("2", "0"), CAUSAL
    ),
    "acknowledgement without a stamp": Mutant(records, "acknowledgement", "(STAMP, pack_stamp(stamp)), ", "", CAUSAL),
    "command before create": Mutant(
        machine,
        "_receive_own",
        TWO,
        "(message, _forced(state, stamp.checkpoint_id))",
        CAUSAL,
    ),
    "create counts again, >= for >": Mutant(
        machine, "_checkpoint", "document.id <= state.checkpoint_id", "document.id < state.checkpoint_id", CAUSAL
    ),
    "create acknowledged before it is processed": Mutant(
        machine,
        "_receive_create",
        "return Reception((message,))",
        "return Reception((message,), (Reply(document.nonce, document),))",
        {"late"},
    ),
    "position of created for create": Mutant(
        machine,
        "_checkpoint",
        "TakeBackup(document.id, create.position,",
        "TakeBackup(document.id, create.position + 1,",
        CAUSAL,
    ),
    "replay that ignores created": Mutant(
        machine_state, "apply", "(Kind.CREATED, Kind.IGNORED)", "(Kind.IGNORED,)", CAUSAL
    ),
    "create appended while commands wait": Mutant(
        machine, "drained", "return state.processed >= last_input", "return True", CAUSAL
    ),
    "snapshot at or behind the position": Mutant(
        snapshot_choice, "_unusable", "snapshot.position >= create", "False", CAUSAL
    ),
    "outbox not in the snapshot": Mutant(machine_state, "load", 'outbox=maps["outbox"]', "outbox={}", CAUSAL),
    "receiver's memory not in the snapshot": Mutant(
        machine_state, "load", 'received=maps["received"]', "received={}", CAUSAL
    ),
    "foreign stamp obeyed": Mutant(machine, "_foreign", FOREIGN, 'return ""', {"foreign"}),
    "old inbox obeyed after a restore": Mutant(
        machine, "_receive_own", "stamp.history != state.history", "False", CAUSAL
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_simulator_finds_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    mutate(monkeypatch, mutant.owner, mutant.function, mutant.old, mutant.new)
    for seed in range(FIRST.get(name, 0), MOST_SEEDS):
        outcome = schedules.run_plan(make_plan(seed))
        if outcome.findings:
            assert {found.what for found in outcome.findings} & mutant.found_as
            return
    pytest.fail(f"{MOST_SEEDS} schedules did not find it")


OWN_TESTS: dict[str, tuple[Mutant, Callable[[], None]]] = {
    "stamp at enqueue": (
        Mutant(machine, "resend", "_addressed(state,", OLD_STAMP, set()),
        test_machine.test_r27_a_message_carries_the_id_of_its_sending_and_a_resend_that_of_today,
    ),
    "replay that takes a result's own position": (
        Mutant(
            machine_state, "_checkpoint", "checkpoint_position=position", "checkpoint_position=record.position", set()
        ),
        test_machine.test_r25_replay_takes_the_source_position_of_created,
    ),
}
"""Causally harmless: the test of the requirement finds them."""


@pytest.mark.parametrize("name", OWN_TESTS)
def test_the_requirements_own_test_finds_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant, test = OWN_TESTS[name]
    test()
    mutate(monkeypatch, mutant.owner, mutant.function, mutant.old, mutant.new)
    with pytest.raises(AssertionError):
        test()
