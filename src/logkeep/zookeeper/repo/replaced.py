"""The record of a backup as it is served today: other objects may stand in the place of those that it names. Pure.

A record is never changed. Where an object was damaged and mended, a commit of the chain lets another one serve its
positions: with the same bytes if nothing is lost, else one object for every run of records that is left, and rows
without an object for the rest. `as_served` tells of them what the record told of the original, so that whoever reads a
backup sees no difference.

What the record of a backup means today: read through repairs first, then through merges.
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
from logkeep.zookeeper.repo.pieces import ServedRecord, settled
from logkeep.zookeeper.repo.record import EnsembleRecord, log_of

_ADLER: Final = "adler32:"


def last_adler_in(row: Segment) -> int | None:
    """The checksum of the last record, as rows of what is left of a log tell it: no record of a backup does."""
    return int(row.digest.removeprefix(_ADLER), 16) if row.digest.startswith(_ADLER) else None


def told_adler(adler: int) -> str:
    return f"{_ADLER}{adler:08x}"


def tokens_of(record: EnsembleRecord) -> set[str]:
    """Of all objects that it names."""
    return {*(s.token for s in record.snapshots), *(r.token for r in record.logs)}


def as_served(record: EnsembleRecord, rows: Iterable[Segment]) -> EnsembleRecord:
    """The record with the objects that were put in the place of damaged ones.

    A snapshot that nothing serves could not be mended, and is left out; so is a log of which everything is lost. A log
    that lies in a larger object stays as it is told: it was merged with others, and not mended.
    """
    found = list(rows)
    held, named = {row.token for row in found}, tokens_of(record)
    if named <= held:
        return record
    others = _Others(row for row in found if row.token not in named)
    snapshots = [s if s.token in held else others.snapshot(s) for s in record.snapshots]
    logs = [one for r in record.logs for one in ((r,) if r.token in held else others.logs(r))]
    return msgspec.structs.replace(record, snapshots=tuple(s for s in snapshots if s is not None), logs=tuple(logs))


class _Others:
    """Rows that the record does not name."""

    def __init__(self, rows: Iterable[Segment]) -> None:
        self._by_log: dict[LogName, list[Segment]] = {}
        for row in rows:
            self._by_log.setdefault(row.log, []).append(row)

    def snapshot(self, named: ArchivedSnapshot) -> ArchivedSnapshot | None:
        """The very same file, in another object."""
        for row in self._by_log.get(log_of(Kind.SNAPSHOTS, named.member, named.history), ()):
            if (row.first, row.plain_sha256) == (named.zxid, named.sha256):
                return msgspec.structs.replace(named, token=row.token)
        return None

    def logs(self, named: ArchivedLog) -> Iterator[ArchivedLog]:
        """What serves its transactions, or is left of them, in order. Behind everything that is served nothing is: the
        end of a log that is lost has no row."""
        rows = self._by_log.get(log_of(Kind.TXNLOGS, named.member, named.apart or named.history), ())
        inside = [row for row in rows if named.first <= row.first and row.end <= named.last + 1 and row.has_object]
        lost = any(row.start <= named.first and named.last < row.end and not row.has_object for row in rows)
        beyond = bool(rows) and all(row.end <= named.first for row in rows)
        if not inside and not lost and not beyond:
            yield named
        for row in sorted(inside, key=lambda row: row.first):
            yield _piece(named, row)


def _piece(named: ArchivedLog, row: Segment) -> ArchivedLog:
    last = row.end - 1
    adler = named.last_adler if last == named.last else last_adler_in(row)
    if adler is None:
        raise Damaged("the row of a mended log does not tell how its last record ends", subject=str(row.log))
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


def served_record(place: SourceRef, folded: Folded, manifest: Manifest, record: EnsembleRecord) -> ServedRecord:
    """With the rows of its objects. Raises Damaged."""
    rows = list(rows_of(PartReader(place), manifest, served_parts(manifest, folded)).to_segments())
    told = as_served(record, rows) if was_mended(manifest, folded) else record
    return replace(settled(told, rows, place.source), mended=len(tokens_of(record) - tokens_of(told)))


def mended_record(place: SourceRef, folded: Folded, manifest: Manifest, record: EnsembleRecord) -> EnsembleRecord:
    """Read through repairs alone: how far it reaches. Without any, no part is read."""
    if not was_mended(manifest, folded):
        return record
    return as_served(record, rows_of(PartReader(place), manifest, served_parts(manifest, folded)).to_segments())


def was_mended(manifest: Manifest, folded: Folded) -> bool:
    """Whether other parts than its own serve a backup, and a repair may be the reason."""
    served = served_parts(manifest, folded)
    return any(one.keep_old for one in folded.replacements) and any(part not in served for part in manifest.parts)
