"""The manifest of a trimmed backup, as it is after the trim, and the findings about the trim. Pure.

A log that was trimmed begins later, at most at its end. Gaps before that are no longer gaps of the backup.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.model.segments import LogName
from logkeep.repository.backups.manifest import LogCut, Manifest
from logkeep.repository.chain.fold import BackupEntry

TRIMMED = "trimmed"
"""The code of findings about trimmed logs."""
_SHOWN = 3


@dataclass(frozen=True)
class TrimmedCut:
    """A log that was trimmed: in this backup it begins later now than when the backup was taken."""

    log: LogName
    taken_from: int
    start: int


def with_floors(manifest: Manifest, floors: Mapping[LogName, int]) -> Manifest:
    """The manifest of a backup whose logs have nothing below these positions."""
    cut = tuple(_raised(one, floors.get(one.log, 0)) for one in manifest.cut)
    if cut == manifest.cut:
        return manifest
    starts = {one.log: one.start for one in cut}
    left = (gap for gap in manifest.gaps if gap.end > starts.get(gap.log, 0))
    gaps = (msgspec.structs.replace(gap, start=max(gap.start, starts.get(gap.log, 0))) for gap in left)
    return msgspec.structs.replace(manifest, cut=cut, gaps=tuple(gaps))


def _raised(cut: LogCut, floor: int) -> LogCut:
    return cut if floor <= cut.start else msgspec.structs.replace(cut, start=min(floor, cut.end))


def untrimmed(entry: BackupEntry) -> BackupEntry:
    """The entry of the same backup as it was taken."""
    return msgspec.structs.replace(entry, trims=msgspec.UNSET)


def trimmed_cuts(taken: Manifest, now: Manifest) -> list[TrimmedCut]:
    """Logs that begin later than when the backup was taken."""
    before = {one.log: one.start for one in taken.cut}
    return [TrimmedCut(c.log, before[c.log], c.start) for c in now.cut if c.start > before[c.log]]


def trim_findings(
    cuts: Sequence[TrimmedCut], only: Iterable[LogName] | None = None, severity: Severity = Severity.NOTE
) -> list[Finding]:
    """One finding for each topic that has a trimmed log; `only`: among these logs."""
    wanted = None if only is None else set(only)
    topics: dict[str, list[TrimmedCut]] = {}
    for each in cuts:
        if wanted is None or each.log in wanted:
            topics.setdefault(each.log.name, []).append(each)
    return [
        Finding(
            code=TRIMMED,
            severity=severity,
            where=name,
            what=f"older offsets were trimmed, as its retention allows: {_spans(some)}",
        )
        for name, some in sorted(topics.items())
    ]


def _spans(cuts: Sequence[TrimmedCut]) -> str:
    """`partition 0 begins at 500 instead of 20, …`"""
    shown = ", ".join(
        f"partition {c.log.partition} begins at {c.start} instead of {c.taken_from}" for c in cuts[:_SHOWN]
    )
    more = len(cuts) - _SHOWN
    return f"{shown}, and {plural(more, 'more partition')}" if more > 0 else shown
