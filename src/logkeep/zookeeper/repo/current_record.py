"""The record of a backup with the objects of today: repairs and merges may have replaced those that it names.

A record is never changed. A repair replaces a damaged object by a commit of the chain: by one object with the same
bytes if nothing is lost, else by one object for every run of records that is left, and rows without an object for the
rest. `served_record` applies repairs first, then merges, so that a reader of the backup sees no difference.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import msgspec

from logkeep.errors import Damaged
from logkeep.model.segments import Collection as Kind
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Folded
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, LogFileEnding
from logkeep.zookeeper.repo.pieces import ServedRecord, find_pieces
from logkeep.zookeeper.repo.record import EnsembleRecord, log_of

_ADLER: Final = "adler32:"


def last_adler_in(row: Segment) -> int | None:
    """The checksum of the last record, from the row of what is left of a log: the backup's record does not have it."""
    return int(row.digest.removeprefix(_ADLER), 16) if row.digest.startswith(_ADLER) else None


def adler_digest(adler: int) -> str:
    """The digest of a row for `last_adler_in`."""
    return f"{_ADLER}{adler:08x}"


def served_record(place: SourceRef, folded: Folded, manifest: Manifest, record: EnsembleRecord) -> ServedRecord:
    """With repairs and merges, and the rows of its objects. Raises Damaged."""
    rows = list(rows_of(PartReader(place), manifest, served_parts(manifest, folded)).to_segments())
    repaired = with_repairs(record, rows) if was_repaired(manifest, folded) else record
    count = len(tokens_of(record) - tokens_of(repaired))
    return replace(find_pieces(repaired, rows, place.source), repaired=count)


def repaired_record(place: SourceRef, folded: Folded, manifest: Manifest, record: EnsembleRecord) -> EnsembleRecord:
    """With repairs alone, which is enough for the last transactions. Without any repair, no part is read."""
    if not was_repaired(manifest, folded):
        return record
    return with_repairs(record, rows_of(PartReader(place), manifest, served_parts(manifest, folded)).to_segments())


def was_repaired(manifest: Manifest, folded: Folded) -> bool:
    """Whether other parts than its own serve a backup, and a repair may be the reason."""
    served = served_parts(manifest, folded)
    return any(one.keep_old for one in folded.replacements) and any(part not in served for part in manifest.parts)


def tokens_of(record: EnsembleRecord) -> set[str]:
    """Of all objects that it names."""
    return {*(s.token for s in record.snapshots), *(r.token for r in record.logs)}


def with_repairs(record: EnsembleRecord, rows: Iterable[Segment]) -> EnsembleRecord:
    """The record with the objects that replaced damaged ones. Pure.

    A snapshot that no row serves could not be repaired, and is left out; so is a log of which everything is lost. A log
    that is part of a larger object stays as it is: it was merged with others, not repaired.
    """
    found = list(rows)
    held, named = {row.token for row in found}, tokens_of(record)
    if named <= held:
        return record
    others = _UnnamedRows(row for row in found if row.token not in named)
    snapshots = [s if s.token in held else others.snapshot(s) for s in record.snapshots]
    logs = [one for r in record.logs for one in ((r,) if r.token in held else others.logs(r))]
    return msgspec.structs.replace(record, snapshots=tuple(s for s in snapshots if s is not None), logs=tuple(logs))


class _UnnamedRows:
    """Rows that the record does not name."""

    def __init__(self, rows: Iterable[Segment]) -> None:
        self._by_log: dict[LogName, list[Segment]] = {}
        for row in rows:
            self._by_log.setdefault(row.log, []).append(row)

    def snapshot(self, named: ArchivedSnapshot) -> ArchivedSnapshot | None:
        """The same file, in another object."""
        for row in self._by_log.get(log_of(Kind.SNAPSHOTS, named.member, named.history), ()):
            if (row.first, row.plain_sha256) == (named.zxid, named.sha256):
                return msgspec.structs.replace(named, token=row.token)
        return None

    def logs(self, named: ArchivedLog) -> Iterator[ArchivedLog]:
        """The logs that replace it, in order; nothing where all of it is lost. A lost end of a log has no row: so a log
        after all rows is lost too."""
        rows = self._by_log.get(log_of(Kind.TXNLOGS, named.member, named.apart or named.history), ())
        inside = [row for row in rows if row.has_object and _is_within(row, named)]
        lost = any(row.start <= named.first and named.last < row.end and not row.has_object for row in rows)
        beyond = bool(rows) and all(row.end <= named.first for row in rows)
        if not inside and not lost and not beyond:
            yield named
        for row in sorted(inside, key=lambda row: row.first):
            yield _replacement(named, row)


def _is_within(row: Segment, named: ArchivedLog) -> bool:
    """Whether the row's object can be what a repair left of this log. A merged object holds more bytes, also where its
    row was shortened to the positions of this log when a later backup was deleted."""
    larger = bool(named.size_bytes) and row.plain_bytes > named.size_bytes
    return named.first <= row.first and row.end <= named.last + 1 and not larger


def _replacement(named: ArchivedLog, row: Segment) -> ArchivedLog:
    last = row.end - 1
    adler = named.last_adler if last == named.last else last_adler_in(row)
    if adler is None:
        raise Damaged("the row of a repaired log has no checksum of its last record", subject=str(row.log))
    return msgspec.structs.replace(
        named,
        token=row.token,
        first=row.first,
        last=last,
        last_adler=adler,
        max_time_ms=row.max_time_ms,
        ending=named.ending if last == named.last else LogFileEnding.DAMAGED,
        borders=tuple(border for border in named.borders if row.first <= border[1] <= last),
        size_bytes=row.plain_bytes,
        sha256=row.plain_sha256,
        records=row.records,
        min_time_ms=row.base_time_ms,
    )
