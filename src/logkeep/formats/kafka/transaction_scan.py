"""Finds the transactions of a log, for a comparison with those of other logs: one row for each, from batch headers.

A row says which producer wrote it, between which offsets, how it ended, and whether a restore that ends the log at a
cut brings back all of it, a part of it or none. Aborted transactions have no row: no restore tears them. Batches are
read in whole columns; what is kept between two stretches is one row for each open transaction.

With transaction.version 2 the commit marker has the next epoch of the producer (`marker_epoch` = `epoch` + 1), so
producer id and epoch identify a transaction. Before that, all transactions of a session have one epoch.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import (
    APPEND_TIME,
    CONTROL,
    DELETE_HORIZON,
    HEADER_BYTES,
    TRANSACTIONAL,
    Batches,
    Bytes,
)
from logkeep.formats.kafka.records import Malformed, decode
from logkeep.formats.kafka.transactions import ABORT, COMMIT

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.void]
Marks = npt.NDArray[np.int16]

TRANSACTION = np.dtype(
    [
        ("producer_id", "<i8"),
        ("epoch", "<i2"),
        ("first_offset", "<i8"),
        ("last_offset", "<i8"),
        ("marker_epoch", "<i2"),
        ("marker_ms", "<i8"),
        ("restored", "?"),
        ("missing", "?"),
        ("certain", "?"),
    ]
)
"""`last_offset` is that of the marker. `marker_epoch` and `marker_ms` are -1 in a transaction without a marker.
`restored`, `missing`: some of its records are restored, some are not; without `certain`, one of them is not known."""
_OPEN, _NO_MARKER = -1, -2
_KEY_AT = HEADER_BYTES + 5
"""Length, attributes, time, offset and key length of a marker's record take one byte each."""
_MARKER_BYTES = _KEY_AT + 4


@dataclass(frozen=True)
class RestoreCut:
    """What a restore brings back of a log."""

    end: int
    """Records from this offset on are not restored."""
    before_ms: int | None = None
    """Nor are those of this time or later."""
    unsettled: bool = False
    """Whether records of transactions without a marker before the end are restored."""


@dataclass
class TransactionScan:
    """A log that is read from its start. Give it every batch of the `producers`, in order; others do not matter."""

    cut: RestoreCut
    producers: Collection[int]
    _open: Rows = field(default_factory=lambda: np.empty(0, TRANSACTION))
    _ended: list[Rows] = field(default_factory=list)

    def take(self, buffer: Bytes, batches: Batches) -> None:
        """Raises Damaged for a marker that cannot be read."""
        ours = batches.headers["attributes"] & (TRANSACTIONAL | CONTROL) != 0
        ours &= np.isin(batches.headers["producer_id"], list(self.producers))
        chosen = Batches(batches.headers[ours], batches.positions[ours])
        if len(chosen):
            self._fold(*_steps(buffer, chosen, self.cut))

    def rows(self) -> Rows:
        """All transactions that were committed or are open, in order of their markers."""
        still_open = self._open.copy()
        if not self.cut.unsettled:  # nothing of them is restored
            still_open["restored"], still_open["missing"] = False, True
        return np.concatenate([*self._ended, still_open])

    def _fold(self, steps: Rows, marks: Marks) -> None:
        """Join the batches of each transaction, from the one after its producer's last marker to the next marker."""
        steps = np.concatenate([self._open, steps])
        marks = np.concatenate([np.full(len(self._open), _OPEN, np.int16), marks])
        order = np.lexsort((steps["first_offset"], steps["producer_id"]))
        steps, marks = steps[order], marks[order]
        firsts = _firsts(steps["producer_id"], marks)
        joined = steps[firsts]
        ends = np.append(firsts[1:], len(steps)) - 1
        for name in ("last_offset", "marker_epoch", "marker_ms"):
            joined[name] = steps[name][ends]
        data = marks == _OPEN
        joined["restored"] = np.logical_or.reduceat(steps["restored"] & data, firsts)
        joined["missing"] = np.logical_or.reduceat(steps["missing"] & data, firsts)
        joined["certain"] = np.logical_and.reduceat(steps["certain"] | ~data, firsts)
        written = np.logical_or.reduceat(data, firsts)
        self._keep(joined[written], marks[ends][written])

    def _keep(self, joined: Rows, marks: Marks) -> None:
        self._open = joined[marks == _OPEN]
        committed = joined[marks == COMMIT]
        if not self.cut.unsettled:
            late = committed["last_offset"] >= self.cut.end
            committed["restored"][late], committed["missing"][late] = False, True
            committed["certain"][late] = True
        self._ended.append(committed[np.argsort(committed["last_offset"])])


