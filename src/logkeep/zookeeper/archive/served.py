"""The record of a backup as it is served today: other objects may stand in the place of those that it names. Pure.

A record is never changed. Where an object was damaged and mended, a commit of the chain lets another one serve its
positions: with the same bytes if nothing is lost, else one object for every run of records that is left, and rows
without an object for the rest. `as_served` tells of them what the record told of the original, so that whoever reads a
backup sees no difference.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import msgspec

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.segments import Collection as Kind
from logkeep.model.segments import LogName, Segment
from logkeep.repository.actions import PartRef
from logkeep.zookeeper.archive.record import EnsembleRecord, LogRecord, SnapshotRecord, log_of, rows_by_token
from logkeep.zookeeper.kept import Ending

_ADLER: Final = "adler32:"


def last_adler_in(row: Segment) -> int | None:
    """The checksum of the last record, as rows of what is left of a log tell it: no record of a backup does."""
    return int(row.digest.removeprefix(_ADLER), 16) if row.digest.startswith(_ADLER) else None


def told_adler(adler: int) -> str:
    return f"{_ADLER}{adler:08x}"


def replaced_in(named: Iterable[PartRef], served: Collection[PartRef]) -> bool:
    """Whether other parts than those that a manifest names serve it."""
    return any(part not in served for part in named)


def tokens_of(record: EnsembleRecord) -> set[str]:
    """Of all objects that it names."""
    return {*(s.token for s in record.snapshots), *(r.token for r in record.logs)}


def as_served(
    record: EnsembleRecord, rows: Iterable[Segment], subject: str, *, replaced: bool
) -> tuple[EnsembleRecord, dict[str, Segment]]:
    """The record with the objects that are there, and the row of each. Raises Damaged where one has none.

    `replaced`: other rows serve the backup than those it was committed with. Only then may a snapshot be missing, which
    nobody could mend.
    """
    found = list(rows)
    by_token = {row.token: row for row in found}
    named = [*(s.token for s in record.snapshots), *(r.token for r in record.logs)]
    if not replaced or all(token in by_token for token in named):
        return record, rows_by_token(found, named, subject)
    others = _Others(row for row in found if row.has_object and row.token not in set(named))
    snapshots = [s if s.token in by_token else others.snapshot(s) for s in record.snapshots]
    logs = [one for r in record.logs for one in ((r,) if r.token in by_token else others.logs(r, subject))]
    told = msgspec.structs.replace(record, snapshots=tuple(s for s in snapshots if s is not None), logs=tuple(logs))
    return told, by_token


class _Others:
    """Rows that the record does not name."""

    def __init__(self, rows: Iterable[Segment]) -> None:
        self._by_log: dict[LogName, list[Segment]] = {}
        for row in rows:
            self._by_log.setdefault(row.log, []).append(row)

    def snapshot(self, named: SnapshotRecord) -> SnapshotRecord | None:
        """The very same file, in another object."""
        for row in self._by_log.get(log_of(Kind.SNAPSHOTS, named.member, named.history), ()):
            if (row.first, row.plain_sha256) == (named.zxid, named.sha256):
                return msgspec.structs.replace(named, token=row.token)
        return None

    def logs(self, named: LogRecord, subject: str) -> Iterator[LogRecord]:
        """What serves its transactions, or is left of them, in order."""
        log = log_of(Kind.TXNLOGS, named.member, named.apart or named.history)
        inside = [row for row in self._by_log.get(log, ()) if named.first <= row.first and row.end <= named.last + 1]
        if not inside:
            span = f"{hex_zxid(named.first)} to {hex_zxid(named.last)}"
            raise Damaged(f"no object serves {span} of {named.member}", subject=subject)
        for row in sorted(inside, key=lambda row: row.first):
            yield _piece(named, row, subject)


def _piece(named: LogRecord, row: Segment, subject: str) -> LogRecord:
    last = row.end - 1
    adler = named.last_adler if last == named.last else last_adler_in(row)
    if adler is None:
        raise Damaged("the row of a mended log does not tell how its last record ends", subject=subject)
    return msgspec.structs.replace(
        named,
        token=row.token,
        first=row.first,
        last=last,
        last_adler=adler,
        max_time_ms=row.max_time_ms,
        ending=named.ending if last == named.last else Ending.DAMAGED,
        borders=tuple(border for border in named.borders if row.first <= border[1] <= last),
    )
