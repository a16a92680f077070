"""Runs one partition: a thread that processes, one that copies, one that takes snapshots.

The three do not wait for each other: processing and snapshots continue while a store is frozen in the middle of a copy.
"""

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from logkeep.checkpoint.backup_actor import ActorIdentity, BackupActor
from logkeep.checkpoint.file_log.file_log import SEGMENT_BYTES
from logkeep.checkpoint.log import PartitionLog
from logkeep.checkpoint.machine import TakeBackup
from logkeep.checkpoint.machine_state import MachineState
from logkeep.checkpoint.partition_state import CutFacts
from logkeep.checkpoint.processor import Processor, Surroundings
from logkeep.checkpoint.records import Record
from logkeep.checkpoint.snapshots import LogKeeping, SnapshotStore, due
from logkeep.checkpoint.state.sqlite_state import SqliteState
from logkeep.checkpoint.steps import Steps, run
from logkeep.errors import Damaged, Interrupted, LogkeepError, StoreFull

_IDLE_S, _SNAPSHOT_POLL_S, _FULL_RETRY_S, _JOIN_S = 0.25, 0.5, 1.0, 5.0
_log = logging.getLogger("logkeep.application")


@dataclass(frozen=True)
class KeepingLimits:
    """When snapshots are taken, and how much log waits for the archive."""

    snapshot_every_bytes: int = 64 << 20
    most_unarchived_bytes: int = 1 << 30
    segment_bytes: int = SEGMENT_BYTES


class Arrivals(Protocol):
    """Where a partition that has nothing to do waits."""

    def wait(self, partition: int, seconds: float) -> None:
        """Until something may have arrived for this partition."""

    def wake(self, partition: int) -> None:
        """End a wait."""


class PartitionWorker:
    """One partition of one process."""

    def __init__(
        self,
        directory: Path,
        empty: MachineState,
        log: PartitionLog,
        around: Surroundings,
        arrivals: Arrivals,
        limits: KeepingLimits,
        identity: ActorIdentity | None,
    ) -> None:
        """`identity` is None if the application has no repository. Replays the log. Raises Damaged."""
        self._empty, self._arrivals, self._limits = empty, arrivals, limits
        self.log = log
        self.snapshots = SnapshotStore(directory / "snapshots")
        self.keeping = LogKeeping(self.snapshots, 0 if identity else None, limits.most_unarchived_bytes)
        self.actor = BackupActor(identity, self.log, self.keeping) if identity else None
        self._around = replace(around, begin_backup=self._begin_backup)
        self._copies: queue.SimpleQueue[Steps[None]] = queue.SimpleQueue()
        self._stop, self._one_keeper = threading.Event(), threading.Lock()
        self._threads: list[threading.Thread] = []
        self.failure: BaseException | None = None
        self.backend = open_state(directory / "state.sqlite", self.log, self.snapshots)
        self.processor = self._recovered()
        if self.actor:
            self.actor.checkpoints = lambda: self.processor.state.checkpoints
            self._copies.put(self.actor.resume(self.processor.state.cut))

    def start(self, failed: Callable[[], None]) -> None:
        """`failed` is called if the partition cannot continue; `failure` says why."""
        for work in (self._process, self._copy, self._keep):
            thread = threading.Thread(target=self._guarded, args=(work, failed), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """End after the current step. A copy that waits for a frozen store is left behind."""
        self._stop.set()
        self._arrivals.wake(self._empty.partition)
        for thread in self._threads:
            thread.join(_JOIN_S)
        self.log.close()
        self.backend.close()

    @property
    def unarchived_bytes(self) -> int:
        """Of the log that waits for the archive; 0 if there is none."""
        end = self.keeping.archived_end
        return 0 if end is None else self.log.size_from(max(end, self.log.start))

    def _recovered(self, waiting: Sequence[Record] = ()) -> Processor:
        processor = Processor(self._empty, self.log, self.backend, self._around, waiting)
        processor.recover()
        return processor

    def _begin_backup(self, take: TakeBackup, cut: CutFacts) -> None:
        steps = self.actor.begin(take, cut) if self.actor else None
        if steps is not None:
            self._copies.put(steps)

    def _guarded(self, work: Callable[[], None], failed: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - whatever ends a partition ends the program, with this reason
            if not self._stop.is_set():
                self.failure = error
                _log.error("partition %d stopped: %s", self._empty.partition, error, exc_info=error)
                failed()

    def _process(self) -> None:
        while not self._stop.is_set():
            try:
                if not self.processor.step():
                    self._arrivals.wait(self._empty.partition, _IDLE_S)
            except StoreFull as error:
                self._wait_for_space(error)

    def _wait_for_space(self, error: StoreFull) -> None:
        """The log is the truth: what it has is replayed once there is space again, then what waits is processed."""
        _log.error("partition %d waits: %s", self._empty.partition, error)
        while not self._stop.wait(_FULL_RETRY_S):
            try:
                self.processor = self._recovered(self.processor.waiting)
            except StoreFull:
                continue
            return

    def _copy(self) -> None:
        while not self._stop.is_set():
            try:
                steps = self._copies.get(timeout=_IDLE_S)
                run(steps, self._stop.wait, self._around.watch)
            except queue.Empty:
                continue
            except Interrupted:
                return
            except LogkeepError as error:
                _log.error("partition %d: the copy failed: %s", self._empty.partition, error)

    def _keep(self) -> None:
        every = min(self._limits.snapshot_every_bytes, max(self._limits.most_unarchived_bytes // 2, 1))
        while not self._stop.wait(_SNAPSHOT_POLL_S):
            try:
                self.keep_once(every)
            except Interrupted:
                return
            except (LogkeepError, OSError) as error:
                _log.error("partition %d: no snapshot: %s", self._empty.partition, error)

    def keep_once(self, every_bytes: int) -> None:
        """Take a snapshot if one is due, and remove what nothing needs any more."""
        with self._one_keeper:
            kept = self.snapshots.list()
            last = kept[-1].position + 1 if kept else self.log.start
            if due(self.log.size_from(last), 0, every_bytes):
                run(self.snapshots.take(self.backend), self._stop.wait, self._around.watch)
            start, archived = self.log.start, self.keeping.archived_end
            left = self.keeping.compact(self.log)
            if archived is not None and left > max(start, archived):
                what = "positions [%d, %d) were compacted before they were archived: %s"
                why = "the log had reached --max-unarchived; take backups more often"
                _log.warning(f"partition %d: {what}", self._empty.partition, max(start, archived), left, why)


def open_state(path: Path, log: PartitionLog, snapshots: SnapshotStore) -> SqliteState:
    """The state, or the newest snapshot of it where the state is missing, damaged, or too old for the log."""
    try:
        backend = SqliteState(path)
    except Damaged as error:
        _log.warning("%s; it is made again", error)
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
            path.with_name(name).unlink(missing_ok=True)
        backend = SqliteState(path)
    if backend.position + 1 >= log.start:
        return backend
    for snapshot in reversed(snapshots.list()):
        if log.start <= snapshot.log_from <= log.end:
            backend.load(snapshots.path(snapshot.position))
            return backend
    what = f"the log begins at {log.start}, and no snapshot continues it"
    raise Damaged(what, subject=str(path), remedy="restore the application from a backup")
