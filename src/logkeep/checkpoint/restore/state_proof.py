"""The digest of a staged partition: its snapshot and the events after it, folded as the application will replay them.

It reads the files that were written, so it also proves the disk. Memory is 72 bytes for each key.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from logkeep.checkpoint.certificate.snapshot_file import is_sqlite, user_items
from logkeep.checkpoint.certificate.state_fold import StateFold, Words, digest, rows_of_items, write_rows
from logkeep.checkpoint.records import Kind
from logkeep.errors import Damaged
from logkeep.formats.applications import event_kernels as e
from logkeep.formats.applications import mark_kernels as m
from logkeep.formats.kafka.batches import TRANSACTIONAL, Batches, Bytes
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode
from logkeep.formats.kafka.transactions import SettledTransactions, Settling
from logkeep.repository.segments.log_batches import LogPieces

_PIECE_BYTES: Final = 4 << 20
_ANY, _NO_TOPIC = np.zeros(16, np.uint8), (np.zeros(1, np.uint8), np.array([1]))


def staged_digest(root: Path, snapshot_position: int, seed: int) -> str | None:
    """64 hex digits; None if the state backend has snapshots of its own format. Raises Damaged.

    `seed` is random: keys are compared by hashes, and no writer of keys can make two of them equal.
    """
    fold = StateFold()
    if snapshot_position >= 0:
        snapshot = root / "snapshots" / f"{snapshot_position:020}.sqlite"
        if not is_sqlite(snapshot):
            return None
        for items in user_items(snapshot):
            fold.add(rows_of_items(items, seed)[0])
    settled: SettledTransactions | None = None
    for buffer, batches in _batches(root):
        if settled is None and (batches.headers["attributes"] & TRANSACTIONAL).any():
            settled = _settled(root)
        for part in decode(buffer, batches):
            if isinstance(part, Malformed):
                raise Damaged(str(part), subject=str(root))
            fold.add(_writes(_visible(part, settled), snapshot_position, seed, root))
    return f"{digest(fold.last()):064x}"


def _batches(root: Path) -> Iterator[tuple[Bytes, Batches]]:
    for path in sorted((root / "log").glob("*.log")):
        pieces = LogPieces()
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield from pieces.take(piece)
                if pieces.problem:
                    raise Damaged(pieces.problem, subject=str(path))
        if pieces.end_problem():
            raise Damaged(pieces.end_problem(), subject=str(path))


def _settled(root: Path) -> SettledTransactions:
    """How the transactions of the log end."""
    settling = Settling()
    for buffer, batches in _batches(root):
        settling.take(buffer, batches)
    return settling.settled()


def _visible(part: RecordColumns, settled: SettledTransactions | None) -> RecordColumns:
    seen = ~part.control
    if settled is not None:
        seen &= settled.visible(part.batches)[part.batch]
    return part if seen.all() else part.chosen(seen)


def _writes(part: RecordColumns, snapshot_position: int, seed: int, root: Path) -> Words:
    """A row for each write of an event after the snapshot."""
    marks = np.empty((len(part), m.COLUMNS), np.int64)
    m.read_marks(part.data, part.spans, _ANY, *_NO_TOPIC, marks)
    rows = np.flatnonzero((marks[:, m.KIND] == Kind.EVENT) & (part.offsets > snapshot_position))
    events = np.empty((len(rows), e.EVENT_COLUMNS), np.int64)
    e.count_events(part.data, part.spans, rows, events)
    if (events[:, e.GOOD] != 1).any():
        raise Damaged("an event cannot be read", subject=str(root))
    return write_rows(part.data, part.offsets[rows], events, seed)
