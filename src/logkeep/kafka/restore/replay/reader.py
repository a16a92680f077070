"""The stream of one log, read ahead by another thread: while batches are sent, the next ones are made ready."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future

from logkeep.formats.kafka.outgoing import OffsetHole, Outgoing, outgoing
from logkeep.formats.kafka.regroup import regrouped
from logkeep.formats.kafka.transactions import SettledTransactions
from logkeep.kafka.restore.facts.log_views import archived_batches, settled_of, share_of, view_of
from logkeep.kafka.restore.facts.units import ReplayLog
from logkeep.kafka.restore.replay.outgoing import Load, stream
from logkeep.kafka.restore.replay.resume_point import StreamStep
from logkeep.repository.chain.commits import SourceRef


class Reading:
    """Gives what the stream has, one item after the other. One item is made ready ahead of the one that is used."""

    def __init__(self, log: ReplayLog, place: SourceRef, reader: Executor) -> None:
        self._log, self._place, self._reader = log, place, reader
        self._items: Iterator[Load | StreamStep] | None = None
        self._coming: deque[Future[Load | StreamStep | None]] = deque()
        self.reached = log.base
        """Up to where the target has it: what is read from now on and ends before that is not going to be sent."""
        self.settled: SettledTransactions | None = None

    def open(self) -> None:
        """Begin to read. May be called again."""
        if self._items is None:
            self._items = self._stream()
            self._submit()

    def take(self) -> Load | StreamStep | None:
        """The next item; None: there are no more. Raises Damaged, ObjectMissing or another StoreError."""
        self.open()
        item = self._coming.popleft().result()
        if item is not None:
            self._submit()
        return item

    def _submit(self) -> None:
        if self._items is not None:
            self._coming.append(self._reader.submit(next, self._items, None))

    def _stream(self) -> Iterator[Load | StreamStep]:
        """Runs in the reader's thread, also the look at the transactions that comes first."""
        yield from stream(self._log, self._parts(), lambda: self.reached)

    def _parts(self) -> Iterator[Outgoing | OffsetHole]:
        if self._log.spread_over:
            for index, source in enumerate(self._log.sources):
                yield from regrouped(share_of(self._place, source), index)
        else:
            self.settled = settled_of(self._place, self._log)
            yield from outgoing(archived_batches(self._place, self._log), view_of(self._log, self.settled))
