"""SIGINT and SIGTERM while work is running, and threads that keep the main thread free for them.

A `SignalStop` only sets flags, so it is safe in the middle of any library call. The code that runs the work reads them:

- `requested`: a signal came. A loop that works in rounds ends its round and commits.
- `cancelled`: the work under way must end now. Without `soft` that is the first signal, with it the second.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Generic, Self, TypeVar

from logkeep.errors import Interrupted, Terminated

T = TypeVar("T")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class SignalStop:
    """Catches signals inside its `with` block, then restores the earlier handlers."""

    def __init__(self, *, soft: bool = False, notice: str = "") -> None:
        """`notice` is printed to standard error when the first signal does not cancel."""
        self._needed, self._notice = 2 if soft else 1, notice
        self._count = 0
        self._signal = int(signal.SIGINT)
        self._raises = False
        self._earlier: dict[int, object] = {}
        # `SimpleQueue` is the only queue that a signal handler may put into while the same thread waits for it.
        self._bell: SimpleQueue[None] = SimpleQueue()

    @property
    def requested(self) -> bool:
        return self._count > 0

    @property
    def cancelled(self) -> bool:
        return self._count >= self._needed

    def request(self, signal_number: int = signal.SIGINT) -> None:
        """Count one more request to stop, as a signal does."""
        self._count += 1
        self._signal = int(signal_number)
        self._bell.put(None)

    def error(self) -> Interrupted:
        """The error that ends the run: its exit code depends on the signal."""
        return Terminated("terminated") if self._signal == signal.SIGTERM else Interrupted("interrupted")

    def check(self) -> None:
        """Raise `error()` if the work was cancelled. Call it once more when signals are no longer caught: one that
        came after the last unit's own check would be lost otherwise."""
        if self.cancelled:
            raise self.error()

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Inside, a cancelling signal also raises `error()` at once: for work done in the main thread."""
        earlier, self._raises = self._raises, True
        try:
            yield
        finally:
            self._raises = earlier

    def wait(self, seconds: float) -> None:
        """Sleep for `seconds`, or until a stop is requested."""
        if not self.requested:
            with suppress(Empty):
                self._bell.get(timeout=max(seconds, 0.0))

    def __enter__(self) -> Self:
        # Python handles signals only in the main thread; elsewhere use `request`.
        if threading.current_thread() is threading.main_thread():
            self._earlier = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(self, *_exc: object) -> None:
        for number, handler in self._earlier.items():
            # None: the handler was not installed from Python and cannot be restored.
            if handler is not None:
                signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal returned
        self._earlier = {}

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self.request(number)
        if self._notice and self._count == 1 and not self.cancelled:
            os.write(2, f"\n{self._notice}\n".encode())  # buffered streams are not reentrant
        if self._raises and self.cancelled:
            raise self.error()


class Background(Generic[T]):
    """Runs a function in a thread of its own. The thread does not keep the process alive."""

    def __init__(self, function: Callable[[], T], thread: Callable[..., threading.Thread] = threading.Thread) -> None:
        self._function = function
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._thread = thread(target=self._run)
        self._thread.daemon = True
        self._thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait until it ends, at most `timeout_s`; return whether it has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def failed(self) -> bool:
        """Whether it has ended with an error, which `result` raises."""
        return self._error is not None

    def result(self) -> T:
        """What the function returned, or raise what it raised. Only after it has ended."""
        if self._error is not None:
            raise self._error
        return self._result[0]

    def _run(self) -> None:
        try:
            self._result.append(self._function())
        except BaseException as error:  # noqa: BLE001  # `result` raises it in the other thread
            self._error = error
