"""A store in a dictionary, for tests: keeps every promise except durability."""

import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

from logkeep.errors import AlreadyExists, Damaged, ObjectMissing, StoreError, VersionMismatch
from logkeep.model.time import Clock, utc_now
from logkeep.store.base import Abilities, ObjectInfo, ObjectMetadata, safe_name, safe_prefix


class MemoryStore:
    """Safe for threads; `clock` is the store's, so tests can choose the age of objects."""

    abilities = Abilities(put_new=True, replace=True, durable=False)

    def __init__(self, clock: Clock = utc_now, label: str = "memory") -> None:
        self._clock = clock
        self._objects: dict[str, tuple[bytes, ObjectInfo]] = {}
        self._writes = 0
        self._lock = threading.Lock()
        self.url = f"memory://{label}"

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        with self._lock:
            self._put_new(safe_name(name), bytes(data))

    def replace(self, name: str, data: bytes, version: str) -> None:
        with self._lock:
            if self._stored(name)[1].version != version:
                raise VersionMismatch("the object changed since it was read", subject=name)
            self._put(name, bytes(data))

    def open_new(self, name: str, size_hint: int = 0) -> "MemoryWriter":
        return MemoryWriter(self, safe_name(name))

    def copy_new(self, name: str, to: str) -> None:
        data = self._stored(name)[0]
        with self._lock:
            self._put(safe_name(to), data)

    def get(self, name: str, limit: int) -> bytes:
        return self.get_with_info(name, limit)[0]

    def get_with_info(self, name: str, limit: int) -> tuple[bytes, ObjectInfo]:
        data, info = self._stored(name)
        if len(data) > limit:
            raise Damaged(f"it has {len(data)} bytes; at most {limit} are allowed", subject=name)
        return data, info

    def get_range(self, name: str, start: int, length: int) -> bytes:
        data = self._stored(name)[0][start : start + length]
        if len(data) != length:
            raise Damaged(f"it ends before byte {start + length}", subject=name)
        return data

    def head(self, name: str) -> ObjectInfo:
        return self._stored(name)[1]

    def list(self, prefix: str, after: str = "", foreign: list[str] | None = None) -> Iterator[ObjectInfo]:
        safe_prefix(prefix)
        with self._lock:
            found = sorted(name for name in self._objects if name.startswith(prefix) and name > after)
            infos = [self._objects[name][1] for name in found]
        yield from infos

    def some(self, prefix: str, most: int) -> Sequence[ObjectInfo]:
        return [*islice(self.list(prefix), most)]

    def delete(self, name: str) -> None:
        with self._lock:
            self._objects.pop(safe_name(name), None)

    def finish(self, name: str, data: bytes) -> None:
        """Called by a stream at its end."""
        with self._lock:
            self._put_new(name, data)

    def _stored(self, name: str) -> tuple[bytes, ObjectInfo]:
        try:
            return self._objects[safe_name(name)]
        except KeyError:
            raise ObjectMissing("no such object", subject=name) from None

    def _put_new(self, name: str, data: bytes) -> None:
        if name in self._objects:
            raise AlreadyExists("the name exists already", subject=name)
        self._put(name, data)

    def _put(self, name: str, data: bytes) -> None:
        self._writes += 1
        now: datetime = self._clock()
        self._objects[name] = (data, ObjectInfo(name=name, size=len(data), modified=now, version=str(self._writes)))


class MemoryWriter:
    """A stream into a MemoryStore."""

    def __init__(self, store: MemoryStore, name: str) -> None:
        self._store = store
        self._name = name
        self._chunks: list[bytes] | None = []

    def write(self, data: memoryview | bytes) -> None:
        if self._chunks is None:
            raise StoreError("the stream is closed", subject=self._name)
        self._chunks.append(bytes(data))

    def close(self) -> int:
        if self._chunks is None:
            raise StoreError("the stream is closed", subject=self._name)
        data = b"".join(self._chunks)
        self._chunks = None
        self._store.finish(self._name, data)
        return len(data)

    def abort(self) -> None:
        self._chunks = None
