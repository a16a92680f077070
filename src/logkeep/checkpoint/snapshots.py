"""The snapshots of one partition's state, and what must be kept for them.

A snapshot is `<20 digits>.sqlite`, named after the last position in it. Two are kept: a backup needs one from before
its checkpoint. A reservation keeps a snapshot, and the log from a position on; it lives in memory and ends with the
process. Nothing of the log is removed that a kept snapshot, a reservation or the archive still needs.
"""

import os
import re
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from logkeep.checkpoint.durable_directory import make_durable_directory, sync_directory
from logkeep.checkpoint.log import PartitionLog
from logkeep.checkpoint.snapshot_choice import KeptSnapshot
from logkeep.checkpoint.state.backend import StateBackend
from logkeep.checkpoint.steps import Steps

KEPT = 2
_NAME = re.compile(r"(\d{20})\.sqlite")
_PART = ".part"


@dataclass(frozen=True)
class Reservation:
    """What a backup in progress needs kept: a snapshot (or none), and the log from a position on."""

    snapshot: KeptSnapshot | None
    log_from: int


class SnapshotStore:
    """Snapshots in a directory. Used by the threads of one partition."""

    def __init__(self, directory: Path) -> None:
        """Removes files that an earlier process did not finish."""
        make_durable_directory(directory)
        self._directory = directory
        self._lock = threading.Lock()
        self._reserved: list[Reservation] = []
        for path in directory.iterdir():
            if path.name.endswith((_PART, "-journal", "-wal", "-shm")):
                path.unlink()

    def list(self) -> list[KeptSnapshot]:
        """Oldest first."""
        found = []
        for path in self._directory.iterdir():
            match = _NAME.fullmatch(path.name)
            if match:
                position = int(match[1])
                found.append(KeptSnapshot(position, path.stat().st_size, position + 1))
        return sorted(found, key=lambda one: one.position)

    def path(self, position: int) -> Path:
        return self._directory / f"{position:020}.sqlite"

    def reserve(self, snapshot: KeptSnapshot | None, log_from: int) -> Reservation | None:
        """Keep a snapshot and its log until `release`. None if the snapshot is gone."""
        with self._lock:
            if snapshot is not None and not self.path(snapshot.position).exists():
                return None
            reservation = Reservation(snapshot, log_from)
            self._reserved.append(reservation)
            return reservation

    def release(self, reservation: Reservation) -> None:
        """Release it; a second call does nothing. Snapshots that were superseded meanwhile are removed."""
        with self._lock:
            self._reserved = [one for one in self._reserved if one is not reservation]
        self.remove_superseded()

    @property
    def reserved_from(self) -> int | None:
        """The first position of the log that a reservation keeps."""
        return min((one.log_from for one in list(self._reserved)), default=None)

    def take(self, backend: StateBackend) -> Steps[KeptSnapshot | None]:
        """A new snapshot of now; None if there is one of this position. It appears whole or not at all."""
        yield "snapshot: begin"
        part = self._directory / f"new{_PART}"
        with suppress(FileNotFoundError):
            part.unlink()
        info = backend.snapshot(part)
        yield "snapshot: written"
        final = self.path(max(info.position, 0))
        if info.position < 0 or final.exists():
            part.unlink()
            return None
        part.rename(final)
        sync_directory(self._directory)
        yield "snapshot: stored"
        self.remove_superseded()
        return KeptSnapshot(info.position, info.size_bytes, info.position + 1)

    def add(self, position: int, pieces: Iterable[bytes]) -> None:
        """Store a snapshot that was taken elsewhere. It appears whole or not at all."""
        part = self._directory / f"added{_PART}"
        with part.open("wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        part.rename(self.path(position))
        sync_directory(self._directory)

    def remove_superseded(self) -> None:
        """All but the newest two and the reserved ones."""
        with self._lock:
            reserved = {one.snapshot.position for one in self._reserved if one.snapshot}
            for old in self.list()[:-KEPT]:
                if old.position not in reserved:
                    self.path(old.position).unlink()


@dataclass
class LogKeeping:
    """Decides up to where the log of a partition may be removed."""

    snapshots: SnapshotStore
    archived_end: int | None
    """Where the archived log ends; None if the application has no repository."""
    most_unarchived_bytes: int

    def compact(self, log: PartitionLog) -> int:
        """Remove records that nothing needs; returns the first position left. Never waits for the archive."""
        kept = [one.log_from for one in self.snapshots.list()]
        over = log.size_bytes > self.most_unarchived_bytes
        bound = compaction_bound(kept, self.snapshots.reserved_from, self.archived_end, over_bound=over)
        return log.compact(bound) if bound > log.start else log.start


def compaction_bound(
    snapshots: list[int], reserved_from: int | None, archived_end: int | None, *, over_bound: bool
) -> int:
    """The position before which the log may go. `snapshots` are where replay on top of each begins.

    Above the bound of unarchived log it goes up to the last snapshot; what was not archived is then lost to backups.
    """
    if not snapshots:
        return 0
    bound = max(snapshots) if over_bound else min(snapshots)
    if archived_end is not None and not over_bound:
        bound = min(bound, archived_end)
    return bound if reserved_from is None else min(bound, reserved_from)


def due(log_bytes: int, bytes_at_last: int, every_bytes: int) -> bool:
    """Whether the log has grown enough since the last snapshot."""
    return log_bytes - bytes_at_last >= every_bytes
