"""A thread that renews something at a third of its life time, so that long work keeps its lease or hold."""

import threading
from collections.abc import Callable
from types import TracebackType


class Renewal:
    """Calls `renew` every `interval_s` until closed. `renew` returns False when there is nothing left to renew."""

    def __init__(self, renew: Callable[[], bool], interval_s: float) -> None:
        self._renew = renew
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="logkeep-renewal", daemon=True)

    def __enter__(self) -> "Renewal":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            if not self._renew():
                return
