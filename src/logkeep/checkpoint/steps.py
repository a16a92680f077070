"""Work with pauses as a generator of steps, so that tests can stop, reorder or fail it between any two effects.

Code that changes something durable or remote is a generator: it yields a step before and after each such effect. In
production `run` executes it in a thread. The simulator resumes generators in any order, drops them, or raises an
error of the store inside. Nothing here reads a clock; `Wait` is a step that asks for a pause.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

from logkeep.errors import Interrupted


@dataclass(frozen=True)
class Wait:
    """A step that asks to be resumed after a pause."""

    seconds: float


Step = str | Wait
"""A short label of what was done or comes next, or a pause."""
Result = TypeVar("Result")
Steps = Generator[Step, None, Result]
Pause = Callable[[float], bool]
"""Waits that many seconds; whether the work should stop now. `threading.Event().wait` is one."""


def run(steps: Steps[Result], pause: Pause, watch: Callable[[str], None] = lambda _: None) -> Result:
    """Execute all steps. Raises Interrupted, inside the generator first, once `pause` says so.

    `watch` gets each label: tests use it to end the process at a step.
    """
    stopped = False
    try:
        while True:
            step = next(steps)
            if not isinstance(step, Wait):
                watch(step)
            if not stopped and pause(step.seconds if isinstance(step, Wait) else 0):
                stopped = True
                steps.throw(Interrupted("the work was stopped"))
    except StopIteration as ended:
        result: Result = ended.value
        return result
