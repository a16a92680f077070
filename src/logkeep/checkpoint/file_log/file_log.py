"""The log of one partition as segment files in a directory.

    leader                the lock, and the term of the last leader
    <20 digits>.log       a segment: batches of Kafka's log format, version 2, back to back; leader epoch = term

One append is one batch, synced before `append` returns; a new segment begins after about 64 MiB. A process that dies
during an append leaves bytes after the last whole batch: they are cut off at the next start. Damaged bytes
before a whole batch were durable once, so they are refused. `kafka-dump-log` reads the files.
"""

import errno
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from logkeep.checkpoint import records as log_records
from logkeep.checkpoint.durable_directory import make_durable_directory, sync_directory
from logkeep.checkpoint.file_log.leader_lock import LeaderLock
from logkeep.checkpoint.file_log.log_file import NAME, LogFile
from logkeep.checkpoint.records import Record
from logkeep.errors import ObjectMissing, PartitionFenced, StoreFull
from logkeep.formats.plain_batches import BatchRecord, decode_batch, encode_batch, header_alone

SEGMENT_BYTES = 64 << 20


class FileLog:
    """See `PartitionLog`."""

    def __init__(self, directory: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Become the leader. Raises Locked if there is one, and Damaged."""
        make_durable_directory(directory)
        self._directory, self._segment_bytes = directory, segment_bytes
        self._lock = LeaderLock(directory)
        self._segments: list[LogFile] = []
        self._changes = Lock()
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    @property
    def start(self) -> int:
        return self._segments[0].base

    @property
    def end(self) -> int:
        return self._segments[-1].end

    @property
    def term(self) -> int:
        return self._lock.term

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in list(self._segments))

    def size_from(self, position: int) -> int:
        return sum(segment.size_from(position) for segment in list(self._segments) if segment.end > position)

    def append(self, records: Sequence[Record]) -> int:
        self._lock.check()
        if self._segments[-1].size_bytes >= self._segment_bytes:
            with _explained(self._directory):
                self._begin_segment(self.end)
        first, active = self.end, self._segments[-1]
        plain = [BatchRecord(one.key, one.value, one.headers, one.timestamp_ms) for one in records]
        data = encode_batch(first, self.term, plain)
        self._write(active, data)
        header = header_alone(data)
        assert header is not None  # noqa: S101 - it was encoded above
        active.grew(header)
        return first

    def read(self, start: int, most_bytes: int) -> list[Record]:
        found: list[Record] = []
        position, size = start, 0
        while position < self.end and (size < most_bytes or not found):
            data = self._segment(position).batch(position)
            header, plain = decode_batch(data)
            for offset, one in enumerate(plain, header.base_offset):
                if offset >= start:
                    found.append(log_records.read(one.key, one.value or b"", one.headers, offset, one.time_ms))
            position, size = header.end_offset, size + len(data)
        return found

    def batch_start(self, position: int) -> int:
        return self.end if position >= self.end else self._segment(position).batch_start(position)

    def cut_end(self, create: int) -> int:
        return create + 1

    def batches(self, start: int, end: int) -> Iterator[bytes]:
        position = start
        while position < end:
            segment = self._segment(position)
            for piece, next_position in segment.pieces(position, min(end, segment.end)):
                position = next_position
                yield piece
        if position != end:
            raise ValueError(f"position {end} is inside a batch")

    def compact(self, before: int) -> int:
        with self._changes:
            while len(self._segments) > 1 and self._segments[1].base <= before:
                self._segments[0].path.unlink()
                self._segments.pop(0)
        sync_directory(self._directory)
        return self.start

    def close(self) -> None:
        for segment in self._segments:
            segment.close()
        self._segments = self._segments[:0]
        self._lock.release()

    def _open(self) -> None:
        names = sorted(path.name for path in self._directory.iterdir() if NAME.fullmatch(path.name))
        self._segments = [LogFile(self._directory / name, int(name[:20])) for name in names]
        if not self._segments:
            self._begin_segment(0)
        rest = self._segments[-1].recover()
        if rest:
            self._cut(self._segments[-1], self._segments[-1].size_bytes - rest)
        self._index_earlier()
        self._lock.begin_term(max(self._lock.stored_term(), *(one.epoch for one in self._segments)) + 1)

    def _index_earlier(self) -> None:
        ends = [segment.base for segment in self._segments[1:]]
        for segment, end in zip(self._segments, ends, strict=False):
            segment.index(end)

    def _begin_segment(self, base: int) -> None:
        path = self._directory / f"{base:020}.log"
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        sync_directory(self._directory)
        self._segments.append(LogFile(path, base))

    def _write(self, active: LogFile, data: bytes) -> None:
        if os.fstat(active.descriptor).st_size != active.size_bytes:
            raise PartitionFenced("another process wrote to this segment", subject=str(active.path))
        with _explained(active.path):
            try:
                _write_all(active.descriptor, data, active.size_bytes)
                os.fdatasync(active.descriptor)
            except OSError:
                self._cut(active, active.size_bytes)
                raise

    def _cut(self, segment: LogFile, size: int) -> None:
        os.ftruncate(segment.descriptor, size)
        os.fsync(segment.descriptor)
        segment.size_bytes = size

    def _segment(self, position: int) -> LogFile:
        with self._changes:
            number = bisect_right([segment.base for segment in self._segments], position) - 1
            if number < 0 or position >= self.end:
                what = f"position {position} is not in the log, which has {self.start} to {self.end}"
                raise ObjectMissing(what, subject=str(self._directory))
            return self._segments[number]


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        remedy = "free space; the application continues by itself, nothing accepted is lost"
        raise StoreFull("no space is left for the log", subject=str(path), remedy=remedy) from error


def _write_all(descriptor: int, data: bytes, at: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, at)
        rest, at = rest[written:], at + written
