"""The verdict of a drill of an application."""

from logkeep.application.drill import DrilledPartition
from logkeep.cli.verbs.application.drill import judge
from logkeep.repository.restores import RestoreVerdict


def opened(partition: int, *, proven: bool, compared: bool = True) -> DrilledPartition:
    return DrilledPartition(partition=partition, replayed_to=7, proven=proven, compared=compared)


def test_one_other_state_fails_the_drill_and_is_named() -> None:
    verdict, findings = judge([opened(0, proven=True), opened(1, proven=False)])
    assert verdict is RestoreVerdict.FAILED
    assert [(each.code, each.where) for each in findings] == [("state-differs", "partition 1")]


def test_a_state_that_cannot_be_compared_is_not_called_proven() -> None:
    assert judge([opened(0, proven=True), opened(1, proven=False, compared=False)]) == (RestoreVerdict.UNPROVEN, ())
    assert judge([opened(0, proven=True)]) == (RestoreVerdict.PROVEN, ())
