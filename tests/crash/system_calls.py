"""Calls to the system, counted in this process: it dies right before or right after one of them."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any


class SystemCalls:
    """`names`: of functions of `os`. `tell` leaves the count in a file, for a parent to know how many there are."""

    def __init__(
        self, names: tuple[str, ...], die_at: int, told: Path | None = None, instead: Callable[[], None] | None = None
    ) -> None:
        """`instead`: what is done at that call, if the process goes on."""
        self._names, self._count, self._die_at, self._told, self._instead = names, 0, die_at, told, instead

    @property
    def count(self) -> int:
        """Before and after each call."""
        return self._count

    def watch(self) -> None:
        for name in self._names:
            setattr(os, name, self.watched(getattr(os, name)))

    def tell(self) -> None:
        if self._told is not None:
            self._told.write_text(str(self._count))

    def watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self._step()
            result = call(*arguments, **named)
            self._step()
            return result

        return counted

    def _step(self) -> None:
        self._count += 1
        if self._count == self._die_at and self._instead is not None:
            self._instead()
        elif self._count == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)
