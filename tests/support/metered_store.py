"""A store that counts calls, failed calls and bytes by operation."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from logkeep.errors import LogkeepError
from logkeep.store.base import ObjectInfo, ObjectMetadata, ObjectWriter, Store
from logkeep.store.wrapper import DelegatingStore, DelegatingWriter

T = TypeVar("T")


@dataclass(frozen=True)
class Usage:
    """What went through a meter until now, by operation (`put_new`, `get`, `write`, …)."""

    calls: dict[str, int]
    failed: dict[str, int]
    bytes_up: int
    bytes_down: int


class Meter:
    """Counters that threads share. A pickled copy counts for itself from where it was copied."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._up = 0
        self._down = 0
        self._lock = threading.Lock()

    def count(self, operation: str, *, up: int = 0, down: int = 0, failed: bool = False) -> None:
        with self._lock:
            self._calls[operation] += 1
            self._failed[operation] += failed
            self._up += up
            self._down += down

    def usage(self) -> Usage:
        with self._lock:
            return Usage(dict(self._calls), dict(+self._failed), self._up, self._down)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()


class MeteredStore(DelegatingStore):
    """Counts every call that passes; bytes only of calls that succeeded."""

    def __init__(self, inner: Store, meter: Meter | None = None) -> None:
        super().__init__(inner)
        self.meter = meter or Meter()

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        _counted(self.meter, "put_new", lambda: self.inner.put_new(name, data, metadata), up=len(data))

    def replace(self, name: str, data: bytes, version: str) -> None:
        _counted(self.meter, "replace", lambda: self.inner.replace(name, data, version), up=len(data))

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        return MeteredWriter(_counted(self.meter, "open_new", lambda: self.inner.open_new(name, size_hint)), self.meter)

    def get(self, name: str, limit: int) -> bytes:
        return _counted(self.meter, "get", lambda: self.inner.get(name, limit), size=len)

    def get_with_info(self, name: str, limit: int) -> tuple[bytes, ObjectInfo]:
        return _counted(self.meter, "get", lambda: self.inner.get_with_info(name, limit), size=lambda r: len(r[0]))

    def get_range(self, name: str, start: int, length: int) -> bytes:
        return _counted(self.meter, "get_range", lambda: self.inner.get_range(name, start, length), size=len)

    def head(self, name: str) -> ObjectInfo:
        return _counted(self.meter, "head", lambda: self.inner.head(name))

    def list(self, prefix: str, after: str = "", foreign: list[str] | None = None) -> Iterator[ObjectInfo]:
        failed = False
        try:
            yield from self.inner.list(prefix, after, foreign)
        except LogkeepError:
            failed = True
            raise
        finally:  # also when the reader stops in the middle
            self.meter.count("list", failed=failed)

    def delete(self, name: str) -> None:
        _counted(self.meter, "delete", lambda: self.inner.delete(name))


class MeteredWriter(DelegatingWriter):
    """Counts writes and the close of one stream."""

    def __init__(self, inner: ObjectWriter, meter: Meter) -> None:
        super().__init__(inner)
        self._meter = meter

    def write(self, data: memoryview | bytes) -> None:
        _counted(self._meter, "write", lambda: self.inner.write(data), up=memoryview(data).nbytes)

    def close(self) -> int:
        return _counted(self._meter, "close", self.inner.close)


def _counted(
    meter: Meter, operation: str, call: Callable[[], T], *, up: int = 0, size: Callable[[T], int] | None = None
) -> T:
    try:
        result = call()
    except LogkeepError:
        meter.count(operation, failed=True)
        raise
    meter.count(operation, up=up, down=size(result) if size else 0)
    return result
