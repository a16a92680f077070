"""What the rest of the repository asks of segment rows, answered from columns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow.compute as pc

from logkeep.model.ranges import Range
from logkeep.model.segments import Codec, LogName
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


class Expected(NamedTuple):
    """What a row says of its object."""

    name: str
    stored_bytes: int
    sha256: str
    codec: Codec
    plain_bytes: int
    plain_sha256: str


def expected(rows: SegmentTable, source: str) -> Iterator[tuple[str, Expected]]:
    """Token of every object, and all that its bytes are compared with, in the order of the rows."""
    stored = rows.with_objects()
    wanted = ("token", "stored_bytes", "sha256", "codec", "plain_bytes", "plain_sha256")
    columns = (stored.arrow.column(name).to_pylist() for name in wanted)
    for name, token, size, sha256, codec, plain, plain_sha256 in zip(
        stored.object_names(source), *columns, strict=True
    ):
        yield token.hex(), Expected(name, size, sha256.hex(), Codec(codec), plain, plain_sha256.hex())


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
