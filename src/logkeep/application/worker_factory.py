"""Makes the workers of an application's partitions, wherever their log is, and opens the repository they archive to."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from logkeep.application.context import HandledApplication, handler_caller
from logkeep.application.data_directory import ApplicationDocument
from logkeep.application.partition_worker import Arrivals, KeepingLimits, PartitionWorker
from logkeep.checkpoint.archive.running_application import ApplicationFacts
from logkeep.checkpoint.backup_actor import ActorIdentity
from logkeep.checkpoint.log import PartitionLog, Transport
from logkeep.checkpoint.machine_state import MachineState
from logkeep.checkpoint.processor import Surroundings
from logkeep.errors import LogkeepError
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef

_log = logging.getLogger("logkeep.application")
OpenPlace = Callable[[], SourceRef]


@dataclass(frozen=True)
class RuntimeOptions:
    limits: KeepingLimits = field(default_factory=KeepingLimits)
    open_place: OpenPlace | None = None
    """Opens the source in its repository; None if the application is not backed up."""
    source: str = ""
    """The name of that source."""
    watch: Callable[[int, str], None] = lambda _partition, _step: None


class WaitingTransport(Transport, Arrivals, Protocol):
    """A transport whose receivers can wait for it."""


class WorkerFactory:
    """Used by the threads of one process."""

    def __init__(self, application: HandledApplication, document: ApplicationDocument, options: RuntimeOptions) -> None:
        self._document, self._options = document, options
        self._handler = handler_caller(application.handlers)
        self._opening = threading.Lock()
        self._place: SourceRef | None = None
        self._warned = False
        self._run = random_token()

    def worker(
        self,
        number: int,
        directory: Path,
        log: PartitionLog,
        transport: WaitingTransport,
        reply: Callable[[str, object], None],
    ) -> PartitionWorker:
        """The leader of a partition. Replays its log. Raises Damaged."""
        known = self._document
        empty = MachineState(bytes.fromhex(known.application), known.name, known.history, number, known.partitions)
        around = Surroundings(
            transport=transport,
            handler=self._handler,
            begin_backup=lambda _take, _cut: None,
            reply=reply,
            now_ms=lambda: time.time_ns() // 1_000_000,
            elapsed_s=time.monotonic,
            watch=lambda step: self._options.watch(number, step),
        )
        identity = self._identity(number) if self._options.open_place else None
        return PartitionWorker(directory, empty, log, around, transport, self._options.limits, identity)

    def facts(self, workers: Sequence[PartitionWorker]) -> ApplicationFacts:
        """Of the partitions that the caller knows."""
        return ApplicationFacts(
            application=self._document.application,
            name=self._document.name,
            partitions=self._document.partitions,
            history=self._document.history,
            repository=self.repository(),
            source=self._options.source,
            latest=max(worker.processor.state.machine.checkpoint_id for worker in workers),
            unarchived_bytes=max(worker.unarchived_bytes for worker in workers),
        )

    def repository(self) -> str:
        """The id of the repository; empty if there is none, or it does not answer."""
        if self._options.open_place is None:
            return ""
        try:
            return self._opened().repository
        except (LogkeepError, OSError):
            return ""

    def _identity(self, number: int) -> ActorIdentity:
        return ActorIdentity(
            application=self._document.application,
            name=self._document.name,
            history=self._document.history,
            partition=number,
            run=self._run,
            open_place=self._opened,
            clock=utc_now,
            tokens=random_token,
            elapsed_s=time.monotonic,
        )

    def _opened(self) -> SourceRef:
        with self._opening:
            if self._place is None:
                assert self._options.open_place is not None  # noqa: S101 - there is no actor without one
                try:
                    self._place = self._options.open_place()
                except (LogkeepError, OSError) as error:
                    self._warn(error)
                    raise
            return self._place

    def _warn(self, error: LogkeepError | OSError) -> None:
        """Once: the partitions ask at their start, and each backup asks again."""
        if not self._warned:
            _log.warning("no backup can be taken until the repository opens: %s", error)
        self._warned = True
