"""Which records are in transit at a cut: produced inside it, and not read yet. Pure.

For a checkpoint N and each log: P is where the reading task was when it took N, B the end of the log before the marker
N was sent, E its end once every task has taken N. `[start, max(P, B))` is completely in the cut. After it, up to E,
records whose cause is inside the cut are in transit: a restore appends them again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from logkeep.application.kafka.headers import Header, Stamps

Log = tuple[str, int]


@dataclass(frozen=True)
class CutBounds:
    """P, B and E of one log."""

    read_to: tuple[int, ...]
    """P of each group that reads it; empty: no task of the application does."""
    before: int
    end: int

    @property
    def kept_to(self) -> int:
        """The end of the part that is completely in the cut."""
        return max(self.before, *self.read_to, 0)


class CutRecord(Protocol):
    """What decides: a visible record between the kept part of its log and E."""

    @property
    def log(self) -> Log: ...

    @property
    def offset(self) -> int: ...

    @property
    def headers(self) -> tuple[Header, ...]: ...


@dataclass(frozen=True)
class InTransit:
    records: tuple[tuple[Log, int], ...]
    disagreeing: tuple[tuple[Log, int], ...]
    """Records whose stamp and whose cause say different things: outputs of a task that ended without a commit."""


def in_transit(
    records: Iterable[CutRecord], positions: Mapping[Log, CutBounds], stamps: Stamps, checkpoint_id: int
) -> InTransit:
    """The cause decides. A stamp that contradicts it is counted: without transactions a record may be a duplicate."""
    found, contrary = [], []
    for record in records:
        if not stamps.is_own(record.headers):
            continue
        older = stamps.checkpoint_of(record.headers) < checkpoint_id
        inside = _caused_inside(record, positions, stamps, stamped_inside=older)
        if inside:
            found.append((record.log, record.offset))
        if inside != older:
            contrary.append((record.log, record.offset))
    return InTransit(tuple(found), tuple(contrary))


def _caused_inside(
    record: CutRecord, positions: Mapping[Log, CutBounds], stamps: Stamps, *, stamped_inside: bool
) -> bool:
    """Where several groups read the cause and some of them had read it, only the stamp says which produced this."""
    source = stamps.source_of(record.headers)
    at = positions.get((source.topic, source.partition)) if source is not None else None
    if source is None or at is None or not at.read_to:
        return stamped_inside
    if source.position < min(at.read_to):
        return True
    return source.position < max(at.read_to) and stamped_inside
