"""What the rest of the repository asks of segment rows, answered from columns."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.compute as pc

from logkeep.model.ranges import Range
from logkeep.model.segments import LogName
from logkeep.repository.parts.table import SegmentTable


def total(rows: SegmentTable, column: str) -> int:
    """The sum of a column of numbers."""
    return int(pc.sum(rows.arrow.column(column)).as_py() or 0)


def tokens(rows: SegmentTable) -> Iterator[str]:
    """The token of every row's object."""
    return (token.hex() for token in rows.with_objects().arrow.column("token").to_pylist())


def objects(rows: SegmentTable, source: str) -> Iterator[tuple[str, str, int, str]]:
    """Token, name, stored size and sha256 of every object, in the order of the rows."""
    stored = rows.with_objects()
    columns = (stored.arrow.column(name).to_pylist() for name in ("token", "stored_bytes", "sha256"))
    for name, token, size, sha256 in zip(stored.object_names(source), *columns, strict=True):
        yield token.hex(), name, size, sha256.hex()


@dataclass(frozen=True)
class LogTotals:
    """What rows hold of one log."""

    segments: int
    records: int
    stored_bytes: int


def log_totals(rows: SegmentTable) -> dict[LogName, LogTotals]:
    """Segments, records and bytes of every log."""
    found: dict[LogName, LogTotals] = {}
    for log, first, last in rows.log_runs():
        part = SegmentTable(rows.arrow.slice(first, last - first))
        found[log] = LogTotals(last - first, total(part, "records"), total(part, "stored_bytes"))
    return found


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
