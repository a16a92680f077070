"""Merge neighbouring pieces of one transaction log into one object: the task, and which pieces may be merged.

Each piece is read once: its SHA-256 and every record are checked again, and the same records go into the new object,
after one header. A damaged piece is returned as a value, and nothing becomes visible: the pieces stay in use.
"""

import hashlib
import io
from collections.abc import Hashable
from typing import BinaryIO, cast

from msgspec.structs import replace

from logkeep.errors import Damaged, ObjectMissing, UnsafeName
from logkeep.formats.zookeeper.names import epoch_of, hex_zxid
from logkeep.formats.zookeeper.txnlog import HEADER_BYTES, Padding, header, scan
from logkeep.model.plurals import plural
from logkeep.model.segments import Segment
from logkeep.model.time import TokenSource, random_token
from logkeep.model.work import Progress
from logkeep.repository.backups.attachments import read_attachment
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Folded
from logkeep.repository.object_writer import StoredWriter
from logkeep.repository.segments.reader import StoredLog
from logkeep.repository.upkeep.merge_plan import MergeKeyOf
from logkeep.repository.upkeep.optimize import Merged, MergeUnit, MergeWay
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.model.packing import PiecesStream
from logkeep.zookeeper.repo.reachable import record_rows
from logkeep.zookeeper.repo.record import ROLE, EnsembleRecord

_PROOF = "the same records one behind the other; the SHA-256 of every piece, and every record, proven while reading"


def merge_logs(unit: MergeUnit, progress: Progress) -> Merged:
    """Merge one run. Raises only errors that a retry may avoid."""
    return merge_with(unit, progress, random_token)


def merge_with(unit: MergeUnit, progress: Progress, tokens: TokenSource) -> Merged:
    """The same with the source of tokens as an argument."""
    first, token, where = unit.inputs[0], tokens(), ""
    name = layout.object_of(unit.place.source, first.log, first.first, token, first.codec)
    writer = StoredWriter(unit.place.store.open_new(name, unit.size_bytes), name, token, first.codec)
    try:
        writer.write(header())
        for row in unit.inputs:
            where = layout.segment(unit.place.source, row)
            _append(unit.place, row, where, writer, progress)
        stored = writer.close()
    except (Damaged, ObjectMissing, UnsafeName) as error:
        return Merged(problem=error.what, where=where)
    finally:
        writer.abort()
    return Merged(
        segment=replace(
            first,
            token=token,
            end=unit.inputs[-1].end,
            records=sum(row.records for row in unit.inputs),
            stored_bytes=stored.size_bytes,
            plain_bytes=stored.plain_bytes,
            base_time_ms=min(row.base_time_ms for row in unit.inputs),
            max_time_ms=max(row.max_time_ms for row in unit.inputs),
            sha256=stored.sha256,
            plain_sha256=stored.plain_sha256,
            digest="",
        )
    )


def _append(place: SourceRef, row: Segment, where: str, writer: StoredWriter, progress: Progress) -> None:
    """Append the records of one piece. Raises Damaged when it is not what was archived."""
    digest = hashlib.sha256()

    def watch(chunk: bytes) -> None:
        digest.update(chunk)
        progress(len(chunk))

    stream = PiecesStream(StoredLog.of(place, row).pieces(watch))
    with cast("BinaryIO", io.BufferedReader(stream)) as source:
        found = scan(source, start_at=HEADER_BYTES, sink=writer.write)
    if found.damage or found.padding is not Padding.NOTHING:
        raise Damaged("a record in it is damaged", subject=where)
    if digest.hexdigest() != row.sha256:
        raise Damaged("the bytes are not those that were written", subject=where)
    if (found.first_zxid, found.last_zxid + 1, found.records) != (row.first, row.end, row.records):
        span = f"from {hex_zxid(found.first_zxid)} to {hex_zxid(found.last_zxid)}"
        held = f"{plural(found.records, 'transaction')} {span}"
        raise Damaged(f"it holds {held}, which is not what its row says", subject=where)


def merge_key_of(place: SourceRef, folded: Folded) -> MergeKeyOf:
    """Which pieces may be merged: those of one file and epoch, as the newest backup names them.

    Only pieces that every backup which has them will find in a larger object.
    """
    found = record_rows(place, folded, folded.completed[-1]) if folded.completed else None
    if found is None:
        return lambda _: None
    record, rows = found
    whole = [log for log in record.logs if not log.apart and rows[log.token].token == log.token]
    named = _pieces_of_other_records(place, folded)
    logs = {log.token: log for log in whole if all(_is_found_in(other, log) for other in named)}
    return lambda row: _merge_key(row, logs.get(row.token))


def _merge_key(row: Segment, log: ArchivedLog | None) -> Hashable | None:
    """None for a row that was shortened: it does not cover the end of its object, so no piece can follow it."""
    if log is None or (row.first, row.end) != (log.first, log.last + 1):
        return None
    return log.name, epoch_of(log.first), log.digests


def _pieces_of_other_records(place: SourceRef, folded: Folded) -> list[ArchivedLog]:
    """Pieces in records that may differ from the pieces of today: the first release recorded too little of them, and a
    repair may have left out lost transactions. Without repairs such records are older than all others."""
    repaired, named = any(one.keep_old for one in folded.replacements), dict[str, ArchivedLog]()
    for entry in folded.completed:
        record = read_attachment(place, read_manifest(place, entry), ROLE, EnsembleRecord)
        logs = record.logs if record is not None else ()
        if logs and not repaired and all(log.size_bytes for log in logs):
            break
        named.update((log.token, log) for log in logs if repaired or not log.size_bytes)
    return list(named.values())


def _is_found_in(named: ArchivedLog, piece: ArchivedLog) -> bool:
    """Whether a backup with the record `named` still finds its transactions if the piece is merged."""
    if (named.member, named.apart or named.history) != (piece.member, piece.history):
        return True
    if named.last < piece.first or piece.last < named.first:
        return True
    return bool(named.size_bytes) and piece.first <= named.first and named.last <= piece.last


WAY = MergeWay(merge_logs, merge_key_of, _PROOF)
