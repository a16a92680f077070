"""The base of wrappers: forwards every call to another store."""

from collections.abc import Iterator, Sequence

from logkeep.store.base import Abilities, ObjectInfo, ObjectMetadata, ObjectWriter, Store


class DelegatingStore:
    """A store that forwards every call to `inner`. Picklable if `inner` is."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    @property
    def url(self) -> str:
        return self.inner.url

    @property
    def abilities(self) -> Abilities:
        return self.inner.abilities

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        self.inner.put_new(name, data, metadata)

    def replace(self, name: str, data: bytes, version: str) -> None:
        self.inner.replace(name, data, version)

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        return self.inner.open_new(name, size_hint)

    def copy_new(self, name: str, to: str) -> None:
        self.inner.copy_new(name, to)

    def get(self, name: str, limit: int) -> bytes:
        return self.inner.get(name, limit)

    def get_with_info(self, name: str, limit: int) -> tuple[bytes, ObjectInfo]:
        return self.inner.get_with_info(name, limit)

    def get_range(self, name: str, start: int, length: int) -> bytes:
        return self.inner.get_range(name, start, length)

    def head(self, name: str) -> ObjectInfo:
        return self.inner.head(name)

    def list(self, prefix: str, after: str = "", foreign: list[str] | None = None) -> Iterator[ObjectInfo]:
        return self.inner.list(prefix, after, foreign)

    def some(self, prefix: str, most: int) -> Sequence[ObjectInfo]:
        return self.inner.some(prefix, most)

    def delete(self, name: str) -> None:
        self.inner.delete(name)


class DelegatingWriter:
    """Forwards every call to another stream."""

    def __init__(self, inner: ObjectWriter) -> None:
        self.inner = inner

    def write(self, data: memoryview | bytes) -> None:
        self.inner.write(data)

    def close(self) -> int:
        return self.inner.close()

    def abort(self) -> None:
        self.inner.abort()
