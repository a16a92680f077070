"""A function running in a thread of its own, so that the main thread stays free for signals and progress."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """Runs at once. The thread does not keep the process alive."""

    def __init__(self, function: Callable[[], T], thread: Callable[..., threading.Thread] = threading.Thread) -> None:
        self._function = function
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._thread = thread(target=self._run)
        self._thread.daemon = True
        self._thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait until it ends, at most so long; tell whether it has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def result(self) -> T:
        """What the function returned, or raise what it raised. Only after it has ended."""
        if self._error is not None:
            raise self._error
        return self._result[0]

    def _run(self) -> None:
        try:
            self._result.append(self._function())
        except BaseException as error:  # noqa: BLE001  # nothing is swallowed: `result` raises it in the other thread
            self._error = error
