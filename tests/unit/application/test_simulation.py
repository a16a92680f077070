"""A user's program in the simulator: what it must say, and a mistake of its handlers that only faults show."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from logkeep.application import Application
from logkeep.application.simulation import SimulatedApplication, load_application
from logkeep.checkpoint.simulator.schedules import run_seeds, shorten
from logkeep.errors import UsageError

_BANK = """
from logkeep.application import Application

bank = Application("bank", partitions=2)
{memory}

@bank.on("move")
def move(command, state, context):
    if command.value["amount"] > 8:
        raise ValueError("too much")
    {balance}[command.key] = {balance}.get(command.key, 0) - command.value["amount"]
    state[command.key] = {balance}[command.key]
    context.send("add", key=command.value["to"], value=command.value["amount"])


@bank.on("add")
def add(command, state, context):
    state[command.key] = state.get(command.key, 0) + command.value


@bank.sample_command
def sample(number):
    return "move", f"from-{{number % 2}}", {{"to": f"to-{{number % 5}}", "amount": 1 + number % 9}}


@bank.invariant
def nothing_is_lost(state):
    assert sum(state.values()) == 0, f"the sum is {{sum(state.values())}}"


if __name__ == "__main__":
    bank.main()
"""


def _program(directory: Path, *, remembers: bool = False) -> str:
    """One that remembers keeps balances in a variable of the process, which a crash and a replay do not restore."""
    path = directory / "bank.py"
    name = "remembered" if remembers else "state"
    path.write_text(_BANK.format(memory="remembered = {}" if remembers else "", balance=name))
    return str(path)


def test_handlers_that_keep_everything_in_the_state_pass(tmp_path: Path) -> None:
    simulated = SimulatedApplication(load_application(_program(tmp_path)))
    totals = run_seeds(range(48), simulated.workload)
    assert (totals.schedules, totals.failed) == (48, [])
    assert min(totals.counts[name] for name in ("completed", "crashes", "with messages under way")) > 10
    assert simulated.rejected > 0
    assert simulated.first_rejection == "ValueError: too much"


def test_handlers_that_remember_something_else_break_the_invariant(tmp_path: Path) -> None:
    workload = SimulatedApplication(load_application(_program(tmp_path, remembers=True))).workload
    failed = run_seeds(range(48), workload).failed[0]
    assert failed.findings[0].what == "invariant"
    assert failed.findings[0].text.startswith("nothing_is_lost: the sum is ")
    assert len(shorten(failed, workload).plan.faults) <= len(failed.plan.faults)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("", "has no Application"),
        ("from logkeep.application import Application\na, b = Application('a'), Application('b')", "several"),
        ("from logkeep.application import Application\na = Application('no name')", "is not a name"),
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named"),
        ("def", "SyntaxError"),
        ("raise SystemExit(0)", "SystemExit"),
    ],
)
def test_a_program_that_cannot_be_simulated_is_refused(tmp_path: Path, program: str, said: str) -> None:
    (tmp_path / "p.py").write_text(program)
    with pytest.raises(UsageError, match=said):
        load_application(str(tmp_path / "p.py"))


def test_one_of_several_applications_is_named(tmp_path: Path) -> None:
    text = "from logkeep.application import Application\na, b = Application('a'), Application('b')\nc = b"
    (tmp_path / "p.py").write_text(text)
    assert load_application(f"{tmp_path / 'p.py'}:c").name == "b"
    for name in ("d", ""):
        with pytest.raises(UsageError) as refused:
            load_application(f"{tmp_path / 'p.py'}:{name}")
        assert "p.py:a" in refused.value.remedy


def test_commands_that_cannot_be_sent_are_refused() -> None:
    made = Application("shop")
    with pytest.raises(UsageError, match="no function says which commands to send"):
        SimulatedApplication(made)

    @made.sample_command
    def sample(number: int) -> Any:
        return "order", f"key {number // (1 - number)}", None

    assert SimulatedApplication(made).workload.commands(0) == ("order", "key 0", None)
    with pytest.raises(UsageError, match="for 1 it raises ZeroDivisionError"):
        SimulatedApplication(made).workload.commands(1)
    made.samples[0] = lambda _: ("order", "key")  # type: ignore[assignment,return-value] # a mistake
    with pytest.raises(UsageError, match=r"returns \('order', 'key'\), not a name, a key and a value"):
        SimulatedApplication(made)


def test_each_way_to_say_that_an_invariant_does_not_hold() -> None:
    made = Application("shop")
    made.sample_command(lambda number: ("order", f"o{number}", None))
    broken = SimulatedApplication(made).workload.invariant

    @made.invariant
    def law(state: Mapping[str, Any]) -> Any:
        if state["a"] == "raise":
            raise KeyError("b")
        assert state["a"] != "assert"
        return state["a"]

    said = {repr(a): broken({"a": a}) for a in (None, True, False, "text", ["x", "y"], [], "raise", "assert")}
    assert said == {
        "None": [],
        "True": [],
        "False": ["law: it is false"],
        "'text'": ["law: text"],
        "['x', 'y']": ["law: x", "law: y"],
        "[]": [],
        "'raise'": ["law: KeyError: 'b'"],
        "'assert'": said["'assert'"],
    }
    assert len(said["'assert'"]) == 1
