"""Compares a live log with its archive while another reader goes through both, in the order of offsets.

Each stretch is compared before the reader gets the next one of its side: its bytes may be overwritten then.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from logkeep.formats.compare.log_compare import END, LogComparison
from logkeep.formats.kafka.batches import BatchStretch, walk
from logkeep.kafka.logs.live import Lost
from logkeep.model.ranges import Range


class SideBySide:
    """Compares inside `spans`, the archived ranges, which rise and do not overlap. Live records between them are not
    compared."""

    def __init__(self, spans: Sequence[Range]) -> None:
        self.compared = tuple(LogComparison() for _ in spans)
        """The result for each span."""
        self._spans, self._first, self._at = spans, 0, 0
        self._end = spans[-1].end if spans else 0
        self._live, self._archived = deque[BatchStretch](), END
        """Live stretches that are not finished, and the archived stretch that is being read."""

    def live(self, source: Iterator[BatchStretch | Lost]) -> Iterator[BatchStretch | Lost]:
        """Yields the items of `source` unchanged, and keeps them for the comparison."""
        for part in source:
            if isinstance(part, BatchStretch):
                self._live.append(part)
            yield part
            self._compare()
            if self._live:
                self._live[-1] = _copied(self._live[-1], self._at)

    def archived(self, source: Iterator[BatchStretch], read_live: Callable[[int], None]) -> Iterator[BatchStretch]:
        """Yields the items of `source` unchanged. `read_live` reads the live log at least up to an offset."""
        for part in source:
            self._archived = part
            yield part
            read_live(part.last)
            self._compare()
        self._archived = END
        read_live(self._end - 1)
        self._compare()

    def _compare(self) -> None:
        """Compare as far as both sides were read."""
        while self._live:
            here = self._live[0]
            border = min(here.last, self._archived.last, self._end - 1) + 1
            self._compare_spans(here, border)
            self._at = max(self._at, border)
            if here.last >= border:
                return
            self._live.popleft()

    def _compare_spans(self, here: BatchStretch, border: int) -> None:
        while self._first < len(self._spans) and self._spans[self._first].end <= self._at:
            self._first += 1
        for number in range(self._first, len(self._spans)):
            span = self._spans[number]
            if span.start >= border:
                return
            start, end = max(span.start, self._at), min(span.end, border)
            if start < end:
                self.compared[number].compare(here, self._archived, start, end)


def _copied(stretch: BatchStretch, start: int) -> BatchStretch:
    """A copy of what follows an offset. Usually these are markers that a leader sent together with earlier records."""
    rest = stretch.touching(start, stretch.last + 1)
    if not len(rest.batches):
        return rest
    first, last = int(rest.batches.positions[0]), int(rest.batches.positions[-1] + rest.batches.sizes[-1])
    data = bytes(memoryview(rest.buffer)[first:last])
    return BatchStretch(data, walk(data).batches)
