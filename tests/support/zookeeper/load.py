"""A load on real servers: several sessions that come and go, and a mixture of everything that can be asked.

It can be held at a point where no request is on its way (`paused`), so that the tree stands still and can be looked
at; its sessions stay alive meanwhile. A server that goes away is left for the next one, as clients do.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Self

from tests.support.zookeeper.load_operations import Operations
from tests.support.zookeeper.raw_client import RawSession

SESSIONS = 4
BATCH = 50
_LIFE_BATCHES = 12
"""After so many batches a session ends, and another one takes its place."""
_PING_S = 0.5
_PATIENCE_S = 120.0


class Load:
    """`with Load(["127.0.0.1:2181"], password, line=(3, 9)) as load:` runs in a thread of its own until the end.

    `line` is that of the oldest server. `most_per_s` holds it back to so many operations in a second. `multis`: also
    those that work (see `startable`). Or call `step` without starting it, for one batch after the other.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        password: str,
        *,
        line: tuple[int, int],
        seed: int = 1,
        most_per_s: int | None = None,
        payload_bytes: int = 100,
        batch: int = BATCH,
        session_ms: int = 10_000,
        multis: bool = True,
    ) -> None:
        self._hosts, self._password, self._batch, self._session_ms = list(hosts), password, batch, session_ms
        self._operations = Operations(f"/load{seed}", seed, line, payload_bytes, multis=multis)
        self._most_per_s = most_per_s
        self._sessions: list[RawSession] = []
        self._opened = self._steps = 0
        self.operations = self.transactions = self.zxid = 0
        """What was answered so far; `zxid` is the highest one in an answer. Refusals are transactions too."""
        self.ran_s = 0.0
        """How long it ran, without the time in which it was held."""
        self._changed = threading.Condition()
        self._held = 0
        self._idle = self._ending = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="load")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it and its sessions, with the ephemerals; raises what went wrong in it."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()
        self.close()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        for session in self._sessions:
            session.close()
        self._sessions = []

    @contextmanager
    def paused(self) -> Iterator[None]:
        """No request is on its way inside."""
        with self._changed:
            self._held += 1
            self._wait(lambda: self._idle)
        try:
            yield
        finally:
            with self._changed:
                self._held -= 1
                self._changed.notify_all()

    def wait_for(self, more: int) -> None:
        """Until so many more transactions were answered."""
        with self._changed:
            goal = self.transactions + more
            self._wait(lambda: self.transactions >= goal)

    def step(self) -> None:
        """One batch on every session, all on their way at once."""
        self._fill()
        batches = [[self._operations.next_op() for _ in range(self._batch)] for _ in self._sessions]
        for session, batch in zip(self._sessions, batches, strict=True):
            session.send(batch)
        answered = operations = 0
        for session, batch in zip(self._sessions, batches, strict=True):
            for op, reply in zip(batch, session.receive(len(batch)), strict=True):
                self._operations.saw(op, reply)
                operations += op.operations
                self.zxid = max(self.zxid, reply.zxid)
            answered += len(batch)
        with self._changed:
            self.operations += operations
            self.transactions += answered
            self._changed.notify_all()
        self._steps += 1

    def _fill(self) -> None:
        """Have all sessions; now and then the oldest one has lived long enough."""
        if self._sessions and self._steps % _LIFE_BATCHES == _LIFE_BATCHES - 1:
            self._sessions.pop(0).close()
        while len(self._sessions) < SESSIONS:
            host = self._hosts[self._opened % len(self._hosts)]
            self._opened += 1
            session = RawSession(host, timeout_ms=self._session_ms, password=self._password)
            self._sessions.append(session)
            if self._opened == 1 or self.transactions == 0:
                session.do(*self._operations.first())

    def _run(self) -> None:
        try:
            while not self._ending:
                self._stand_still_if_held()
                began = self.operations, time.monotonic()
                try:
                    self.step()
                except OSError:
                    self._lose()
                self._hold_back(*began)
                self.ran_s += time.monotonic() - began[1]
        except BaseException as error:  # noqa: BLE001 - raised again by stop(), in the test's own thread
            self._failure = error
        finally:
            with self._changed:
                self._idle = self._ending = True
                self._changed.notify_all()

    def _stand_still_if_held(self) -> None:
        with self._changed:
            while self._held and not self._ending:
                if not self._idle:
                    self._idle = True
                    self._changed.notify_all()
                self._changed.wait(_PING_S)
                self._ping()
            self._idle = False

    def _ping(self) -> None:
        with suppress(OSError):
            for session in self._sessions:
                session.ping()

    def _lose(self) -> None:
        """A server went away, or does not serve yet. What was on its way may have happened or not."""
        for session in self._sessions:
            session.abandon()
        self._sessions = []
        with self._changed:
            self._changed.wait(0.1)

    def _hold_back(self, operations: int, began_s: float) -> None:
        if self._most_per_s is None:
            return
        with self._changed:
            until_s = began_s + (self.operations - operations) / self._most_per_s
            while not self._ending and (left := until_s - time.monotonic()) > 0:
                self._changed.wait(left)

    def _wait(self, condition: Callable[[], bool]) -> None:
        assert self._changed.wait_for(lambda: condition() or self._failure is not None, _PATIENCE_S), "no progress"
        assert self._failure is None, f"the load failed: {self._failure!r}"
