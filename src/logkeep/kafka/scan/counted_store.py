"""A store that counts what a scan reads through it."""

from logkeep.kafka.scan.values import ScanCounters
from logkeep.store.base import ObjectInfo, Store
from logkeep.store.wrapper import DelegatingStore


class CountedStore(DelegatingStore):
    """Counts requests for objects, and the bytes of their answers."""

    def __init__(self, inner: Store, counters: ScanCounters) -> None:
        super().__init__(inner)
        self._counters = counters

    def get(self, name: str, limit: int) -> bytes:
        return self._counted(super().get(name, limit))

    def get_with_info(self, name: str, limit: int) -> tuple[bytes, ObjectInfo]:
        data, info = super().get_with_info(name, limit)
        return self._counted(data), info

    def get_range(self, name: str, start: int, length: int) -> bytes:
        return self._counted(super().get_range(name, start, length))

    def _counted(self, data: bytes) -> bytes:
        self._counters.requests += 1
        self._counters.stored_bytes += len(data)
        return data
