"""Proof of restored segment files: they are read back from disk, and compared with the archive by a fingerprint.

The fingerprint is the SHA-256 over base offset, size, record count and archived CRC-32C of every batch. For a restored
file the CRC is computed from its bytes with the original producer ids. Equal fingerprints mean that the file holds all
archived batches in order, with every byte that their checksums cover.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from logkeep.directories.folder import Folder
from logkeep.errors import LogDirUnusable
from logkeep.formats.kafka.batches import Batches, Longs, first_broken
from logkeep.formats.kafka.restore.relabel import original
from logkeep.kafka.disks.segment_windows import SegmentWindow, windows_of
from logkeep.kafka.offline_restore.values import RestoredSegment
from logkeep.model.work import Progress

_ROW = np.dtype([("base", ">i8"), ("size", ">i8"), ("records", ">i4"), ("crc", ">u4")])


class Fingerprint:
    """The fingerprint of a sequence of batches."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self.batches = self.records = 0
        self.first = self.last = -1

    def take(self, batches: Batches, crcs: Longs) -> None:
        if not len(batches):
            return
        rows = np.empty(len(batches), _ROW)
        rows["base"], rows["size"] = batches.base_offsets, batches.sizes
        rows["records"], rows["crc"] = batches.headers["records"], crcs
        self._sha256.update(rows.tobytes())
        self.first = self.first if self.batches else int(batches.base_offsets[0])
        self.last = int(batches.last_offsets[-1])
        self.batches += len(batches)
        self.records += int(batches.headers["records"].sum(dtype=np.int64))

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()


def prove(directory: Folder, expected: Sequence[RestoredSegment], progress: Progress) -> str:
    """The first problem of these files; empty if there is none."""
    after = -1
    for file in expected:
        found = _read_back(directory, file.name, after, progress)
        if isinstance(found, str):
            return f"{file.name}: {found}"
        if found != file:
            return f"{file.name}: {_difference(found, file)}"
        after = max(after, file.last_offset)
    return ""


def _read_back(directory: Folder, name: str, after: int, progress: Progress) -> RestoredSegment | str:
    """The values of the file; or the problem of its batches. Raises LogDirUnusable."""
    fingerprint, sha256, size = Fingerprint(), hashlib.sha256(), 0
    with _readable(directory, name) as file:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)  # read from the disk, not from the page cache
        for window in windows_of(file, after=after):
            sha256.update(window.data[: window.walked.stopped_at])
            problem = _take(window, fingerprint)
            if problem:
                return problem
            size += window.walked.stopped_at
            progress(window.walked.stopped_at)
    return written_file(name, size, sha256.hexdigest(), fingerprint)


@contextmanager
def _readable(directory: Folder, name: str) -> Iterator[int]:
    try:
        with directory.opened(name) as file:
            yield file
    except OSError as error:
        raise LogDirUnusable(f"cannot be read ({error.strerror})", subject=str(directory.path / name)) from error


def written_file(name: str, size_bytes: int, sha256: str, fingerprint: Fingerprint) -> RestoredSegment:
    return RestoredSegment(
        name=name,
        size_bytes=size_bytes,
        batches=fingerprint.batches,
        records=fingerprint.records,
        first_offset=fingerprint.first,
        last_offset=fingerprint.last,
        sha256=sha256,
        fingerprint=fingerprint.hexdigest(),
    )


def _take(window: SegmentWindow, fingerprint: Fingerprint) -> str:
    batches = window.batches
    broken = first_broken(window.data, batches)
    if broken is not None:
        return f"the batch at offset {int(batches.base_offsets[broken])} does not have the CRC-32C of its header"
    if window.stuck:
        return f"at byte {window.at + window.walked.stopped_at}: {window.walked.reason or 'the last batch is cut off'}"
    if batches.headers["leader_epoch"].any():
        return "a batch has a leader epoch other than 0"
    fingerprint.take(batches, original(np.frombuffer(window.data, np.uint8), batches))
    return ""


def _difference(found: RestoredSegment, expected: RestoredSegment) -> str:
    what = [
        f"{name} is {getattr(found, name)} instead of {getattr(expected, name)}"
        for name in found.__struct_fields__
        if getattr(found, name) != getattr(expected, name)
    ]
    return f"it is not what was archived ({', '.join(what)})"
