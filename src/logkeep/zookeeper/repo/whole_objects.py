"""Objects as a whole, whatever part of them a backup has: what was merged is damaged, and mended, as one.

A backup may end among the pieces of a merged object, and the one that had all of them may be deleted. The row of the
object still says how many transactions it holds, one behind the other, and what their bytes hash to.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO, cast

import msgspec

from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.zookeeper.txnlog import scan
from logkeep.model.segments import Segment
from logkeep.repository.backups.segment_bytes import StoredLog
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.model.packing import PiecesStream
from logkeep.zookeeper.repo.pieces import joined
from logkeep.zookeeper.repo.view import ArchiveView


def whole_view(view: ArchiveView) -> ArchiveView:
    """The same with one log for every merged object of which it has a part. They may overlap others."""
    if not view.within:
        return view
    found = [(row, _whole(view, row, pieces)) for row, pieces in _merged(view)]
    alone = tuple(log for log in view.record.logs if log.token not in view.within)
    record = msgspec.structs.replace(view.record, logs=(*alone, *(log for _, log in found)))
    return replace(view, record=record, rows={**view.rows, **{row.token: row for row, _ in found}}, within={})


def _merged(view: ArchiveView) -> Iterator[tuple[Segment, list[ArchivedLog]]]:
    """Larger objects, and the pieces in each, in order."""
    pieces: dict[str, list[ArchivedLog]] = {}
    for log in sorted((log for log in view.record.logs if log.token in view.within), key=lambda log: log.first):
        pieces.setdefault(view.rows[log.token].token, []).append(log)
    for some in pieces.values():
        yield view.rows[some[0].token], some


def _whole(view: ArchiveView, row: Segment, pieces: Sequence[ArchivedLog]) -> ArchivedLog:
    """Only pieces of one epoch are merged: their transactions are counted through."""
    last = row.first + row.records - 1
    told = joined(pieces, row)
    return (
        told if told.last == last else msgspec.structs.replace(told, last=last, last_adler=_last_adler(view, row, last))
    )


def _last_adler(view: ArchiveView, row: Segment, last: int) -> int:
    """As the object itself tells: no backup does. 0, which fits nothing, where it is damaged before its end."""
    try:
        with cast("BinaryIO", io.BufferedReader(PiecesStream(StoredLog.of(view.place, row).pieces()))) as source:
            found = scan(source)
    except (Damaged, ObjectMissing):
        return 0
    return found.last_adler if found.last_zxid == last else 0
