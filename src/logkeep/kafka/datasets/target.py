"""Where a dataset is written: a directory or a bucket. Objects are whole or absent.

A file of a directory can be appended to as well (`appended_file`). Names are those of the store. Picklable: a task
opens its own connection.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from logkeep.errors import AlreadyExists, ObjectMissing, VersionMismatch
from logkeep.store.base import ObjectInfo, ObjectMetadata, ObjectWriter, Store

LARGEST_DOCUMENT = 1 << 30
"""Of indexes, groups and documents: more than any dataset has."""


@dataclass(frozen=True)
class DatasetTarget:
    store: Store
    directory: Path | None = None
    """Of a dataset in a directory; None for a bucket."""

    @property
    def url(self) -> str:
        return self.store.url

    @property
    def keeps_metadata(self) -> bool:
        """Whether objects have metadata of their own."""
        return self.directory is None

    def read(self, name: str) -> bytes | None:
        """A small object; None if it is not there."""
        try:
            return self.store.get(name, LARGEST_DOCUMENT)
        except ObjectMissing:
            return None

    def size(self, name: str) -> int | None:
        try:
            return self.store.head(name).size
        except ObjectMissing:
            return None

    def names(self, prefix: str) -> Iterator[ObjectInfo]:
        return self.store.list(prefix)

    def put(self, name: str, data: bytes) -> None:
        """Store a small object under a name, in place of what is there. Raises VersionMismatch if another client does
        the same."""
        try:
            found, info = self.store.get_with_info(name, LARGEST_DOCUMENT)
        except ObjectMissing:
            try:
                self.store.put_new(name, data)
            except AlreadyExists as error:
                raise VersionMismatch("another client has written it meanwhile", subject=name) from error
            return
        if found != data:
            self.store.replace(name, data, info.version)

    def put_file(self, name: str, data: bytes, metadata: ObjectMetadata) -> None:
        """A whole file with records. An object that a killed run left under this name is removed first."""
        self.store.delete(name)
        self.store.put_new(name, data, metadata)

    def open_file(self, name: str, size_hint: int = 0) -> ObjectWriter:
        """The same as a stream, without metadata: it is visible when it is closed."""
        self.store.delete(name)
        return self.store.open_new(name, size_hint)

    def remove(self, name: str) -> None:
        with suppress(ObjectMissing):
            self.store.delete(name)
