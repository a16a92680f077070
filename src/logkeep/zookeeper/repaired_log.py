"""A log that a repair writes, wherever it is stored: whoever began it is told what it holds when it is whole."""

from collections.abc import Callable
from dataclasses import dataclass

from logkeep.zookeeper.kept import KeptLog
from logkeep.zookeeper.packing import StoredWriter
from logkeep.zookeeper.sink import StoredObject


@dataclass
class RepairedLog:
    writer: StoredWriter
    done: Callable[[KeptLog, StoredObject], None]

    def write(self, data: memoryview | bytes) -> None:
        self.writer.write(data)

    def close(self, kept: KeptLog) -> None:
        self.done(kept, self.writer.close())

    def abort(self) -> None:
        self.writer.abort()