def _steps(buffer: Bytes, batches: Batches, cut: RestoreCut) -> tuple[Rows, Marks]:
    """A row for each batch, and what it ends its transaction with; `_OPEN` for one with records."""
    headers = batches.headers
    control = (headers["attributes"] & CONTROL) != 0
    marks = np.full(len(batches), _OPEN, np.int16)
    marks[control] = _marker_types(buffer, Batches(headers[control], batches.positions[control]))
    steps = np.zeros(len(batches), TRANSACTION)
    steps["producer_id"], steps["epoch"] = headers["producer_id"], headers["producer_epoch"]
    steps["first_offset"], steps["last_offset"] = batches.base_offsets, batches.last_offsets
    steps["marker_epoch"] = np.where(control, headers["producer_epoch"], -1)
    steps["marker_ms"] = np.where(control, headers["max_time_ms"], -1)
    early, late, certain = _by_time(batches, cut.before_ms)
    steps["restored"] = early & (batches.base_offsets < cut.end)
    steps["missing"] = late | (batches.last_offsets >= cut.end)
    steps["certain"] = certain
    # A later Kafka may have other control records; an empty batch was kept for its producer's state.
    known = np.where(control, (marks == ABORT) | (marks == COMMIT), headers["records"] > 0)
    return steps[known], marks[known]


def _by_time(batches: Batches, before_ms: int | None) -> tuple[Flags, Flags, Flags]:
    """Whether a batch may have records before the time, whether it has some from then on, and whether that is known.

    A header has the first and the largest time. Where both are late, a record between them may be early.
    """
    everything = np.ones(len(batches), np.bool_)
    if before_ms is None:
        return everything, ~everything, everything
    headers = batches.headers
    late = headers["max_time_ms"] >= before_ms
    append = (headers["attributes"] & APPEND_TIME) != 0
    shown = ((headers["attributes"] & (APPEND_TIME | DELETE_HORIZON)) == 0) & (headers["base_time_ms"] < before_ms)
    perhaps = ~append & (headers["records"] > 1)
    return ~late | shown | perhaps, late, ~late | shown | ~perhaps


def _firsts(producers: npt.NDArray[np.int64], marks: Marks) -> npt.NDArray[np.intp]:
    """Where a transaction begins: at another producer, and after a marker."""
    begins = np.ones(len(producers), np.bool_)
    begins[1:] = (producers[1:] != producers[:-1]) | (marks[:-1] != _OPEN)
    return np.flatnonzero(begins)


def _marker_types(buffer: Bytes, batches: Batches) -> Marks:
    """The type of the marker in each control batch. Raises Damaged for one that cannot be read."""
    found = np.full(len(batches), _NO_MARKER, np.int16)
    filled = batches.headers["records"] == 1  # compaction leaves an empty batch where it removes a marker
    usual = filled & (batches.sizes >= _MARKER_BYTES)
    plain = np.frombuffer(buffer, np.uint8)
    at = batches.positions[usual]
    layout = plain[at[:, None] + np.arange(HEADER_BYTES, _KEY_AT)] if len(at) else np.empty((0, 5), np.uint8)
    usual[usual] = (layout[:, 0] < 128) & (layout[:, 1:] == (0, 0, 0, 8)).all(axis=1)
    at = batches.positions[usual] + _KEY_AT
    found[usual] = (plain[at + 2].astype(np.int16) << 8) | plain[at + 3]
    for row in np.flatnonzero(filled & ~usual).tolist():
        found[row] = _decoded_type(buffer, batches[row : row + 1])
    return found


def _decoded_type(buffer: Bytes, marker: Batches) -> int:
    for part in decode(buffer, marker):
        if isinstance(part, Malformed):
            raise Damaged(f"a transaction marker cannot be read: {part}")
        key = part.key(0)
        if key is not None and len(key) >= 4:
            return int.from_bytes(key[2:4], "big", signed=True)
    return _NO_MARKER
