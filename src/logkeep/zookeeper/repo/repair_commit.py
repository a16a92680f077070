"""The commit of a repair: it replaces damaged objects for every backup that needs them.

A new row has the same plain bytes that were archived, or it is one of the runs of records that are left of them.
Positions that are lost in the middle of a log get a row without an object, so that a reader finds the hole. Positions
that are lost at its end get none, so that the next backup reads them from the server. The new objects are read back
before the commit. Originals stay as long as a backup that was committed with them: a repair never destroys evidence.
The commit describes what was done.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from logkeep.errors import BackupFailed, Damaged
from logkeep.model.ranges import Range, tile
from logkeep.model.segments import Collection, Segment
from logkeep.model.time import TokenSource
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.write_session import Writing
from logkeep.repository.object_writer import StoredObject
from logkeep.repository.parts import ranges
from logkeep.repository.segments.reader import StoredLog
from logkeep.repository.upkeep.replace import ServedRows, replace_rows, served_rows
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.repo.current_record import adler_digest


@dataclass(frozen=True)
class ObjectRepair:
    """One damaged object, and the rows that replace it; none: it cannot be used, and is no longer named."""

    old: Segment
    new: tuple[Segment, ...]
    provenance: str
    """Where the new ones are from, and what is lost, for people."""


def commit_repairs(session: Writing, repairs: Sequence[ObjectRepair]) -> None:
    """Raises BackupFailed where a new object cannot be read back, LeaseLost or CommitConflict: nothing has changed."""
    place = session.place
    for row in (row for one in repairs for row in one.new):
        _read_back(place, row)
    proof = "; ".join(f"{one.provenance}; was {layout.segment(place.source, one.old)}" for one in repairs)
    served = served_rows(place, session.folded)
    old, new = [one.old for one in repairs], [row for one in repairs for row in _new_rows(one, served)]
    lost = [row for one in repairs for row in _lost_rows(one, served, session.tokens)]
    replace_rows(session, served, old, [*new, *lost], proof, keep_old=True)


def _new_rows(repair: ObjectRepair, served: ServedRows) -> Iterator[Segment]:
    """The new rows, cut to the range that the old object still covers: if the backup that had all of it was deleted, an
    object of a later backup covers its end."""
    old, wanted = repair.old, {repair.old.log: Range(repair.old.start, repair.old.end)}
    rows = (row for _, table in served.parts.values() for row in table.covering(wanted).to_segments())
    end = min((row.end for row in rows if row.token == old.token), default=old.end)
    for row in repair.new:
        same = row.plain_sha256 == old.plain_sha256
        yield msgspec.structs.replace(row, end=min(row.end, end)) if same else row


def _lost_rows(repair: ObjectRepair, served: ServedRows, tokens: TokenSource) -> Iterator[Segment]:
    """Rows for positions that no object covers any more and that others follow."""
    old = repair.old
    if old.log.collection is not Collection.TXNLOGS:
        return
    ends = [held.end for _, table in served.parts.values() for held in ranges(table).get(old.log, ())]
    for gap in tile(Range(old.start, old.end), [Range(row.start, row.end) for row in repair.new]).gaps:
        if gap.end < max(ends, default=0):
            yield Segment.without_object(old.log, gap.start, gap.end, tokens(), old.proof)


def _read_back(place: SourceRef, row: Segment) -> None:
    hashed, stored = hashlib.sha256(), StoredLog.of(place, row)
    try:
        for piece in stored.pieces():
            hashed.update(piece)
    except Damaged as error:
        raise BackupFailed("the object that was just written cannot be read back", subject=stored.name) from error
    if hashed.hexdigest() != row.plain_sha256:
        raise BackupFailed("the bytes that were read back are not those that were written", subject=stored.name)


def same_bytes(old: Segment, stored: StoredObject) -> Segment | None:
    """The row of a new object with the same plain bytes as the old one; None where they differ."""
    if (stored.plain_bytes, stored.plain_sha256) != (old.plain_bytes, old.plain_sha256):
        return None
    return _in_object(old, stored)


def run_of(old: Segment, kept: ArchivedLog, stored: StoredObject) -> Segment:
    """The row of a run of records that is left of a log. It covers no position that is lost."""
    ends_alike = kept.last + 1 == old.end
    return msgspec.structs.replace(
        _in_object(old, stored),
        start=old.start if kept.first == old.first else kept.first,
        end=kept.last + 1,
        first=kept.first,
        records=kept.records,
        plain_bytes=stored.plain_bytes,
        plain_sha256=stored.plain_sha256,
        base_time_ms=kept.min_time_ms,
        max_time_ms=kept.max_time_ms,
        digest=old.digest if ends_alike else adler_digest(kept.last_adler),
    )


def _in_object(old: Segment, stored: StoredObject) -> Segment:
    return msgspec.structs.replace(
        old, token=stored.token, stored_bytes=stored.size_bytes, sha256=stored.sha256, codec=stored.codec
    )
