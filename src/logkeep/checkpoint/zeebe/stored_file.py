"""A stored file of a copy, read forward, decompressed where Zeebe compressed it."""

from typing import BinaryIO, cast

from logkeep.errors import Damaged
from logkeep.formats.zeebe.compression import KNOWN, decompressed, read_plain
from logkeep.store.base import Store
from logkeep.store.object_file import open_object

_MOST_TIMES = 1 << 16
"""The largest ratio: that of a segment of zeros. More plain bytes than this are an attack."""


class StoredFileReader:
    """`read(size)` gives the next bytes, fewer only at the end. Raises Damaged, and what the store raises."""

    def __init__(self, store: Store, name: str, size: int, compression: str) -> None:
        if compression and compression not in KNOWN:
            raise Damaged(f"it is compressed with {compression!r}, which this release cannot read", subject=name)
        self._stored = open_object(store, name, size)
        self._plain = decompressed(cast(BinaryIO, self._stored), compression) if compression else None
        self._name, self._left = name, max(size, 1) * _MOST_TIMES

    def read(self, size: int) -> bytes:
        if self._plain is None:
            return self._stored.read(size)
        data = read_plain(self._plain, size, self._name)
        self._left -= len(data)
        if self._left < 0:
            raise Damaged("it is much longer than its compressed bytes can be", subject=self._name)
        return data
