"""Replaces objects by others for all backups at once, in one commit: after a merge or a repair.

`served_rows` reads the parts of all existing backups. `replace_rows` removes rows from every part that has them, adds
the new ones, and commits a `replace`: readers of old manifests then use the new parts. The sizes of the new objects are
checked before the commit. Interrupted anywhere, backups are read from the old objects or from the new ones.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from logkeep.errors import BackupFailed
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.content import PartReader, put_part, served_parts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import PartRef, PartReplacement, ReplaceAction
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.write_session import Writing
from logkeep.repository.parts import SegmentTable, row_tokens, small_objects

_PARALLEL = 16
_EVERYTHING = Range(0, 2**63 - 1)


@dataclass(frozen=True)
class ServedRows:
    """The parts of all existing backups, and the starts of their cuts."""

    parts: Mapping[str, tuple[PartRef, SegmentTable]]
    starts: Mapping[LogName, Sequence[int]]
    readers: Mapping[str, Sequence[Mapping[LogName, Range]]]
    """By part: the cuts of the backups that use it."""

    def rows(self, below_bytes: int) -> list[Segment]:
        """All rows that a backup needs, of logs with at least two objects smaller than this."""
        small: dict[LogName, set[str]] = {}
        for _, table in self.parts.values():
            for log, tokens in small_objects(table, below_bytes).items():
                small.setdefault(log, set()).update(tokens)
        wanted = {log: _EVERYTHING for log, tokens in small.items() if len(tokens) > 1}
        found = ((token, table.covering(wanted)) for token, (_, table) in self.parts.items())
        return [segment for token, table in found for segment in self._needed(token, table)]

    def _needed(self, token: str, table: SegmentTable) -> Iterator[Segment]:
        """A part may also have rows that only deleted backups needed; their objects may be gone."""
        needed = {each for cuts in self.readers[token] for each in row_tokens(table.covering(cuts))}
        return (segment for segment in table.to_segments() if segment.token in needed)


def served_rows(place: SourceRef, folded: Folded) -> ServedRows:
    """Read the manifests of all backups, and every part once. Raises Damaged if one is unreadable."""
    reader, refs, starts = PartReader(place), dict[str, PartRef](), dict[LogName, set[int]]()
    readers: dict[str, list[Mapping[LogName, Range]]] = {}
    with ThreadPoolExecutor(_PARALLEL) as pool:
        for manifest in pool.map(lambda entry: read_manifest(place, entry), folded.completed):
            cuts = {cut.log: Range(cut.start, cut.end) for cut in manifest.cut}
            for ref in served_parts(manifest, folded):
                refs[ref.token] = ref
                readers.setdefault(ref.token, []).append(cuts)
            for cut in manifest.cut:
                if cut.start < cut.end:
                    starts.setdefault(cut.log, set()).add(cut.start)
    parts = {token: (ref, reader.read(ref)) for token, ref in refs.items()}
    return ServedRows(parts, {log: sorted(found) for log, found in starts.items()}, readers)


def replace_rows(
    session: Writing,
    served: ServedRows,
    old: Iterable[Segment],
    new: Sequence[Segment],
    proof: str,
    *,
    keep_old: bool = False,
) -> None:
    """Replace the rows `old` by `new`. Raises LeaseLost or CommitConflict: then nothing has changed.

    `keep_old`: the old objects stay as long as a backup that was committed with them.
    """
    check_stored(session.place, new)
    gone = {s.token for s in old}
    put = (put_part(session.place, SegmentTable.from_segments(new), session.tokens()),) if new else ()
    replaced = []
    for token, (_, table) in served.parts.items():
        left = table.without(gone)
        if len(left) < len(table):
            rest = (put_part(session.place, left, session.tokens()),) if len(left) else ()
            replaced.append(PartReplacement(token, (*rest, *put)))
    session.commit(ReplaceAction(tuple(replaced), proof, keep_old))


def check_stored(place: SourceRef, new: Sequence[Segment]) -> None:
    """Check that every new object exists with its size."""
    for segment in (each for each in new if each.has_object):
        name = layout.segment(place.source, segment)
        size = place.store.head(name).size
        if size != segment.stored_bytes:
            raise BackupFailed(f"has {size} bytes instead of {segment.stored_bytes}", subject=name)
