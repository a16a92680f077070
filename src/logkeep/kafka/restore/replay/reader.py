"""Reads the stream of one log in another thread: while batches are sent, the next ones are prepared."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future

from logkeep.formats.kafka.restore.merge_batches import merged
from logkeep.formats.kafka.restore.regroup import regrouped
from logkeep.formats.kafka.restore.send_batches import OffsetHole, Outgoing, outgoing
from logkeep.formats.kafka.transactions import SettledTransactions
from logkeep.kafka.restore.facts.log_views import archived_batches, settled_of, share_of, view_of
from logkeep.kafka.restore.facts.units import ReplayLog
from logkeep.kafka.restore.replay.outgoing import SendBuffer, stream
from logkeep.kafka.restore.replay.resume_point import StreamStep
from logkeep.repository.chain.commits import SourceRef


class StreamReader:
    """Returns the items of the stream one by one, and prepares one item ahead."""

    def __init__(self, log: ReplayLog, place: SourceRef, executor: Executor) -> None:
        self._log, self._place, self._executor = log, place, executor
        self._items: Iterator[SendBuffer | StreamStep] | None = None
        self._coming: deque[Future[SendBuffer | StreamStep | None]] = deque()
        self.reached = log.base
        """The target's log end: what is read from now on and ends before it will not be sent."""
        self.settled: SettledTransactions | None = None

    def open(self) -> None:
        """Start to read. May be called again."""
        if self._items is None:
            self._items = self._stream()
            self._submit()

    def take(self) -> SendBuffer | StreamStep | None:
        """The next item; None at the end. Raises Damaged, ObjectMissing or another StoreError."""
        self.open()
        item = self._coming.popleft().result()
        if item is not None:
            self._submit()
        return item

    def _submit(self) -> None:
        if self._items is not None:
            self._coming.append(self._executor.submit(next, self._items, None))

    def _stream(self) -> Iterator[SendBuffer | StreamStep]:
        """Runs in the executor's thread, including the first pass over the transactions."""
        yield from stream(self._log, self._parts(), lambda: self.reached)

    def _parts(self) -> Iterator[Outgoing | OffsetHole]:
        if self._log.spread_over:
            for index, source in enumerate(self._log.sources):
                yield from regrouped(share_of(self._place, self._log, source), index)
        else:
            source = self._log.first
            self.settled = settled_of(self._place, source, self._log.isolation)
            view = view_of(self._place, self._log, source, self.settled)
            parts = outgoing(archived_batches(self._place, source), view)
            yield from parts if self._log.merge is None else merged(parts, self._log.merge)
