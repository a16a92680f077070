"""Processes as threads of which exactly one runs. Which one goes on next follows from the seed."""

import threading
from collections.abc import Callable
from random import Random

_STAY, _SLOW, _LONG = 0.6, 0.08, 50
"""How often a process goes on at a point where another might, how often its call is slow, and for how many turns."""


class Killed(BaseException):
    """This process was killed: no call of a client has an effect any more."""


class Turn:
    """One process."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.go = threading.Semaphore(0)
        self.killed = self.ended = False
        self.error: BaseException | None = None
        self.work = work


class Turns:
    """The scheduler. `events`: what happens beside the processes at each tick."""

    def __init__(self, choose: Random) -> None:
        self.choose, self.tick = choose, 0
        self._turns: list[Turn] = []
        self._back = threading.Semaphore(0)
        self.current: Turn | None = None

    def spawn(self, work: Callable[[], None]) -> Turn:
        turn = Turn(work)
        self._turns.append(turn)
        threading.Thread(target=self._body, args=(turn,), daemon=True).start()
        return turn

    def here(self) -> None:
        """A point at which another process may go on."""
        if self.choose.random() >= _STAY:
            for _ in range(self.choose.randrange(_LONG) if self.choose.random() < _SLOW else 1):
                self.others()
        elif self.current is not None and self.current.killed:
            raise Killed

    def others(self) -> None:
        """Wait for the next turn."""
        me = self.current
        assert me is not None
        if me.killed:
            raise Killed
        self._back.release()
        me.go.acquire()
        if me.killed:
            raise Killed

    def run(self, done: Callable[[], bool], events: Callable[[], None]) -> None:
        """One turn after another. Raises what a process raised."""
        while not done():
            self.tick += 1
            events()
            self._next(self.choose.choice([turn for turn in self._turns if not turn.ended]))

    def end(self) -> None:
        """Kill all processes that are left."""
        for turn in [turn for turn in self._turns if not turn.ended]:
            turn.killed = True
            while not turn.ended:
                self._next(turn)

    def _next(self, turn: Turn) -> None:
        self.current = turn
        turn.go.release()
        self._back.acquire()
        self.current = None
        if turn.ended:
            self._turns.remove(turn)
        if turn.error is not None:
            raise turn.error

    def _body(self, turn: Turn) -> None:
        turn.go.acquire()
        try:
            if not turn.killed:
                turn.work()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - raised by the scheduler, in the thread of the test
            turn.error = error
        turn.ended = True
        self._back.release()
