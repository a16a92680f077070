"""A signal that comes when the last unit is done is obeyed, not forgotten with whoever caught it."""

import os
import signal
from collections.abc import Callable

import msgspec
import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.engine.threads import ThreadedEngine
from logkeep.errors import Interrupted, Terminated
from logkeep.model.work import Engine, NoProgress, Progress, ProgressSink


class Done(msgspec.Struct, frozen=True):
    number: int


class LateSignal(NoProgress):
    """The sink is finished behind the last look of any unit, while signals are still caught."""

    def __init__(self, number: int) -> None:
        self.number = number

    def finish(self) -> None:
        os.kill(os.getpid(), self.number)


def work(unit: int, _progress: Progress) -> Done:
    return Done(unit)


@pytest.mark.parametrize("made", [lambda sink: ThreadedEngine(2, sink=sink), lambda sink: InlineEngine(sink=sink)])
@pytest.mark.parametrize(("number", "error"), [(signal.SIGTERM, Terminated), (signal.SIGINT, Interrupted)])
def test_it_ends_the_work(made: Callable[[ProgressSink], Engine], number: int, error: type[Interrupted]) -> None:
    before = signal.getsignal(number)
    with pytest.raises(error):
        made(LateSignal(number)).map(work, [1, 2, 3], Done, label="x", weight=lambda _: 1)
    assert signal.getsignal(number) is before
