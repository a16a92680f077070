"""A wrapper that refuses every write, for `list`, `info`, `status`, `receipts` and other verbs that only read."""

from datetime import datetime
from typing import NoReturn

from logkeep.errors import StoreDenied
from logkeep.store.base import Abilities, ObjectInfo, ObjectMetadata, ObjectWriter, sweepable
from logkeep.store.wrapper import DelegatingStore


class ReadOnlyStore(DelegatingStore):
    """Reads are forwarded; writes raise StoreDenied before anything reaches the store."""

    @property
    def abilities(self) -> Abilities:
        return Abilities(put_new=False, replace=False, durable=self.inner.abilities.durable)

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        _refuse(name)

    def replace(self, name: str, data: bytes, version: str) -> None:
        _refuse(name)

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        _refuse(name)

    def copy_new(self, name: str, to: str) -> None:
        _refuse(to)

    def delete(self, name: str) -> None:
        _refuse(name)

    def stale_partials(self, older_than: datetime) -> list[ObjectInfo]:
        below = sweepable(self.inner)
        return below.stale_partials(older_than) if below else []

    def sweep_partials(self, older_than: datetime) -> int:
        _refuse(self.url)

    def remove_empty(self, prefix: str) -> None:
        _refuse(prefix)


def _refuse(subject: str) -> NoReturn:
    raise StoreDenied("the store was opened for reading only", subject=subject, remedy="use a verb that may write")
