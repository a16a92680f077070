"""Run the repository's state machine: a short walk in `make test`, a long one in `make soak`."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.repository_machine import Machine

_UNTIMED = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


def test_any_order_of_operations_keeps_every_backup() -> None:
    run_state_machine_as_test(Machine, settings=settings(_UNTIMED, max_examples=12, stateful_step_count=20))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_long_walks_keep_every_backup() -> None:
    examples, steps = 40, 40
    run_state_machine_as_test(Machine, settings=settings(_UNTIMED, max_examples=examples, stateful_step_count=steps))
    print(f"state machine: {examples} walks of up to {steps} steps, every backup read back")


def test_a_reader_keeps_parts_that_were_merged_before_it_began_and_again_later() -> None:
    machine = Machine()
    machine.create()
    machine.back_up(6, 2)
    machine.back_up(0, 3)
    machine.merge_two_segments(24)
    machine.a_reader_begins(8)
    for choice in (3, 5, 49):
        machine.merge_two_segments(choice)
    machine.back_up(1, 0)
    machine.collect_garbage(34)
    machine.collect_garbage(17)
    machine.teardown()
