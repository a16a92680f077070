"""Where a dataset is written: a directory or a bucket. Objects are whole or absent.

A file of a directory can be appended to as well (`appended_file`). Names are those of the store. Picklable: a task
opens its own connection.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from logkeep.errors import AlreadyExists, Locked, ObjectMissing, VersionMismatch
from logkeep.store.base import ObjectInfo, ObjectMetadata, ObjectWriter, Store

LARGEST_DOCUMENT = 1 << 30
"""The largest index, file of groups, or document that is read: more than any dataset has."""


@dataclass(frozen=True)
class DatasetTarget:
    store: Store
    directory: Path | None = None
    """The directory of the dataset; None for a bucket."""

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

    def put_after(self, name: str, before: bytes | None, data: bytes) -> None:
        """Store a small object in place of what was read before. Raises Locked if it is no longer the same."""
        with _locked_if_taken(name):
            if before is None:
                self.store.put_new(name, data)
                return
            found, info = self.store.get_with_info(name, LARGEST_DOCUMENT)
            if found != before:
                raise VersionMismatch("another client has written it meanwhile", subject=name)
            if found != data:
                self.store.replace(name, data, info.version)

    def put_file(self, name: str, data: bytes, metadata: ObjectMetadata) -> None:
        """A whole file, with records or with their index. Raises Locked if there is one: a writer begins after all
        files, so another run has written it since."""
        with _locked_if_taken(name):
            self.store.put_new(name, data, metadata)

    def open_file(self, name: str, size_hint: int = 0) -> ObjectWriter:
        """The same as a stream, without metadata: it is visible when it is closed. Stores do not protect its name until
        then."""
        with _locked_if_taken(name):
            if self.size(name) is not None:
                raise AlreadyExists("the name exists already", subject=name)
        return self.store.open_new(name, size_hint)

    def remove(self, name: str) -> None:
        with suppress(ObjectMissing):
            self.store.delete(name)


@contextmanager
def _locked_if_taken(name: str) -> Iterator[None]:
    try:
        yield
    except (AlreadyExists, ObjectMissing, VersionMismatch) as error:
        raise writes_meanwhile(name) from error


def writes_meanwhile(name: str) -> Locked:
    remedy = "wait for it, then run again; the next run continues where the dataset ends"
    return Locked("another run writes this dataset", subject=name, remedy=remedy)
