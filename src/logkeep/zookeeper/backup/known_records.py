"""Runs of records that are already archived, and whether a record that is logged again is the same as before.

A server that catches up with others may log records again. The same zxid proves nothing: the checksum must be the same
too. It is known for the last record of a run; for the others it is read from the file that contains the run. Only a
failed multi may have other bytes: it is logged before it is applied or after that, with its parts marked.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.zookeeper.backup.continuity import Continued
from logkeep.zookeeper.backup.open_files import OpenFiles
from logkeep.zookeeper.backup.server_files import FoundFile
from logkeep.zookeeper.backup.source_file import OpenedFile, mark_in, same_in


@dataclass(frozen=True)
class KnownRecords:
    """Consecutive records `first` to `last`."""

    first: int
    last: int
    adler: int | None
    """The checksum of the last one, if known."""
    path: str = ""
    """The file that has them, if there is one; `pinned`: where it can be read after its name is gone."""
    pinned: str = ""
    start_at: int = 0
    """The byte of that file at which the first of them begins."""

    @property
    def place(self) -> OpenedFile:
        return OpenedFile(self.path, self.pinned, self.start_at)


def is_same(again: KnownRecords, held: KnownRecords) -> bool:
    """Whether the last record of a run is in another run, the same. False if this cannot be determined."""
    zxid = again.last
    if zxid == held.last and held.adler is not None:
        same = again.adler == held.adler
    else:
        mark = mark_in(held.path, zxid, start=held.start_at, pinned=held.pinned) if held.path else None
        same = mark is not None and (mark.zxid, mark.adler) == (zxid, again.adler)
    return same or (bool(held.path and again.path) and same_in(zxid, held.place, again.place))


def archived_runs(
    file: FoundFile, logs: Sequence[FoundFile], continued: Continued, open_files: OpenFiles
) -> list[KnownRecords]:
    """Everything up to the last archived record, as it is in the logs up to the one that has that record.

    A file is not compared with itself, except for the one that was proven to contain the archived record.
    """
    last, names = continued.kept_to or 0, [log.path.name for log in logs]
    proven = logs[: names.index(continued.file) + 1] if continued.file in names else ()
    found, until, adler = list[KnownRecords](), last, continued.adler or None
    for log in reversed([log for log in proven if log is proven[-1] or log.path.name != file.path.name]):
        if log.zxid <= until:
            path = str(log.path)
            found.append(KnownRecords(log.zxid, until, adler, path, open_files.path_of(path)))
            until, adler = log.zxid - 1, None
    return [*found, KnownRecords(0, until, adler)]
