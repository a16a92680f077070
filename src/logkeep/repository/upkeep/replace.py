"""Replaces objects by others for all backups at once, in one commit: after a merge, a repair or a fold.

`served_rows` reads the parts of all existing backups. `replace_rows` removes rows from every part that has them, adds
the new ones, and commits a `replace`: readers of old manifests then use the new parts. `fold_rows` puts one new row in
the place of each old one. The sizes of the new objects are checked before the commit. Interrupted anywhere, backups are
read from the old objects or from the new ones.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import msgspec

from logkeep.errors import BackupFailed
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.content import PartReader, put_part, served_parts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import FoldProof, PartRef, PartReplacement, ReplaceAction
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
    """The cuts of the backups that use each part, by part."""

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

    def needed_by_log(self, logs: Collection[LogName]) -> dict[LogName, list[Segment]]:
        """The rows of these logs that a backup needs, in order, each up to the last offset that is needed of it."""
        found: dict[str, Segment] = {}
        for token, (_, table) in self.parts.items():
            for spans in _apart(self.readers[token], logs):
                for row in table.covering(spans).to_segments():
                    known = found.get(row.token, row)
                    end = max(min(row.end, spans[row.log].end), known.end if known is not row else 0)
                    start = min(row.start, known.start)
                    found[row.token] = msgspec.structs.replace(row, start=start, end=max(end, start))
        by_log: dict[LogName, list[Segment]] = {}
        for row in sorted(found.values(), key=lambda s: (s.log, s.start, s.end, s.token)):
            by_log.setdefault(row.log, []).append(row)
        return by_log


def _apart(cuts: Sequence[Mapping[LogName, Range]], logs: Collection[LogName]) -> Iterator[dict[LogName, Range]]:
    """The joined ranges of each log, as mappings with one range of each log: first the first ranges, then the second
    ones, and so on."""
    joined: dict[LogName, list[Range]] = {}
    pairs = ((log, span) for each in cuts for log, span in each.items() if log in logs)
    for log, span in sorted(pairs, key=lambda pair: (pair[0], pair[1])):
        mine = joined.setdefault(log, [])
        if mine and span.start <= mine[-1].end:
            mine[-1] = Range(mine[-1].start, max(mine[-1].end, span.end))
        else:
            mine.append(span)
    for number in range(max(map(len, joined.values()), default=0)):
        yield {log: mine[number] for log, mine in joined.items() if number < len(mine)}


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


def fold_rows(
    session: Writing, served: ServedRows, new: Mapping[str, Segment], proof: str, fold: FoldProof
) -> ServedRows:
    """Replace rows of one log one by one, by their tokens. Returns the parts as they are afterwards.

    Raises LeaseLost or CommitConflict: then nothing has changed.
    """
    check_stored(session.place, list(new.values()))
    parts, readers, replaced = dict(served.parts), dict(served.readers), []
    for token, (_, table) in served.parts.items():
        own = [row.token for row in table.covering({fold.log: _EVERYTHING}).to_segments() if row.token in new]
        if not own:
            continue
        made = SegmentTable.merge([table.without(own), SegmentTable.from_segments([new[each] for each in own])])
        put = put_part(session.place, made, session.tokens())
        replaced.append(PartReplacement(token, (put,)))
        del parts[token]
        parts[put.token], readers[put.token] = (put, made), readers.pop(token)
    session.commit(ReplaceAction(tuple(replaced), proof, fold=fold))
    return ServedRows(parts, served.starts, readers)


def check_stored(place: SourceRef, new: Sequence[Segment]) -> None:
    """Check that every new object exists with its size."""
    for segment in (each for each in new if each.has_object):
        name = layout.segment(place.source, segment)
        size = place.store.head(name).size
        if size != segment.stored_bytes:
            raise BackupFailed(f"has {size} bytes instead of {segment.stored_bytes}", subject=name)
