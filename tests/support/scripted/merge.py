"""Merge two neighbouring segments into one object, as an optimizer will: object, parts, then one `replace` commit."""

import hashlib
from dataclasses import dataclass
from itertools import pairwise

from logkeep.model.ranges import Range
from logkeep.model.segments import Segment
from logkeep.repository.backups.content import PartReader, put_part, rows_of, served_parts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import PartRef, PartReplacement, ReplaceAction
from logkeep.repository.chain.write_session import Writing
from logkeep.repository.parts import SegmentTable
from tests.support.scripted.backup import content


@dataclass(frozen=True)
class Pair:
    """Two segments that every backup names together, or whose second one lies behind its cut."""

    left: Segment
    right: Segment

    @property
    def objects(self) -> set[str]:
        return {self.left.token, self.right.token}


def merge_neighbours(session: Writing, choice: int) -> Pair | None:
    """Merge one pair, any that `choice` falls on; None when there is none."""
    parts = _parts(session)
    pairs = [p for p in _pairs(parts) if _together(session, p)]
    if not pairs:
        return None
    pair = pairs[choice % len(pairs)]
    merged = put_part(session.place, SegmentTable.from_segments([_merged(session, pair)]), session.tokens())
    replaced = [
        PartReplacement(ref.token, (*_rest(session, rows, pair), merged))
        for ref, rows in parts
        if pair.objects & {s.token for s in rows}
    ]
    session.commit(ReplaceAction(tuple(replaced), "the same bytes, concatenated"))
    return pair


def _parts(session: Writing) -> list[tuple[PartRef, list[Segment]]]:
    reader = PartReader(session.place)
    manifests = [read_manifest(session.place, entry) for entry in session.folded.completed]
    refs = {ref.token: ref for m in manifests for ref in served_parts(m, session.folded)}
    return [(ref, list(reader.read(ref).to_segments())) for ref in refs.values()]


def _pairs(parts: list[tuple[PartRef, list[Segment]]]) -> list[Pair]:
    """Neighbours whose rows are the same wherever they are named."""
    rows = {s for _, segments in parts for s in segments}
    alone = [s for s in rows if sum(other.token == s.token for other in rows) == 1]
    ordered = sorted(alone, key=lambda s: (s.log, s.start, s.token))
    return [Pair(a, b) for a, b in pairwise(ordered) if a.log == b.log and a.end == b.start < b.end and a.start < a.end]


def _together(session: Writing, pair: Pair) -> bool:
    reader = PartReader(session.place)
    for entry in session.folded.completed:
        manifest = read_manifest(session.place, entry)
        named = {s.token for s in rows_of(reader, manifest, served_parts(manifest, session.folded)).to_segments()}
        cut = next((Range(c.start, c.end) for c in manifest.cut if c.log == pair.left.log), Range(0, 0))
        if len(named & pair.objects) == 1 and not (pair.left.token in named and cut.end <= pair.left.end):
            return False
    return True


def _merged(session: Writing, pair: Pair) -> Segment:
    data = content(pair.left.log.partition, pair.left.start, pair.right.end)
    digest = hashlib.sha256(data).hexdigest()
    segment = Segment(
        log=pair.left.log,
        start=pair.left.start,
        end=pair.right.end,
        first=pair.left.start,
        token=session.tokens(),
        records=pair.right.end - pair.left.start,
        stored_bytes=len(data),
        plain_bytes=len(data),
        base_time_ms=-1,
        max_time_ms=-1,
        sha256=digest,
        plain_sha256=digest,
    )
    writer = session.place.store.open_new(layout.segment(session.place.source, segment), len(data))
    writer.write(data)
    writer.close()
    return segment


def _rest(session: Writing, rows: list[Segment], pair: Pair) -> list[PartRef]:
    left = [s for s in rows if s.token not in pair.objects]
    return [put_part(session.place, SegmentTable.from_segments(left), session.tokens())] if left else []
