"""An application in one process with its log in files: all its partitions, and the clients that wait."""

import secrets
import threading

import msgspec

from logkeep.application.context import HandledApplication, check_key, encode_value
from logkeep.application.data_directory import LOG, DataDirectory
from logkeep.application.partition_worker import PartitionWorker
from logkeep.application.queues import Queues, Replies
from logkeep.application.worker_factory import RuntimeOptions, WorkerFactory
from logkeep.checkpoint.archive.running_application import ApplicationFacts
from logkeep.checkpoint.file_log.file_log import FileLog
from logkeep.checkpoint.records import CheckpointDocument, Kind, checkpoint, command
from logkeep.checkpoint.routing import partition_of
from logkeep.errors import UsageError


class Runtime:
    """All partitions of an application. Threads of clients call it."""

    def __init__(self, application: HandledApplication, directory: DataDirectory, options: RuntimeOptions) -> None:
        """Replays every partition. Raises Damaged, Locked."""
        self._directory, self._options = directory, options
        self._partitions = directory.document.partitions
        self._queues, self._replies = Queues(self._partitions), Replies()
        self._factory = WorkerFactory(application, directory.document, options)
        self.ended = threading.Event()
        self.workers = [self._worker(number) for number in range(self._partitions)]

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
            self._queues.send(partition_of(key, self._partitions), [record])
            return client.wait(timeout_s)
        finally:
            self._replies.forget(request, client)

    def facts(self) -> ApplicationFacts:
        return self._factory.facts(self.workers)

    def create(self, partition: int, document: CheckpointDocument) -> None:
        """Send a create to a partition, which processes it later."""
        if not 0 <= partition < self._partitions:
            raise UsageError(f"there is no partition {partition}")
        self._queues.send(partition, [checkpoint(Kind.CREATE, document)])

    def answers(self, checkpoint_id: int) -> dict[int, CheckpointDocument]:
        """What partitions answered to creates with this id, with the repository that they archive to."""
        repository, found = self._factory.repository(), dict[int, CheckpointDocument]()
        for worker in self.workers:
            answer = worker.processor.answers.get(checkpoint_id)
            if answer is not None:
                found[worker.processor.partition] = msgspec.structs.replace(answer, repository=repository)
        return found

    def _worker(self, number: int) -> PartitionWorker:
        directory = self._directory.partition(number)
        log = FileLog(directory / LOG, self._options.limits.segment_bytes)
        return self._factory.worker(number, directory, log, self._queues, self._replies.give)
