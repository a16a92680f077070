"""How many parts of uploads may be in flight: one limit of memory for all streams of a process.

A stream holds one part that is being filled and those that are being sent. A single stream gets enough of them to keep
a distant store busy; each further one gets half of what is left, and at least one, so that every stream makes progress.
"""

import threading

_TOTAL_BYTES = 160 << 20
_MOST_PARTS = 8


class UploadMemory:
    """Shared by the streams of a process; safe for threads."""

    def __init__(self, total_bytes: int = _TOTAL_BYTES) -> None:
        self._left = total_bytes
        self._lock = threading.Lock()

    def take(self, part_bytes: int) -> "PartsInFlight":
        """Memory for one more stream with parts of this size."""
        with self._lock:
            parts = max(1, min(_MOST_PARTS, self._left // part_bytes // 2))
            self._left -= (parts + 1) * part_bytes
        return PartsInFlight(self, parts, (parts + 1) * part_bytes)

    def give_back(self, size_bytes: int) -> None:
        with self._lock:
            self._left += size_bytes


class PartsInFlight:
    """The memory that one stream may use."""

    def __init__(self, memory: UploadMemory, parts: int, size_bytes: int) -> None:
        self.parts = parts
        self._memory, self._size_bytes = memory, size_bytes

    def release(self) -> None:
        """Harmless a second time."""
        size_bytes, self._size_bytes = self._size_bytes, 0
        self._memory.give_back(size_bytes)


OF_THIS_PROCESS = UploadMemory()
