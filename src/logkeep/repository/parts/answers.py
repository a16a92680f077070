"""Queries on segment rows, answered from columns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from logkeep.model.ranges import Range
from logkeep.model.segments import Codec, LogName
from logkeep.repository.parts.table import SegmentTable

_NEVER = np.iinfo(np.int64).max


def total(rows: SegmentTable, column: str) -> int:
    """The sum of a column of numbers."""
    return int(pc.sum(rows.arrow.column(column)).as_py() or 0)


def tokens(rows: SegmentTable) -> Iterator[str]:
    """The token of every row's object."""
    return row_tokens(rows.with_objects())


def row_tokens(rows: SegmentTable) -> Iterator[str]:
    """The token of every row, whether it has an object or not."""
    return (token.hex() for token in rows.arrow.column("token").to_pylist())


def objects(rows: SegmentTable, source: str) -> Iterator[tuple[str, str, int, str]]:
    """Token, name, stored size and sha256 of every object, in the order of the rows."""
    stored = rows.with_objects()
    columns = (stored.arrow.column(name).to_pylist() for name in ("token", "stored_bytes", "sha256"))
    for name, token, size, sha256 in zip(stored.object_names(source), *columns, strict=True):
        yield token.hex(), name, size, sha256.hex()


class Expected(NamedTuple):
    """What a row states about its object."""

    name: str
    stored_bytes: int
    sha256: str
    codec: Codec
    plain_bytes: int
    plain_sha256: str


def expected(rows: SegmentTable, source: str) -> Iterator[tuple[str, Expected]]:
    """Token of every object, and what its bytes are compared with, in the order of the rows."""
    stored = rows.with_objects()
    wanted = ("token", "stored_bytes", "sha256", "codec", "plain_bytes", "plain_sha256")
    columns = (stored.arrow.column(name).to_pylist() for name in wanted)
    for name, token, size, sha256, codec, plain, plain_sha256 in zip(
        stored.object_names(source), *columns, strict=True
    ):
        yield token.hex(), Expected(name, size, sha256.hex(), Codec(codec), plain, plain_sha256.hex())


@dataclass(frozen=True)
class LogTotals:
    """Totals of one log."""

    segments: int
    records: int
    stored_bytes: int
    plain_bytes: int
    base_time_ms: int
    """Smallest and largest record time; -1 if unknown."""
    max_time_ms: int
    end: int = -1
    """The largest end of a row: merged objects may extend past a backup's cut."""


def log_totals(rows: SegmentTable) -> dict[LogName, LogTotals]:
    """Segments, records, bytes and times of every log, computed on whole columns."""
    runs = list(rows.log_runs())
    if not runs:
        return {}
    starts = np.array([first for _, first, _ in runs])
    sums = [np.add.reduceat(_numbers(rows, name), starts) for name in ("records", "stored_bytes", "plain_bytes")]
    base = _numbers(rows, "base_time_ms")
    known = np.maximum.reduceat(base, starts) >= 0
    base = np.minimum.reduceat(np.where(base < 0, _NEVER, base), starts)
    newest, ends = (np.maximum.reduceat(_numbers(rows, name), starts) for name in ("max_time_ms", "end"))
    columns = [*sums, np.where(known, base, -1), np.maximum(newest, -1), ends]
    lists = zip(*(column.tolist() for column in columns), strict=True)
    return {log: LogTotals(last - first, *numbers) for (log, first, last), numbers in zip(runs, lists, strict=True)}


def dense_logs(rows: SegmentTable) -> set[LogName]:
    """Logs whose rows all have a record at every position that they cover."""
    runs = list(rows.log_runs())
    if not runs:
        return set()
    first, start, end, records = (_numbers(rows, name) for name in ("first", "start", "end", "records"))
    whole = rows.arrow.column("has_object").to_numpy() & (first <= start) & (records == end - first)
    every = np.logical_and.reduceat(whole, np.array([at for _, at, _ in runs]))
    return {log for (log, _, _), one in zip(runs, every.tolist(), strict=True) if one}


def _numbers(rows: SegmentTable, column: str) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = rows.arrow.column(column).to_numpy()
    return numbers


def ranges(rows: SegmentTable) -> dict[LogName, list[Range]]:
    """The claims of every log, in order."""
    found: dict[LogName, list[Range]] = {}
    columns = (rows.arrow.column(name).to_pylist() for name in ("start", "end"))
    claims = [Range(start, end) for start, end in zip(*columns, strict=True)]
    for log, first, last in rows.log_runs():
        found[log] = claims[first:last]
    return found


def small_objects(rows: SegmentTable, below_bytes: int) -> dict[LogName, set[str]]:
    """The tokens of every log's objects that are smaller than this."""
    small = rows.arrow.filter(
        pc.and_(rows.arrow.column("has_object"), pc.less(rows.arrow.column("stored_bytes"), below_bytes))
    )
    chosen = SegmentTable(small.combine_chunks())
    found = [token.hex() for token in chosen.arrow.column("token").to_pylist()]
    return {log: set(found[first:last]) for log, first, last in chosen.log_runs()}
