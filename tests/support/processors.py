"""Processors of one application over logs in files, executed step by step in one thread."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from logkeep.application.context import UserHandler, encode_value, handler_caller
from logkeep.checkpoint.file_log.file_log import FileLog
from logkeep.checkpoint.machine import TakeBackup
from logkeep.checkpoint.machine_state import MachineState
from logkeep.checkpoint.partition_state import CutFacts
from logkeep.checkpoint.processor import Processor, Surroundings
from logkeep.checkpoint.records import CheckpointDocument, Kind, Record, checkpoint, command
from logkeep.checkpoint.routing import partition_of
from logkeep.checkpoint.state.backend import StateBackend
from logkeep.checkpoint.state.memory_state import MemoryState

APPLICATION = bytes(range(16))


class StepQueues:
    """A transport that a test can look into."""

    def __init__(self, partitions: int) -> None:
        self.waiting: list[deque[Record]] = [deque() for _ in range(partitions)]

    def send(self, partition: int, records: Sequence[Record]) -> None:
        self.waiting[partition].extend(records)

    def receive(self, partition: int, most: int) -> list[Record]:
        waiting = self.waiting[partition]
        return [waiting.popleft() for _ in range(min(most, len(waiting)))]

    def consumed(self, partition: int, messages: Sequence[Record]) -> None:
        pass


class ProcessorGroup:
    """All partitions of an application called shop."""

    def __init__(
        self,
        directory: Path,
        handlers: Mapping[str, UserHandler],
        partitions: int = 2,
        backend: Callable[[int], StateBackend] = lambda _: MemoryState(),
    ) -> None:
        self.directory, self.handlers, self.partitions, self._backend = directory, handlers, partitions, backend
        self.queues = StepQueues(partitions)
        self.replies: list[tuple[str, object]] = []
        self.backups: list[tuple[int, TakeBackup, CutFacts]] = []
        self.now_ms, self.elapsed_s = 1_700_000_000_000, 0.0
        self.watch: Callable[[int, str], None] = lambda _partition, _step: None
        self.logs = [FileLog(directory / f"p{number}") for number in range(partitions)]
        self.processors = [self._processor(number) for number in range(partitions)]

    def _processor(self, number: int) -> Processor:
        empty = MachineState(APPLICATION, "shop", 0, number, self.partitions)
        around = Surroundings(
            transport=self.queues,
            handler=handler_caller(self.handlers),
            begin_backup=lambda take, cut: self.backups.append((number, take, cut)),
            reply=lambda to, value: self.replies.append((to, value)),
            now_ms=lambda: self.now_ms,
            elapsed_s=lambda: self.elapsed_s,
            watch=lambda step: self.watch(number, step),
        )
        processor = Processor(empty, self.logs[number], self._backend(number), around)
        processor.recover()
        return processor

    def restart(self, number: int) -> None:
        """A new leader, with a new state."""
        self.logs[number].close()
        self.logs[number] = FileLog(self.directory / f"p{number}")
        self.processors[number] = self._processor(number)

    def close(self) -> None:
        for log in self.logs:
            log.close()

    def client(self, name: str, key: str, value: Any = None, request: str | None = None) -> None:
        record = command(name, key, encode_value(value), request=request)
        self.queues.send(partition_of(key, self.partitions), [record])

    def create(
        self, partition: int, checkpoint_id: int, nonce: str = "0123456789abcdef", *, marker: bool = False
    ) -> None:
        document = CheckpointDocument(
            repository="r", application=APPLICATION.hex(), history=0, id=checkpoint_id, nonce=nonce, marker=marker
        )
        self.queues.send(partition, [checkpoint(Kind.CREATE, document)])

    def drain(self) -> None:
        """Until no partition has anything to do; messages without acknowledgement are sent again."""
        for _ in range(10_000):
            self.elapsed_s += 0.3
            worked = [one.step() for one in self.processors]
            if not any(worked) and not any(
                one.state.machine.outbox.get(to) for one in self.processors for to in one.state.machine.outbox
            ):
                return
        raise AssertionError("it never ends")

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for one in self.processors:
            found |= {key: msgspec.msgpack.decode(value) for key, value in one.state.backend.items()}
        return found

    def kinds(self, partition: int) -> list[str]:
        log = self.logs[partition]
        return [record.kind.name.lower() for record in log.read(log.start, 1 << 30)]
