"""Find the pieces of logs that a record names in the objects that hold them after merges. Pure.

Frequent backups leave many small pieces, and merging puts neighbours into one object. A record is never changed: it
names what was stored when it was written. Where the object of a piece is gone, a larger one of the same log holds it.
The pieces in it follow each other from its first transaction on. A backup that has all of them gets one log in their
place; one that has only the first of them gets its pieces, each a part of the larger object with the same bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from msgspec.structs import replace

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.scanned_log import HEADER
from logkeep.model.segments import Collection, LogName, Segment
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.repo.record import EnsembleRecord, log_of

_Holders = Mapping[LogName, Sequence[Segment]]


@dataclass(frozen=True)
class ServedRecord:
    """A record with the objects that hold its data today."""

    record: EnsembleRecord
    rows: dict[str, Segment]
    """The object of everything that the record names, by token."""
    within: dict[str, int]
    """Of pieces that are a part of an object: the byte of their first transaction in it, by token."""
    repaired: int = 0
    """Number of damaged objects of the record that were replaced by others."""


def find_pieces(record: EnsembleRecord, rows: Iterable[Segment], subject: str) -> ServedRecord:
    """Raises Damaged when a piece or a snapshot has no object: record and rows do not belong together."""
    found = {row.token: row for row in rows}
    missing = next((s.token for s in record.snapshots if s.token not in found), None)
    if missing is not None:
        raise _unknown(missing, subject)
    logs = [_completed(log, found[log.token]) for log in record.logs if log.token in found]
    within: dict[str, int] = {}
    for row, pieces in _merged_pieces(record, found, subject):
        if _is_all(pieces, row):
            logs.append(join_pieces(pieces, row))
            continue
        logs += (replace(piece, proof=row.proof) for piece in pieces)
        within |= _starts(pieces, row, subject)
        found |= {piece.token: row for piece in pieces}
    snapshots = (
        replace(s, size_bytes=found[s.token].plain_bytes, sha256=found[s.token].plain_sha256) for s in record.snapshots
    )
    return ServedRecord(replace(record, logs=tuple(logs), snapshots=tuple(snapshots)), found, within)


def join_pieces(pieces: Sequence[ArchivedLog], row: Segment) -> ArchivedLog:
    """One log record for pieces that follow each other in one object."""
    first, last = pieces[0], pieces[-1]
    return replace(
        _completed(replace(first, token=row.token), row),
        last=last.last,
        last_adler=last.last_adler,
        ending=last.ending,
        borders=tuple(border for piece in pieces for border in piece.borders),
    )


def _completed(log: ArchivedLog, row: Segment) -> ArchivedLog:
    """With the values of the log's own object: its row is what the parts pin, whatever the record says."""
    return replace(
        log,
        proof=row.proof,
        size_bytes=row.plain_bytes,
        sha256=row.plain_sha256,
        records=row.records,
        min_time_ms=row.base_time_ms,
        max_time_ms=row.max_time_ms,
    )


def _merged_pieces(
    record: EnsembleRecord, found: Mapping[str, Segment], subject: str
) -> list[tuple[Segment, list[ArchivedLog]]]:
    """Merged objects, and the pieces in each, in order."""
    lost = sorted((log for log in record.logs if log.token not in found), key=lambda log: log.first)
    holders = _holders(found.values()) if lost else {}
    moved: dict[str, list[ArchivedLog]] = {}
    for log in lost:
        moved.setdefault(_holder(log, holders, subject).token, []).append(log)
    return [(found[token], pieces) for token, pieces in moved.items()]


def _holders(rows: Iterable[Segment]) -> _Holders:
    holders: dict[LogName, list[Segment]] = {}
    for row in rows:
        if row.has_object and row.log.collection is Collection.TXNLOGS:
            holders.setdefault(row.log, []).append(row)
    return holders


def _holder(log: ArchivedLog, holders: _Holders, subject: str) -> Segment:
    name = log_of(Collection.TXNLOGS, log.member, log.apart or log.history)
    for row in holders.get(name, ()):
        if row.first <= log.first and log.last < row.end:
            return row
    raise _unknown(log.token, subject)


def _is_all(pieces: Sequence[ArchivedLog], row: Segment) -> bool:
    """Whether a backup has the whole object. A row that was shortened when a later backup was deleted holds more."""
    size_bytes = len(HEADER) + sum(piece.size_bytes - len(HEADER) for piece in pieces)
    return pieces[-1].last + 1 == row.end and size_bytes == row.plain_bytes


def _starts(pieces: Sequence[ArchivedLog], row: Segment, subject: str) -> dict[str, int]:
    follow = all(left.last + 1 == right.first for left, right in pairwise(pieces))
    if pieces[0].first != row.first or not follow or not all(piece.size_bytes for piece in pieces):
        raise _unknown(pieces[0].token, subject)
    starts, at = {}, len(HEADER)
    for piece in pieces:
        starts[piece.token] = at
        at += piece.size_bytes - len(HEADER)
    if at > row.plain_bytes:
        raise _unknown(pieces[-1].token, subject)
    return starts


def _unknown(token: str, subject: str) -> Damaged:
    return Damaged(f"the record names object {token}, which the backup does not have", subject=subject)
