"""Runs of records that are kept already, and whether a record that comes once more is the same as the kept one.

A server that catches up with others may log again what it has. The same zxid proves nothing: the checksum must be the
same too, which is known of the last record of a run, and of the others from the file that the run lies in.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.zookeeper.collect import FoundFile
from logkeep.zookeeper.continuity import Continued
from logkeep.zookeeper.pins import Pins
from logkeep.zookeeper.source_file import mark_in


@dataclass(frozen=True)
class Held:
    """Records `first` to `last`, one behind the other."""

    first: int
    last: int
    adler: int | None
    """The checksum of the last one, where it is known."""
    path: str = ""
    """The file that has them, if there is one; `pinned`: where it can be read when that name is gone."""
    pinned: str = ""
    start_at: int = 0
    """The byte of that file at which the first of them begins."""


def is_same(zxid: int, adler: int, held: Held) -> bool:
    """Whether a record within that run is the kept one. Where nobody can tell, it is not."""
    if zxid == held.last and held.adler is not None:
        return adler == held.adler
    mark = mark_in(held.path, zxid, start=held.start_at, pinned=held.pinned) if held.path else None
    return mark is not None and (mark.zxid, mark.adler) == (zxid, adler)


def archived_runs(file: FoundFile, logs: Sequence[FoundFile], continued: Continued, pins: Pins) -> list[Held]:
    """Everything up to the last archived record, as it lies in the logs up to the one that has that record.

    A file is no witness for itself, but for the one that was proven to hold what is archived.
    """
    last, names = continued.kept_to or 0, [log.path.name for log in logs]
    proven = logs[: names.index(continued.file) + 1] if continued.file in names else ()
    found, until, adler = list[Held](), last, continued.adler or None
    for log in reversed([log for log in proven if log is proven[-1] or log.path.name != file.path.name]):
        if log.zxid <= until:
            path = str(log.path)
            found.append(Held(log.zxid, until, adler, path, pins.path_of(path)))
            until, adler = log.zxid - 1, None
    return [*found, Held(0, until, adler)]
