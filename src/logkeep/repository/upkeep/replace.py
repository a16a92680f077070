"""Other objects in place of old ones, for every kept backup at once: what they share, and the one commit.

`served_rows` reads what all kept backups name. `replace_rows` takes rows out of every part that has them, puts the new
ones beside what is left, and commits a `replace`: old manifests are then read through it. Before the commit the new
objects are asked for their size; killed anywhere, backups are served by the old objects or by the new ones.
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
class Served:
    """The parts that serve all kept backups today, and where the cuts of these begin."""

    parts: Mapping[str, tuple[PartRef, SegmentTable]]
    starts: Mapping[LogName, Sequence[int]]
    readers: Mapping[str, Sequence[Mapping[LogName, Range]]]
    """By part: the cuts of the backups that are read from it."""

    def rows(self, below_bytes: int) -> list[Segment]:
        """All rows that a kept backup needs of those logs that have at least two objects smaller than this."""
        small: dict[LogName, set[str]] = {}
        for _, table in self.parts.values():
            for log, tokens in small_objects(table, below_bytes).items():
                small.setdefault(log, set()).update(tokens)
        wanted = {log: _EVERYTHING for log, tokens in small.items() if len(tokens) > 1}
        found = ((token, table.covering(wanted)) for token, (_, table) in self.parts.items())
        return [segment for token, table in found for segment in self._needed(token, table)]

    def _needed(self, token: str, table: SegmentTable) -> Iterator[Segment]:
        """A part also has rows that only backups needed which are gone, and so may be the objects of these."""
        needed = {each for cuts in self.readers[token] for each in row_tokens(table.covering(cuts))}
        return (segment for segment in table.to_segments() if segment.token in needed)


def served_rows(place: SourceRef, folded: Folded) -> Served:
    """Read the manifests of all kept backups, and every part once. Raises Damaged when one cannot be read."""
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
    return Served(parts, {log: sorted(found) for log, found in starts.items()}, readers)


def replace_rows(
    session: Writing,
    served: Served,
    old: Iterable[Segment],
    new: Sequence[Segment],
    proof: str,
    *,
    keep_old: bool = False,
) -> None:
    """Let `new` serve what `old` served. Raises LeaseLost or CommitConflict: then nothing has changed.

    `keep_old`: the old objects stay as long as a backup does that was committed with them.
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
    """Every new object is there with its size."""
    for segment in (each for each in new if each.has_object):
        name = layout.segment(place.source, segment)
        size = place.store.head(name).size
        if size != segment.stored_bytes:
            raise BackupFailed(f"{size} bytes are there in place of {segment.stored_bytes}", subject=name)
