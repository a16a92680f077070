"""View merged objects as a whole, whatever part of them a backup has: they are repaired as a whole.

A backup may have only the first pieces of a merged object, and the backup that had all of them may be deleted. The row
of the object still has the number of its consecutive transactions and the hash of its bytes.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO, cast

import msgspec

from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.zookeeper.txnlog import scan
from logkeep.model.segments import Segment
from logkeep.repository.segments.reader import StoredLog
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.model.packing import PiecesStream
from logkeep.zookeeper.repo.pieces import join_pieces
from logkeep.zookeeper.repo.view import ArchiveView


def whole_view(view: ArchiveView) -> ArchiveView:
    """The same view with one log for every merged object of which it has a part. These logs may overlap others."""
    if not view.within:
        return view
    found = [(row, _log_of_object(view, row, pieces)) for row, pieces in _merged(view)]
    alone = tuple(log for log in view.record.logs if log.token not in view.within)
    record = msgspec.structs.replace(view.record, logs=(*alone, *(log for _, log in found)))
    return replace(view, record=record, rows={**view.rows, **{row.token: row for row, _ in found}}, within={})


def _merged(view: ArchiveView) -> Iterator[tuple[Segment, list[ArchivedLog]]]:
    """Merged objects, and the pieces in each, in order."""
    pieces: dict[str, list[ArchivedLog]] = {}
    for log in sorted((log for log in view.record.logs if log.token in view.within), key=lambda log: log.first):
        pieces.setdefault(view.rows[log.token].token, []).append(log)
    for some in pieces.values():
        yield view.rows[some[0].token], some


def _log_of_object(view: ArchiveView, row: Segment, pieces: Sequence[ArchivedLog]) -> ArchivedLog:
    """Only pieces of one epoch are merged: their zxids are consecutive."""
    last, log = row.first + row.records - 1, join_pieces(pieces, row)
    if log.last == last:
        return log
    return msgspec.structs.replace(log, last=last, last_adler=_last_adler(view, row, last))


def _last_adler(view: ArchiveView, row: Segment, last: int) -> int:
    """Read from the object: no backup has it. 0, which matches nothing, if the object is damaged before its end."""
    try:
        with cast("BinaryIO", io.BufferedReader(PiecesStream(StoredLog.of(view.place, row).pieces()))) as source:
            found = scan(source)
    except (Damaged, ObjectMissing):
        return 0
    return found.last_adler if found.last_zxid == last else 0
