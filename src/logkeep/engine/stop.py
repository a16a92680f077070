"""What SIGINT and SIGTERM do while work is running.

A `SignalStop` only raises flags, so it is safe in the middle of any library call; whoever runs the work reads them:

- `requested`: a signal came. A loop that works in rounds ends its round and commits.
- `cancelled`: the work under way must end now. Without `soft` that is the first signal, with it the second.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Self

from logkeep.errors import Interrupted, Terminated

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class SignalStop:
    """Catches signals between `with` and its end, then puts the earlier handlers back."""

    def __init__(self, *, soft: bool = False, notice: str = "") -> None:
        """`notice` is told on standard error when a first signal ends nothing at once."""
        self._needed, self._notice = 2 if soft else 1, notice
        self._count = 0
        self._signal = int(signal.SIGINT)
        self._raises = False
        self._earlier: dict[int, object] = {}
        # The one queue that a signal handler may put into while the same thread waits for it.
        self._bell: SimpleQueue[None] = SimpleQueue()

    @property
    def requested(self) -> bool:
        return self._count > 0

    @property
    def cancelled(self) -> bool:
        return self._count >= self._needed

    def request(self, signal_number: int = signal.SIGINT) -> None:
        """Count one more wish to stop, as a signal does."""
        self._count += 1
        self._signal = int(signal_number)
        self._bell.put(None)

    def error(self) -> Interrupted:
        """The error that ends the run: its exit code tells which signal it was."""
        return Terminated("terminated") if self._signal == signal.SIGTERM else Interrupted("interrupted")

    def check(self) -> None:
        """Raise `error()` if the work shall end. Whoever caught signals for a while asks once more at the end of it:
        one that came behind the last unit's own look would be lost otherwise."""
        if self.cancelled:
            raise self.error()

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Inside, a cancelling signal also raises `error()` at once: for work done in this very thread."""
        earlier, self._raises = self._raises, True
        try:
            yield
        finally:
            self._raises = earlier

    def wait(self, seconds: float) -> None:
        """Sleep so long, or until somebody wishes to stop."""
        if not self.requested:
            with suppress(Empty):
                self._bell.get(timeout=max(seconds, 0.0))

    def __enter__(self) -> Self:
        # Python lets only the main thread handle signals; elsewhere `request` is the way to stop.
        if threading.current_thread() is threading.main_thread():
            self._earlier = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(self, *_exc: object) -> None:
        for number, handler in self._earlier.items():
            # None: the handler was not installed from Python and cannot be put back by it.
            if handler is not None:
                signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal gave us, it takes back
        self._earlier = {}

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self.request(number)
        if self._notice and self._count == 1 and not self.cancelled:
            os.write(2, f"\n{self._notice}\n".encode())  # buffered streams must not be entered twice
        if self._raises and self.cancelled:
            raise self.error()
