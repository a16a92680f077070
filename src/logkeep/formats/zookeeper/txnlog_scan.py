"""Scans a transaction log: good records, damage, and the good records after it.

Called by `txnlog.scan`, which documents the promises.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.zookeeper import txnlog_kernels as kernels
from logkeep.formats.zookeeper.scanned_log import HEADER, DamageKind, LogDamage, Padding, RecordStretch, ScannedLog
from logkeep.formats.zookeeper.transactions import decode
from logkeep.formats.zookeeper.txnlog_kernels import Longs
from logkeep.formats.zookeeper.window import ByteWindow

MOST_DAMAGE: Final = 1000
"""A deep scan reports at most this many damaged places."""
_EFFORT: Final = 256 << 20
"""How many bytes are checksummed without success before the search for a good record ends."""
_EFFORT_PER_STEP: Final = 4096
_NO_ROWS: Final = np.empty((0, kernels.ROW_COLUMNS), np.int64)
_KINDS: Final = {
    kernels.BAD_LENGTH: DamageKind.LENGTH,
    kernels.BAD_CHECKSUM: DamageKind.CHECKSUM,
    kernels.BAD_END_MARK: DamageKind.END_MARK,
    kernels.BAD_ORDER: DamageKind.ORDER,
}

Sink = Callable[[memoryview], object]


def obtained(window: ByteWindow, needed: int) -> bool:
    """Read what `walk` needs: a frame, or a record, which is read only if its end mark is there."""
    frame = needed == kernels.FRAME_BYTES
    return (frame or window.ends_in(needed, kernels.END_MARK)) and window.fill(needed)


class Scan:
    """One scan of one log."""

    def __init__(self, window: ByteWindow, sink: Sink | None, until: int, largest: int) -> None:
        self._window, self._sink, self._until, self._largest = window, sink, until, largest
        self._with_digests: bool | None = None
        self._effort = _EFFORT
        self._padding = Padding.NOTHING

    def log(self, start_at: int, *, deep: bool) -> ScannedLog:
        window = self._window
        damage = self._begun_at(start_at) if start_at else self._header()
        first, behind = RecordStretch(window.position, window.position), []
        found: list[LogDamage] = []
        if damage is None:
            first, damage = self._stretch(window.position - (0 if start_at else len(HEADER)))
        elif not start_at:
            first = RecordStretch(0, 0)
        padding = self._padding
        while damage is not None:
            found.append(damage)
            if not deep or damage.resumes_at is None or len(found) == MOST_DAMAGE:
                break
            self._sink = None
            stretch, damage = self._stretch(window.position)
            behind.append(stretch)
        return ScannedLog(
            first.end - first.start, first.records, first.first_zxid, first.last_zxid, first.min_time_ms,
            first.max_time_ms, first.last_adler, bool(self._with_digests), tuple(found), padding, tuple(behind),
        )  # fmt: skip

    def _header(self) -> LogDamage | None:
        window = self._window
        window.fill(len(HEADER))
        seen = bytes(window.held[: len(HEADER)])
        if seen == HEADER:
            self._give(len(HEADER))
            return None
        self._padding = Padding.DAMAGE
        if HEADER.startswith(seen):
            return LogDamage(0, DamageKind.TORN, 0)
        window.at += len(seen)
        return self._damaged(0, DamageKind.BAD_HEADER, 0)

    def _begun_at(self, start_at: int) -> LogDamage | None:
        """Go to the record to begin with."""
        there = self._window.go_to(start_at)
        return None if there else LogDamage(self._window.position, DamageKind.TORN, 0)

    def _stretch(self, start: int) -> tuple[RecordStretch, LogDamage | None]:
        """Good records from here on. After damage, the window is at the next good record."""
        facts = np.zeros(kernels.FACTS, np.int64)
        facts[kernels.TELLING] = -1 if self._with_digests is None else 0
        status, needed = self._walk(facts)
        end = self._window.position
        good = RecordStretch(start, end, *(int(fact) for fact in facts[: kernels.TELLING]))
        return good, self._ending(status, needed, good)

    def _walk(self, facts: Longs) -> tuple[int, int]:
        """Check chunks and pass them to the sink. Returns why it stopped, and the size of the next record."""
        window = self._window
        while True:
            status, at, needed, _ = kernels.walk(
                window.buffer, window.at, window.end, self._until, self._largest, facts, _NO_ROWS
            )
            self._detect_digests(facts)
            self._give(at - window.at)
            if status != kernels.MORE:
                return status, needed
            if not obtained(window, needed):
                return (kernels.BAD_LENGTH if window.held.nbytes else kernels.MORE), needed

    def _detect_digests(self, facts: Longs) -> None:
        """All records of a file have digests or none: a server begins a new file when it starts."""
        if self._with_digests is None and (at := int(facts[kernels.TELLING])) >= 0:
            size = int.from_bytes(self._window.buffer[at - 4 : at].tobytes())
            try:
                self._with_digests = decode(self._window.buffer[at : at + size].tobytes()).digest is not None
            except (Damaged, FormatTooNew):  # only checksums matter here: the replay will report it
                self._with_digests = False

    def _give(self, size: int) -> None:
        window = self._window
        if size and self._sink is not None:
            self._sink(window.held[:size])
        window.at += size

    def _ending(self, status: int, needed: int, good: RecordStretch) -> LogDamage | None:
        window, last = self._window, good.last_zxid
        self._padding = Padding.DAMAGE
        if status == kernels.FINISHED:
            self._padding = Padding.RECORDS
        elif status == kernels.MORE:
            self._padding = Padding.NOTHING
        elif status == kernels.END or (window.held.nbytes < kernels.FRAME_BYTES and not any(window.held)):
            if not window.only_zeros() and not self._grown(good.end):
                return self._damaged(good.end, DamageKind.LENGTH, last)
            self._padding = Padding.ZEROS
        elif status == kernels.JUMP:
            return LogDamage(good.end, DamageKind.GAP, last, good.end, self._zxid())
        else:
            return self._bad_record(status, needed, good)
        return None

    def _grown(self, position: int) -> bool:
        """Whether zeros became a record since they were read; then data after them is no damage."""
        now = self._window.again(position, kernels.FRAME_BYTES)
        return now is not None and any(now)

    def _bad_record(self, status: int, needed: int, good: RecordStretch) -> LogDamage:
        """Its length is right if its checksum is, or if a good record follows: then the search skips it."""
        sized = status in (kernels.BAD_ORDER, kernels.BAD_END_MARK)
        sized = sized or (status == kernels.BAD_CHECKSUM and self._record_behind(needed, good.last_zxid))
        self._window.at += needed if sized else 1
        return self._damaged(good.end, _KINDS[status], good.last_zxid)

    def _record_behind(self, size: int, after: int) -> bool:
        window, needed = self._window, kernels.SMALLEST_RECORD
        while window.fill(size + needed):
            at = window.at + size
            status, _, needed, _ = kernels.find(window.buffer, at, window.end, after, self._room() - size, -1)
            if status != kernels.MORE or not window.ends_in(size + needed, kernels.END_MARK):
                return status == kernels.FOUND
        return False

    def _damaged(self, position: int, kind: DamageKind, after: int) -> LogDamage:
        """Search the next good record. Without one the file is torn, unless the search ended early."""
        status = self._search(after)
        if status == kernels.FOUND:
            return LogDamage(position, kind, after, self._window.position, self._zxid())
        whole = kind in (DamageKind.BAD_HEADER, DamageKind.ORDER)
        return LogDamage(position, kind if whole or status == kernels.GAVE_UP else DamageKind.TORN, after)

    def _search(self, after: int) -> int:
        window = self._window
        while True:
            status, at, needed, self._effort = kernels.find(
                window.buffer, window.at, window.end, after, self._room(), self._effort
            )
            window.at = at
            if status != kernels.MORE:
                self._effort += needed
                return status
            if needed > kernels.FRAME_BYTES + 20:
                possible = window.ends_in(needed, kernels.END_MARK) and window.fill(needed)
                self._effort -= max(window.held.nbytes, _EFFORT_PER_STEP)
                if self._effort < 0:
                    return kernels.GAVE_UP
                window.at += not possible
            elif not window.next_data(kernels.FRAME_BYTES + 20):
                return kernels.MORE

    def _room(self) -> int:
        """The maximum size of the next good record: no memory is allocated for a longer one."""
        return min(self._window.left, self._window.held.nbytes + kernels.FRAME_BYTES + self._largest + 1)

    def _zxid(self) -> int:
        """Of the record at the start of the window."""
        at = kernels.FRAME_BYTES + 12
        return int.from_bytes(self._window.held[at : at + 8], signed=True)
