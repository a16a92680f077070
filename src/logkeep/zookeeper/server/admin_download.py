"""Stores the snapshot that an AdminServer sends, within limits of size, time and disk.

The server chooses what it sends, for how long, and what its headers say: a snapshot without an end must not fill the
disk of temporary files. `deadline` limits the time of everything that comes over a connection: a byte now and then is
no progress. `scratch_disk` reports errors of the disk that holds temporary files, here and where logs are unpacked.
"""

import http.client
import io
import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from logkeep.errors import BackupFailed, ClusterError, ClusterUnreachable, Damaged, InvalidAnswer

_BLOCK_BYTES: Final = 1 << 20
_ZXID: Final = re.compile(r"(?:0x)?[0-9A-Fa-f]{1,16}", re.ASCII)
_SIZE: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_LARGEST_ZXID: Final = (1 << 63) - 1
_SHOWN: Final = 40
_NOT_ZOOKEEPER: Final = "check that this is the AdminServer of ZooKeeper 3.9, and what is between it and this host"


@dataclass(frozen=True)
class DownloadLimits:
    """What one snapshot may use."""

    most_bytes: int = 16 << 30
    """Of the snapshot, also unpacked: a server keeps its whole tree in memory, so few are larger."""
    total_s: float = 3600.0
    reserve_bytes: int = 512 << 20
    """Stays free on the disk of temporary files, or this part of that disk if that is less."""
    reserve_part: float = 0.05


USUAL_LIMITS: Final = DownloadLimits()


@contextmanager
def scratch_disk(path: Path | str, what: str) -> Iterator[None]:
    """Raises BackupFailed, with a remedy, for an OSError inside. Files are closed inside the block, or written without
    a buffer, so that late errors are reported too."""
    try:
        yield
    except OSError as error:
        raise _disk_full(path, what, error.strerror or type(error).__name__) from error


def _disk_full(path: Path | str, what: str, why: str) -> BackupFailed:
    remedy = "free space on that disk, or set TMPDIR to a directory on another one, and run again"
    return BackupFailed(f"{what}: {why}", subject=str(path), remedy=remedy)


@contextmanager
def deadline(connected: socket.socket, total_s: float, subject: str) -> Iterator[None]:
    """End the connection after this many seconds. Raises ClusterUnreachable then, whatever the block raised."""
    lock, late, over = threading.Lock(), threading.Event(), threading.Event()

    def end() -> None:
        with lock:
            if not over.is_set():
                late.set()
                with suppress(OSError):  # the server has just closed it
                    socket.socket.shutdown(connected, socket.SHUT_RDWR)

    timer = threading.Timer(total_s, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as error:
        if late.is_set():
            raise _too_slow(total_s, subject) from error
        raise
    finally:
        timer.cancel()
        with lock:
            over.set()
    if late.is_set():  # the end that we made looks like the end of an answer
        raise _too_slow(total_s, subject)


def _too_slow(total_s: float, subject: str) -> ClusterUnreachable:
    what = f"the answer did not end within {total_s:g} s"
    return ClusterUnreachable(what, subject=subject, remedy="check the server and the network; back up from its files")


def announced_zxid(headers: http.client.HTTPMessage, subject: str) -> int:
    """The zxid in the header `last_zxid`. Raises ClusterError."""
    text = headers.get("last_zxid", "")
    if not _ZXID.fullmatch(text) or int(text, 16) > _LARGEST_ZXID:
        raise InvalidAnswer(f"not a zxid: {text[:_SHOWN]!r}", subject=subject, remedy=_NOT_ZOOKEEPER)
    return int(text, 16)


def announced_size(headers: http.client.HTTPMessage, limits: DownloadLimits, subject: str) -> int | None:
    """The size in the header `snapshot_size`; None if there is none. Raises ClusterError."""
    text = headers.get("snapshot_size", "")
    if not text:
        return None
    if not _SIZE.fullmatch(text):
        raise InvalidAnswer(f"not a size: {text[:_SHOWN]!r}", subject=subject, remedy=_NOT_ZOOKEEPER)
    if int(text) > limits.most_bytes:
        raise too_large(limits, subject)
    return int(text)


def too_large(limits: DownloadLimits, subject: str) -> ClusterError:
    return ClusterError(
        f"its snapshot is larger than {limits.most_bytes} bytes",
        subject=subject,
        remedy="if the server has so large a tree, raise --max-snapshot-bytes; otherwise check the address",
    )


def store(answer: http.client.HTTPResponse, path: Path, limits: DownloadLimits, subject: str) -> int:
    """Store a snapshot; returns the zxid in the answer. Raises ClusterError, Damaged, BackupFailed.

    Errors of the connection are passed on.
    """
    zxid = announced_zxid(answer.headers, subject)
    size = announced_size(answer.headers, limits, subject)
    stored = _copy(answer, path, limits, subject)
    if size is not None and size != stored:
        what = f"{stored} bytes arrived instead of {size}"
        raise Damaged(what, subject=subject, remedy="run again; if it happens again, check the log of the server")
    return zxid


def _copy(answer: http.client.HTTPResponse, path: Path, limits: DownloadLimits, subject: str) -> int:
    """Reads into a block of its own: asked for bytes, the library would accept a chunk's size of -1 and read on."""
    with _disk(path):
        file = path.open("wb", buffering=0)
    block, stored = memoryview(bytearray(_BLOCK_BYTES)), 0
    try:
        while got := answer.readinto(block):
            stored += got
            if stored > limits.most_bytes:
                raise too_large(limits, subject)
            with _disk(path):
                _check_reserve(file, got, limits)
                _write(file, block[:got])
    finally:
        with _disk(path):
            file.close()
    return stored


def _check_reserve(file: io.FileIO, more: int, limits: DownloadLimits) -> None:
    disk = os.fstatvfs(file.fileno())
    reserve = min(limits.reserve_bytes, int(disk.f_blocks * disk.f_frsize * limits.reserve_part))
    if disk.f_bavail * disk.f_frsize - more < reserve:
        raise _disk_full(str(file.name), _NOT_STORED, f"less than {reserve} bytes would stay free")


def _write(file: io.FileIO, block: memoryview) -> None:
    while block:
        block = block[file.write(block) :]


_NOT_STORED: Final = "the snapshot cannot be stored here temporarily"


def _disk(path: Path) -> AbstractContextManager[None]:
    return scratch_disk(path, _NOT_STORED)


class LimitedPlain(io.RawIOBase):
    """The plain bytes of a stored snapshot. Raises ClusterError after the limit: packed bytes unpack to any size."""

    def __init__(self, plain: BinaryIO, limits: DownloadLimits, subject: str) -> None:
        super().__init__()
        self._plain, self._limits, self._subject, self._read = plain, limits, subject, 0

    def read(self, size: int = -1) -> bytes:
        piece = self._plain.read(size)
        self._read += len(piece)
        if self._read > self._limits.most_bytes:
            raise too_large(self._limits, self._subject)
        return piece
