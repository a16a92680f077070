"""A part of a store as a store of its own: every name begins with a prefix that its user does not see."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from logkeep.store.base import Abilities, ObjectInfo, ObjectMetadata, ObjectWriter, Store, safe_name, safe_prefix


class StoreBelow:
    """A store below a prefix of another one. Picklable if `inner` is."""

    def __init__(self, inner: Store, prefix: str) -> None:
        self.inner, self._prefix = inner, safe_prefix(prefix)

    @property
    def url(self) -> str:
        return f"{self.inner.url}/{self._prefix.removesuffix('/')}"

    @property
    def abilities(self) -> Abilities:
        return self.inner.abilities

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        self.inner.put_new(self._whole(name), data, metadata)

    def replace(self, name: str, data: bytes, version: str) -> None:
        self.inner.replace(self._whole(name), data, version)

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        return self.inner.open_new(self._whole(name), size_hint)

    def copy_new(self, name: str, to: str) -> None:
        self.inner.copy_new(self._whole(name), self._whole(to))

    def get(self, name: str, limit: int) -> bytes:
        return self.inner.get(self._whole(name), limit)

    def get_with_info(self, name: str, limit: int) -> tuple[bytes, ObjectInfo]:
        data, info = self.inner.get_with_info(self._whole(name), limit)
        return data, self._own(info)

    def get_range(self, name: str, start: int, length: int) -> bytes:
        return self.inner.get_range(self._whole(name), start, length)

    def head(self, name: str) -> ObjectInfo:
        return self._own(self.inner.head(self._whole(name)))

    def list(self, prefix: str, after: str = "", foreign: list[str] | None = None) -> Iterator[ObjectInfo]:
        begun = f"{self._prefix}{after}" if after else ""
        yield from map(self._own, self.inner.list(self._prefix + safe_prefix(prefix), begun, foreign))

    def some(self, prefix: str, most: int) -> Sequence[ObjectInfo]:
        return [*map(self._own, self.inner.some(self._prefix + safe_prefix(prefix), most))]

    def delete(self, name: str) -> None:
        self.inner.delete(self._whole(name))

    def _whole(self, name: str) -> str:
        return self._prefix + safe_name(name)

    def _own(self, info: ObjectInfo) -> ObjectInfo:
        return replace(info, name=info.name.removeprefix(self._prefix))
