"""Where tasks put the files of a bundle that is being written: under names of their own, whole and synced."""

from dataclasses import dataclass

from logkeep.formats.zookeeper.names import log_name
from logkeep.model.segments import Codec
from logkeep.model.time import TokenSource, random_token
from logkeep.store.local import LocalStore
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.model.packing import DEFAULT_LEVEL, StoredWriter


@dataclass(frozen=True)
class BundleShelf:
    """A token behind each name keeps an attempt that was given up from standing in the way of the next one."""

    store: LocalStore
    codec: Codec
    level: int = DEFAULT_LEVEL
    tokens: TokenSource = random_token

    def open_snapshot(self, member: str, history: str, name: str, zxid: int, *, packed: bool) -> StoredWriter:
        return self._opened(f"{layout.SNAPSHOTS}/{name}", Codec.NONE if packed else self.codec)

    def open_damaged(self, member: str, history: str, name: str, zxid: int) -> StoredWriter:
        return self._opened(f"{layout.DAMAGED}/{name}", Codec.NONE)

    def open_log(self, member: str, history: str, first: int, *, tail: bool = False) -> StoredWriter:
        return self._opened(f"{layout.TXNLOGS}/{log_name(first)}", self.codec)

    def _opened(self, name: str, codec: Codec) -> StoredWriter:
        token = self.tokens()
        stored = f"{name}.{token}"
        return StoredWriter(self.store.open_new(stored), stored, token, codec, self.level)
