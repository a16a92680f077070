"""Findings of the level `source` that several of its tasks report. Pure."""

from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import LogName
from logkeep.repository.backups.verification import SOURCE_DIFFERS

NOT_COMPARED = "not-comparable"


def not_compared(log: LogName, reason: str, side: str = "") -> Finding:
    """A log of the archive could not be compared with the source, or with this `side` of it."""
    what = f"not compared with the {side}: {reason}" if side else f"not compared: {reason}"
    return Finding(code=NOT_COMPARED, severity=Severity.WARNING, where=str(log), what=what)


def source_differs(log: LogName, what: str) -> Finding:
    """The source has other records than the archive, whose objects are whole."""
    return Finding(
        code=SOURCE_DIFFERS,
        severity=Severity.WARNING,
        where=str(log),
        what=what,
        remedy="nothing, if a disk of the source was replaced by an earlier copy since: the backup has what the source "
        "had then; otherwise take a full backup under another source name",
    )
