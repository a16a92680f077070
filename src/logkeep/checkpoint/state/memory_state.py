"""State in dictionaries, for tests and simulations. It survives nothing; a snapshot is a file of msgpack."""

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from logkeep.checkpoint.state.backend import NOTHING, SnapshotInfo, Write
from logkeep.errors import Damaged


class _Content(msgspec.Struct, array_like=True):
    position: int = NOTHING
    state: dict[str, bytes] = msgspec.field(default_factory=dict)
    system: dict[str, bytes] = msgspec.field(default_factory=dict)


class MemoryState:
    """One partition's state in this process."""

    def __init__(self) -> None:
        self._content, self._lock = _Content(), threading.Lock()

    @property
    def position(self) -> int:
        return self._content.position

    def get(self, key: str) -> bytes | None:
        return self._content.state.get(key)

    def get_system(self, key: str) -> bytes | None:
        return self._content.system.get(key)

    def apply(self, position: int, writes: Sequence[Write], system: Sequence[Write]) -> None:
        if position < self._content.position:
            raise ValueError(f"position {position} after {self._content.position}")
        with self._lock:
            _apply(self._content.state, writes)
            _apply(self._content.system, system)
            self._content.position = position

    def items(self) -> Iterator[tuple[str, bytes]]:
        return iter(sorted(self._content.state.items(), key=_by_bytes))

    def system_items(self) -> Iterator[tuple[str, bytes]]:
        return iter(sorted(self._content.system.items(), key=_by_bytes))

    def snapshot(self, path: Path) -> SnapshotInfo:
        with self._lock:
            data, position = msgspec.msgpack.encode(self._content), self._content.position
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return SnapshotInfo(position, len(data))

    def load(self, path: Path) -> None:
        try:
            self._content = msgspec.msgpack.decode(path.read_bytes(), type=_Content)
        except msgspec.MsgspecError as error:
            raise Damaged(f"this is not a snapshot ({error})", subject=str(path)) from error

    def close(self) -> None:
        """There is nothing to release."""


def _apply(target: dict[str, bytes], writes: Sequence[Write]) -> None:
    for key, value in writes:
        if value is None:
            target.pop(key, None)
        else:
            target[key] = value


def _by_bytes(item: tuple[str, bytes]) -> bytes:
    return item[0].encode()
