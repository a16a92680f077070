"""The shipped repository over a store in memory that fails by chance, before the effect of a call or after it."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TypeVar

from logkeep.errors import AlreadyExists, StoreUnreachable, VersionMismatch
from logkeep.model.time import Clock
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.format import StoreFacts, create
from logkeep.store.base import ObjectInfo, ObjectMetadata, ObjectWriter
from logkeep.store.memory import MemoryStore
from logkeep.store.wrapper import DelegatingStore, DelegatingWriter

ValueT = TypeVar("ValueT")
_TRIES = 3
_LARGEST = 1 << 30
_repositories = count(1)


class SimRepository:
    """One repository, and a folder for the files of the processes that use it. Restored worlds share it."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder, self._number, self._numbers = folder, next(_repositories), count(1)
        self._store = MemoryStore(clock)
        facts = StoreFacts(put_new=True, replace=True, durable=True)
        self._id = create(self._store, facts, clock(), self.token).repository
        self._source = "shop"

    def token(self) -> str:
        """Never repeated in this process: it remembers which runs left a lease behind."""
        return f"{self._number:08x}{next(self._numbers):08x}"

    def place(self) -> SourceRef:
        """Without faults."""
        return SourceRef(self._store, self._id, self._source)

    def place_with_faults(self, fail: Callable[[], None]) -> SourceRef:
        return SourceRef(_UnsteadyStore(self._store, fail), self._id, self._source)


class _UnsteadyStore(DelegatingStore):
    """Each call is tried a few times, as the shipped stores do. `fail` raises StoreUnreachable or not."""

    def __init__(self, inner: MemoryStore, fail: Callable[[], None]) -> None:
        super().__init__(inner)
        self._fail = fail

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        self._again(lambda: self._own(name, data, lambda: self.inner.put_new(name, data, metadata)))

    def replace(self, name: str, data: bytes, version: str) -> None:
        self._again(lambda: self._own(name, data, lambda: self.inner.replace(name, data, version)))

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        return _UnsteadyWriter(self._again(lambda: self.inner.open_new(name, size_hint)), self._fail)

    def get(self, name: str, limit: int) -> bytes:
        return self._again(lambda: self.inner.get(name, limit))

    def get_with_info(self, name: str, limit: int) -> tuple[bytes, ObjectInfo]:
        return self._again(lambda: self.inner.get_with_info(name, limit))

    def get_range(self, name: str, start: int, length: int) -> bytes:
        return self._again(lambda: self.inner.get_range(name, start, length))

    def head(self, name: str) -> ObjectInfo:
        return self._again(lambda: self.inner.head(name))

    def list(self, prefix: str, after: str = "", foreign: list[str] | None = None) -> Iterator[ObjectInfo]:
        return iter(self._again(lambda: [*self.inner.list(prefix, after, foreign)]))

    def delete(self, name: str) -> None:
        self._again(lambda: self.inner.delete(name))

    def _own(self, name: str, data: bytes, put: Callable[[], None]) -> None:
        """Writers have something of their own in the bytes: equal ones are those of an earlier try."""
        try:
            put()
        except (AlreadyExists, VersionMismatch):
            if self.inner.get(name, _LARGEST) != data:
                raise

    def _again(self, call: Callable[[], ValueT]) -> ValueT:
        for _ in range(_TRIES - 1):
            try:
                return self._once(call)
            except StoreUnreachable:
                continue
        return self._once(call)

    def _once(self, call: Callable[[], ValueT]) -> ValueT:
        self._fail()
        result = call()
        self._fail()
        return result


class _UnsteadyWriter(DelegatingWriter):
    def __init__(self, inner: ObjectWriter, fail: Callable[[], None]) -> None:
        super().__init__(inner)
        self._fail = fail

    def close(self) -> int:
        self._fail()
        size = self.inner.close()
        self._fail()
        return size
