"""`app simulate`: seeds, counts, and a failure with its shortest schedule."""

from types import SimpleNamespace

import pytest

from logkeep.checkpoint import machine
from logkeep.checkpoint.simulator.schedules import run_seeds
from logkeep.cli.verbs.application import simulate
from logkeep.errors import UsageError
from tests.support.mutations import mutate

PLAIN = SimpleNamespace(text=lambda text: text, state=lambda state: state)


def test_a_range_of_seeds() -> None:
    assert simulate._seeds("3..7") == range(3, 7)


@pytest.mark.parametrize("text", ["", "3", "7..3", "3..3", "-1..4", "a..b", "1..2..3", "1.." + "9" * 13])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a range of seeds"):
        simulate._seeds(text)


def test_a_run_without_findings() -> None:
    report = simulate._report(run_seeds(range(20)), 1.5)
    assert (report.schedules, report.failure) == (20, None)
    assert min(report.completed, report.failed, report.crashes) > 0
    assert simulate._text(report, PLAIN).startswith("OK  20 schedules in 1.5 s\n")  # type: ignore[arg-type] # no colours


def test_a_failure_names_its_seed_and_the_shortest_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch, machine, "_foreign", 'else "other application"', 'else ""')
    report = simulate._report(run_seeds(range(20)), 1.5)
    assert report.failure is not None
    assert report.failure.findings == ("foreign: checkpoint 1000000 was never asked for",)
    text = simulate._text(report, PLAIN)  # type: ignore[arg-type] # no colours
    assert text.startswith(f"FAILED  seed {report.failure.seed}, after ")
    assert "2 partitions, 1 command, 1 backup" in report.failure.shortest
