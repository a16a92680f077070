"""Trims backups: one commit after which backups before the newest good one begin later in some logs.

The kind of source decides from which positions on. What no backup needs any more becomes garbage, which the usual two
phases delete. Before the commit every backup reads as it was, after it every backup reads without what was trimmed.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from logkeep.errors import UsageError
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName
from logkeep.repository.backups.content import PartReader, served_parts
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.backups.trim_floors import with_floors
from logkeep.repository.chain.actions import TrimAction, TrimmedBackup
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.format import TRIMMED_BACKUPS, require_feature
from logkeep.repository.chain.trims import Trim, by_topic
from logkeep.repository.chain.write_session import Writing
from logkeep.repository.parts import total


@dataclass(frozen=True)
class MeasuredTrim:
    """A trim with what every backup loses by it."""

    before: int = 0
    floors: Mapping[LogName, int] | None = None
    """The first position that stays, of logs that a backup has more of."""
    backups: tuple[TrimmedBackup, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(each.id for each in self.backups)

    def applied(self, folded: Folded) -> Folded:
        """The state of the source after it."""
        return folded.after_trim(Trim(self.before, by_topic(self.floors))) if self.floors else folded


def measure_trim(place: SourceRef, folded: Folded, before: int, floors: Mapping[LogName, int]) -> MeasuredTrim:
    """What a trim takes from each backup before this one. Writes nothing."""
    reader, lost, effective = PartReader(place), list[TrimmedBackup](), dict[LogName, int]()
    for entry in folded.completed if floors else ():
        if entry.id >= before:
            continue
        manifest = read_manifest(place, entry)
        spans = _spans(manifest, with_floors(manifest, floors))
        if spans:
            effective |= {log: floors[log] for log in spans}
            parts = (reader.read(ref) for ref in served_parts(manifest, folded))
            tables = [table.covering(spans).inside(spans) for table in parts]
            numbers = (sum(total(t, column) for t in tables) for column in ("records", "stored_bytes"))
            lost.append(TrimmedBackup(entry.id, sum(map(len, tables)), *numbers))
    return MeasuredTrim(before, effective, tuple(lost))


def _spans(manifest: Manifest, later: Manifest) -> dict[LogName, Range]:
    """What a backup loses of each log."""
    starts = {cut.log: cut.start for cut in later.cut}
    return {c.log: Range(c.start, starts[c.log]) for c in manifest.cut if c.start < starts[c.log]}


def commit_trim(session: Writing, trim: MeasuredTrim, protected: Collection[int], reason: str) -> None:
    """Commit it. Raises CommitConflict if a backup was pinned meanwhile: then nothing has changed.

    Raises UsageError if it would take anything from a protected backup, or positions that the newest good one has.
    """
    if not trim.backups or not trim.floors:
        return
    _check(session.place, session.folded, trim, protected)
    require_feature(session.place.store, TRIMMED_BACKUPS)
    session.commit(TrimAction(trim.before, by_topic(trim.floors), trim.backups, reason))


def _check(place: SourceRef, folded: Folded, trim: MeasuredTrim, protected: Collection[int]) -> None:
    kept = sorted(set(trim.ids) & set(protected))
    newest = folded.entry(trim.before)
    if kept or newest is None:
        raise UsageError("it must stay as it is", subject=f"backup {kept[0] if kept else trim.before}")
    floors = trim.floors or {}
    for cut in read_manifest(place, newest).cut:
        if floors.get(cut.log, 0) > cut.start:
            raise UsageError("the newest good backup has positions that would be trimmed", subject=str(cut.log))
