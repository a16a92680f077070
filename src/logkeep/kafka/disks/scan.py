"""Reads one replica of a log from its disk: good batches, damage, leader epochs, open transactions.

Everything before a damage counts. A batch with a valid header and a wrong CRC is skipped alone; after an invalid header
the rest of the file cannot be read, and reading continues with the next file. What is between two good batches
around a damage is lost, unless another replica has it.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from logkeep.errors import Damaged, LogDirUnusable, OldMessageFormat
from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL, Batches, WalkEnd, first_broken
from logkeep.formats.kafka.plain_records import marker_type
from logkeep.kafka.disks.layout import SegmentFile, Segments, segments, swap_files
from logkeep.kafka.disks.scan_results import ZEROS, DiskBatch, GoodBatches, OpenSince, ReplicaScan, SegmentDamage
from logkeep.kafka.disks.segment_windows import SegmentWindow, only_zeros, windows
from logkeep.kafka.logs.batch_traits import last_batch_of
from logkeep.kafka.logs.leader_epochs import EpochStart, note_starts
from logkeep.model.work import Progress


def segments_in(directory: Path) -> Segments:
    """The segment files that count. Raises LogDirUnusable."""
    try:
        names = sorted(entry.name for entry in directory.iterdir())
    except OSError as error:
        raise LogDirUnusable(f"cannot be listed ({error.strerror})", subject=str(directory)) from error
    return segments(names, {f.name: _end_of(directory / f.name, f.base) for f in swap_files(names)})


def _end_of(path: Path, base: int) -> int:
    end = base
    for window in windows(path):
        if len(window.batches):
            end = int(window.batches.last_offsets[-1]) + 1
    return end


def scan(
    directory: Path,
    node: int,
    start: int,
    known_epochs: Iterable[tuple[int, int]],
    progress: Progress,
    from_offset: int = 0,
    compare_at: int = -1,
) -> ReplicaScan:
    """Read a log. Files that end before `from_offset` are skipped: their records are archived already.

    The first batch that ends at `compare_at` or later is returned, for a comparison with the archive; -1: none.
    """
    found = segments_in(directory)
    first = found.taken[0].base if found.taken else start
    reading = _Reading(directory, max(start, first), compare_at)
    for file in _from(found.taken, from_offset):
        reading.read(file, progress)
    return reading.result(node, known_epochs, found.left_out)


def _from(files: Sequence[SegmentFile], offset: int) -> Sequence[SegmentFile]:
    """The file with the record before an offset, and all files after it."""
    before = sum(f.base < offset for f in files)
    return files[max(before - 1, 0) :]


class _Reading:
    def __init__(self, directory: Path, start: int, compare_at: int) -> None:
        self._directory, self._start, self._compare_at = directory, start, compare_at
        self._compared: DiskBatch | None = None
        self._last_batch: DiskBatch | None = None
        self._next = start
        self._last = -1
        self._stretches: list[GoodBatches] = []
        self._damages: list[SegmentDamage] = []
        self._epochs: list[EpochStart] = []
        self._holes: list[tuple[int, int]] = []
        self._open: dict[int, int] = {}
        self._size = 0

    @property
    def _waiting(self) -> bool:
        """Whether the last damage is not followed by a good batch yet."""
        return bool(self._damages) and self._damages[-1].resumes < 0

    def read(self, file: SegmentFile, progress: Progress) -> None:
        path = self._directory / file.name
        if self._last < 0:
            self._next = max(self._next, file.base)
        elif file.base > self._next and not self._waiting:
            self._holes.append((self._next, file.base))
        for window in windows(path, after=self._last):
            self._take_good(file.name, window)
            progress(len(window.data))
            self._check_end(file.name, path, window)

    def _take_good(self, name: str, window: SegmentWindow) -> None:
        """Take the batches with a valid CRC; each of the others is a damage."""
        left = window.batches
        while len(left):
            broken = first_broken(window.data, left)
            good = left if broken is None else left[:broken]
            if len(good):
                self._take(name, window, good)
            if broken is None:
                return
            at = window.at + int(left.positions[broken])
            self._damage(name, at, "a batch does not have the checksum of its header")
            left = left[broken + 1 :]

    def _take(self, name: str, window: SegmentWindow, good: Batches) -> None:
        first, end = int(good.base_offsets[0]), int(good.last_offsets[-1]) + 1
        self._resume(first)
        from_byte, to_byte = window.at + good.start, window.at + good.end
        last = self._stretches[-1] if self._stretches else None
        if last is not None and (last.file, last.to_byte) == (name, from_byte):
            self._stretches[-1] = msgspec.structs.replace(last, to_byte=to_byte, end=end)
        else:
            self._stretches.append(GoodBatches(name, from_byte, to_byte, first, end))
        self._last, self._next, self._size = end - 1, max(end, self._start), self._size + to_byte - from_byte
        note_starts(self._epochs, good)
        self._note_transactions(window.data, good)
        self._note_batches(name, window, good)

    def _note_batches(self, name: str, window: SegmentWindow, good: Batches) -> None:
        self._last_batch = _disk_batch(name, window, good, len(good) - 1)
        if self._compared is None and good.last_offsets[-1] >= self._compare_at >= 0:
            index = int((good.last_offsets < self._compare_at).sum())
            self._compared = _disk_batch(name, window, good, index)

    def _damage(self, name: str, at_byte: int, reason: str) -> None:
        self._damages.append(SegmentDamage(name, at_byte, self._next, reason))

    def _resume(self, first: int) -> None:
        """Note the next good batch: all open damages end here."""
        for index in range(len(self._damages) - 1, -1, -1):
            if self._damages[index].resumes >= 0:
                return
            self._damages[index] = msgspec.structs.replace(self._damages[index], resumes=first)

    def _check_end(self, name: str, path: Path, window: SegmentWindow) -> None:
        if window.walked.stop is WalkEnd.OLD_FORMAT:
            raise OldMessageFormat(window.walked.reason, subject=str(path))
        if window.stuck:
            at = window.at + window.walked.stopped_at
            reason = ZEROS if only_zeros(path, at) else window.walked.reason or "a batch is cut off"
            self._damage(name, at, reason)

    def _note_transactions(self, data: memoryview, good: Batches) -> None:
        attributes = good.headers["attributes"]
        for index in (attributes & TRANSACTIONAL).nonzero()[0].tolist():
            producer = int(good.headers["producer_id"][index])
            if attributes[index] & CONTROL:
                at = int(good.positions[index])
                if _is_decision(data[at : at + int(good.sizes[index])]):
                    self._open.pop(producer, None)
            else:
                self._open.setdefault(producer, int(good.base_offsets[index]))

    def result(self, node: int, known: Iterable[tuple[int, int]], left_out: tuple[tuple[str, str], ...]) -> ReplicaScan:
        return ReplicaScan(
            directory=str(self._directory),
            node=node,
            start=self._start,
            end=self._next,
            stretches=tuple(self._stretches),
            damages=tuple(self._damages),
            epochs=_join_epochs(known, self._epochs, self._next),
            open_since=tuple(sorted(OpenSince(p, o) for p, o in self._open.items())),
            left_out=left_out,
            holes=tuple(self._holes),
            size_bytes=self._size,
            compared=self._compared,
            last=self._last_batch,
        )


def _disk_batch(name: str, window: SegmentWindow, good: Batches, index: int) -> DiskBatch:
    return DiskBatch(last_batch_of(good, index), name, window.at + int(good.positions[index]))


def _is_decision(marker: memoryview) -> bool:
    try:
        return marker_type(marker) in (0, 1)
    except Damaged:
        return False


def _join_epochs(known: Iterable[tuple[int, int]], seen: Sequence[EpochStart], end: int) -> tuple[EpochStart, ...]:
    """Epochs by the batches that were read; before them by the checkpoint file."""
    first = seen[0] if seen else None
    older = [
        EpochStart(epoch, offset)
        for epoch, offset in known
        if offset < end and (first is None or (epoch < first.epoch and offset < first.offset))
    ]
    if first is not None:
        begun = [offset for epoch, offset in known if epoch == first.epoch and offset <= first.offset]
        seen = [EpochStart(first.epoch, min([first.offset, *begun])), *seen[1:]]
    return (*older, *seen)
