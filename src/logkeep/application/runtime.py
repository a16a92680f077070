"""An application in one process: all its partitions, the clients that wait, and the repository they archive to."""

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from logkeep.application.context import HandledApplication, caller, check_key, encode_value
from logkeep.application.data_directory import DataDirectory
from logkeep.application.partition_worker import KeepingLimits, PartitionWorker
from logkeep.application.queues import Queues, Replies
from logkeep.checkpoint.archive.port import ApplicationFacts
from logkeep.checkpoint.backup_actor import ActorIdentity
from logkeep.checkpoint.machine_state import MachineState
from logkeep.checkpoint.processor import Surroundings
from logkeep.checkpoint.records import CheckpointDocument, Kind, checkpoint, command
from logkeep.checkpoint.routing import partition_of
from logkeep.errors import LogkeepError, UsageError
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef

OpenPlace = Callable[[], SourceRef]


@dataclass(frozen=True)
class RuntimeOptions:
    limits: KeepingLimits = field(default_factory=KeepingLimits)
    open_place: OpenPlace | None = None
    """Opens the source in its repository; None if the application is not backed up."""
    watch: Callable[[int, str], None] = lambda _partition, _step: None


class Runtime:
    """All partitions of an application. Threads of clients call it."""

    def __init__(self, application: HandledApplication, directory: DataDirectory, options: RuntimeOptions) -> None:
        """Replays every partition. Raises Damaged, Locked."""
        document = directory.document
        self._document, self._options = document, options
        self._queues, self._replies = Queues(document.partitions), Replies()
        self._handler = caller(application.handlers)
        self._opening = threading.Lock()
        self._place: SourceRef | None = None
        self._run = random_token()
        self.ended = threading.Event()
        self.workers = [self._worker(directory, number) for number in range(document.partitions)]

    def start(self) -> None:
        for worker in self.workers:
            worker.start(self.ended.set)

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()

    def failure(self) -> BaseException | None:
        return next((worker.failure for worker in self.workers if worker.failure), None)

    def submit(self, name: str, key: str, value: object, request: str | None = None, timeout_s: float = 30.0) -> object:
        """Send a client's command and wait for its reply. Raises ClusterNotReady, UsageError."""
        request = secrets.token_hex(16) if request is None else request
        record = command(name, check_key(key), encode_value(value), request=request)
        client = self._replies.expect(request)
        try:
            self._queues.send(partition_of(key, self._document.partitions), [record])
            return client.wait(timeout_s)
        finally:
            self._replies.forget(request, client)

    def facts(self) -> ApplicationFacts:
        document = self._document
        return ApplicationFacts(
            application=document.application,
            name=document.name,
            partitions=document.partitions,
            history=document.history,
            repository=self._repository(),
        )

    def create(self, partition: int, document: CheckpointDocument) -> None:
        """Send a create to a partition, which processes it later."""
        if not 0 <= partition < self._document.partitions:
            raise UsageError(f"there is no partition {partition}")
        self._queues.send(partition, [checkpoint(Kind.CREATE, document)])

    def answers(self, checkpoint_id: int) -> dict[int, CheckpointDocument]:
        """What partitions answered to creates with this id, with the repository that they archive to."""
        repository, found = self._repository(), dict[int, CheckpointDocument]()
        for worker in self.workers:
            answer = worker.processor.answers.get(checkpoint_id)
            if answer is not None:
                found[worker.processor.partition] = msgspec.structs.replace(answer, repository=repository)
        return found

    def _worker(self, directory: DataDirectory, number: int) -> PartitionWorker:
        document = directory.document
        empty = MachineState(
            bytes.fromhex(document.application), document.name, document.history, number, document.partitions
        )
        around = Surroundings(
            transport=self._queues,
            handler=self._handler,
            begin_backup=lambda _take, _cut: None,
            reply=self._replies.give,
            now_ms=lambda: time.time_ns() // 1_000_000,
            elapsed_s=time.monotonic,
            watch=lambda step: self._options.watch(number, step),
        )
        identity = self._identity(number) if self._options.open_place else None
        return PartitionWorker(directory.partition(number), empty, around, self._queues, self._options.limits, identity)

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
                self._place = self._options.open_place()
            return self._place

    def _repository(self) -> str:
        """The id of the repository; empty if there is none, or it does not answer."""
        if self._options.open_place is None:
            return ""
        try:
            return self._opened().repository
        except (LogkeepError, OSError):
            return ""
