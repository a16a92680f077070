"""A wrapper that limits the rate: `--limit-upload` and `--limit-download` in bytes per second.

A call may go at once as long as no debt is left; what it moved becomes debt, and the call returns when the debt is
paid. So the average holds for objects of any size, and a small object after a pause does not wait.
"""

import pickle
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from logkeep.errors import UsageError
from logkeep.store.base import ObjectInfo, ObjectMetadata, ObjectWriter, Store
from logkeep.store.wrapper import DelegatingStore, DelegatingWriter

_BURST_S = 0.25
"""How much unused time may accumulate: enough to even out small objects, too little for a visible spike."""


T = TypeVar("T")
_shares: ContextVar[int] = ContextVar("shares", default=1)
"""The number of processes among which a limit is divided when it is pickled."""


class TokenBucket:
    """A token bucket that threads share. Tests pass `monotonic` and `sleep`."""

    def __init__(
        self,
        bytes_per_s: int,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if bytes_per_s < 1:
            raise UsageError(
                "a rate limit must be at least 1 byte per second", remedy="leave the option out for no limit"
            )
        self._rate = bytes_per_s
        self._monotonic = monotonic
        self._sleep = sleep
        self._paid_until = monotonic()
        self._lock = threading.Lock()

    def pay(self, size_bytes: int) -> None:
        """Account for the bytes and wait until they fit the rate."""
        with self._lock:
            now = self._monotonic()
            self._paid_until = max(self._paid_until, now - _BURST_S) + size_bytes / self._rate
            wait_s = self._paid_until - now
        if wait_s > 0:
            self._sleep(wait_s)

    def __getstate__(self) -> dict[str, Any]:
        state = {key: value for key, value in self.__dict__.items() if key != "_lock"}
        return state | {"_rate": max(self._rate // _shares.get(), 1)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
        self._paid_until = self._monotonic()  # another process has another monotonic clock


class ThrottledStore(DelegatingStore):
    """Limits per process; `shared_by` divides them among several. None = no limit."""

    def __init__(self, inner: Store, upload: TokenBucket | None = None, download: TokenBucket | None = None) -> None:
        super().__init__(inner)
        self._upload = upload
        self._download = download

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        self.inner.put_new(name, data, metadata)
        _pay(self._upload, len(data))

    def replace(self, name: str, data: bytes, version: str) -> None:
        self.inner.replace(name, data, version)
        _pay(self._upload, len(data))

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        return ThrottledWriter(self.inner.open_new(name, size_hint), self._upload)

    def get(self, name: str, limit: int) -> bytes:
        data = self.inner.get(name, limit)
        _pay(self._download, len(data))
        return data

    def get_with_info(self, name: str, limit: int) -> tuple[bytes, ObjectInfo]:
        data, info = self.inner.get_with_info(name, limit)
        _pay(self._download, len(data))
        return data, info

    def get_range(self, name: str, start: int, length: int) -> bytes:
        data = self.inner.get_range(name, start, length)
        _pay(self._download, len(data))
        return data


def shared_by(units: list[T], processes: int) -> list[T]:
    """The same units, whatever they hold, for several processes that together keep the limits of their stores.

    The units are pickled, as for any other process, and each limit in them becomes an equal share.
    """
    if processes <= 1:
        return units
    token = _shares.set(processes)
    try:
        divided: list[T] = pickle.loads(pickle.dumps(units))  # noqa: S301  what this process has just made
    finally:
        _shares.reset(token)
    return divided


class ThrottledWriter(DelegatingWriter):
    """Limits the rate of one stream."""

    def __init__(self, inner: ObjectWriter, upload: TokenBucket | None) -> None:
        super().__init__(inner)
        self._upload = upload

    def write(self, data: memoryview | bytes) -> None:
        self.inner.write(data)
        _pay(self._upload, memoryview(data).nbytes)


def _pay(pace: TokenBucket | None, size_bytes: int) -> None:
    if pace is not None:
        pace.pay(size_bytes)
