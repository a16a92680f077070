"""Reads a segment file as windows of whole batches, with bounded memory. Nothing is ever changed.

A window has a fixed size, or that of a single larger batch. Where the disk itself fails to read, the walk ends there
as damage: on a failing disk the next file may still be good.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from logkeep.errors import LogDirUnusable
from logkeep.formats.kafka.batches import OVERHEAD_BYTES, Batches, Walk, WalkEnd, walk

CHUNK_BYTES = 8 << 20


@dataclass(frozen=True)
class SegmentWindow:
    """Bytes of a file from `at` on, and the batches in them. Valid until the next one is requested."""

    at: int
    data: memoryview
    walked: Walk
    stuck: bool
    """Whether bytes after the last batch are no batches: nothing follows this window."""

    @property
    def batches(self) -> Batches:
        return self.walked.batches


def windows(path: Path, from_byte: int = 0, to_byte: int | None = None, after: int = -1) -> Iterator[SegmentWindow]:
    """All batches up to a byte or the end; the last window has the reason why it ends."""
    with opened(path) as file:
        yield from windows_of(file, from_byte, to_byte, after)


def windows_of(file: int, from_byte: int = 0, to_byte: int | None = None, after: int = -1) -> Iterator[SegmentWindow]:
    """The same of an open file."""
    size = os.fstat(file).st_size
    size = size if to_byte is None else min(to_byte, size)
    at, want, buffer = from_byte, CHUNK_BYTES, bytearray()
    while at < size:
        want = min(want, size - at)
        if len(buffer) < want:
            buffer = bytearray(want)
        view = memoryview(buffer)[:want]
        problem = _fill(file, view, at)
        walked = Walk(walk(b"").batches, WalkEnd.DAMAGED, 0, problem) if problem else walk(view, after)
        cut_by_us = walked.stop is WalkEnd.TORN and at + want < size
        if cut_by_us and not walked.stopped_at:
            want = _batch_size(view)
            continue
        stuck = walked.stop is not WalkEnd.END and not cut_by_us
        yield SegmentWindow(at, view, walked, stuck)
        if stuck:
            return
        at, want = at + walked.stopped_at, CHUNK_BYTES
        after = int(walked.batches.last_offsets[-1])


def only_zeros(path: Path, from_byte: int) -> bool:
    """Whether the rest of a file is space that a broker reserved."""
    with opened(path) as file:
        size = os.fstat(file).st_size
        for at in range(from_byte, size, CHUNK_BYTES):
            view = memoryview(bytearray(min(CHUNK_BYTES, size - at)))
            if _fill(file, view, at) or np.frombuffer(view, np.uint8).any():
                return False
    return True


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A file opened for reading. Raises LogDirUnusable, with its name."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # opening a pipe must not wait for its writer
    except OSError as error:
        raise LogDirUnusable(
            f"cannot be read ({error.strerror})",
            subject=str(path),
            remedy="run as a user who may read it: the broker's own, or root",
        ) from error
    try:
        yield file
    finally:
        os.close(file)


def _batch_size(view: memoryview) -> int:
    """The size of the batch that does not fit."""
    if len(view) < OVERHEAD_BYTES:
        return OVERHEAD_BYTES
    return OVERHEAD_BYTES + int.from_bytes(view[8:12], "big", signed=True)


def _fill(file: int, view: memoryview, at: int) -> str:
    """Fill the view; returns the problem, or nothing."""
    while len(view):
        try:
            count = os.preadv(file, [view], at)
        except OSError as error:
            if error.errno != errno.EIO:
                raise LogDirUnusable(f"cannot be read ({error.strerror})") from error
            return "the disk cannot read it"
        if not count:
            return "the file became shorter while it was read"
        view, at = view[count:], at + count
    return ""
