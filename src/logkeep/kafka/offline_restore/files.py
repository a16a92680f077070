"""Writes the segment files of one log to a directory; each file is synced before the next one starts."""

import hashlib
import os
import stat
from dataclasses import dataclass, field

import numpy as np

from logkeep.directories.folder import Folder
from logkeep.formats.kafka.batches import Batches, BatchStretch, Longs
from logkeep.formats.kafka.restore.relabel import Plain, relabel
from logkeep.kafka.offline_restore.proof import Fingerprint, written_file
from logkeep.kafka.offline_restore.segment_rolling import OpenSegmentFile, borders, file_name
from logkeep.kafka.offline_restore.staging import failing_at
from logkeep.kafka.offline_restore.values import RestoredSegment


class SegmentFileWriter:
    """`add` archived batches in order, then `finish`. The name of the first file sets the log start."""

    def __init__(self, directory: Folder, start: int, limit_bytes: int, like: os.stat_result) -> None:
        self._directory, self._limit, self._like = directory, limit_bytes, like
        self._file = _File(directory, start)
        self.written: list[RestoredSegment] = []

    def add(self, stretch: BatchStretch) -> None:
        """Relabel a copy of the batches, and append it."""
        batches = stretch.batches
        crcs = batches.headers["crc"].astype(np.int64)
        copy = bytearray(memoryview(stretch.buffer)[batches.start : batches.end])
        data = np.frombuffer(copy, np.uint8)
        own_batches = Batches(batches.headers, batches.positions - batches.start)
        relabel(data, own_batches)
        cuts = borders(own_batches, self._file.state, self._limit)
        for first, last in zip([0, *cuts], [*cuts, len(batches)], strict=True):
            if first in cuts:
                self._next(int(batches.base_offsets[first]))
            self._file.append(data, own_batches[first:last], crcs[first:last])

    def finish(self) -> None:
        self.written.append(self._file.finish(self._like))

    def abort(self) -> None:
        """Close the open file. Harmless after `finish`."""
        self._file.close()

    def _next(self, base: int) -> None:
        self.finish()
        self._file = _File(self._directory, base)


@dataclass
class _File:
    """The file being written."""

    directory: Folder
    base: int
    _fingerprint: Fingerprint = field(default_factory=Fingerprint)

    def __post_init__(self) -> None:
        self._path = self.directory.path / file_name(self.base)
        self._sha256, self._size = hashlib.sha256(), 0
        with failing_at(self._path):
            self._file = self.directory.create(self._path.name, direct=True)

    @property
    def state(self) -> OpenSegmentFile:
        return OpenSegmentFile(self.base, self._size)

    def append(self, data: Plain, batches: Batches, crcs: Longs) -> None:
        if not len(batches):
            return
        piece = data[batches.start : batches.end].data
        self._sha256.update(piece)
        self._fingerprint.take(batches, crcs)
        self._size += len(piece)
        with failing_at(self._path):
            self._file.write(piece)

    def finish(self, like: os.stat_result) -> RestoredSegment:
        with failing_at(self._path):
            self._file.set_owner(like.st_uid, like.st_gid, stat.S_IMODE(like.st_mode))
            self._file.finish()
            self.close()
        return written_file(self._path.name, self._size, self._sha256.hexdigest(), self._fingerprint)

    def close(self) -> None:
        self._file.close()
