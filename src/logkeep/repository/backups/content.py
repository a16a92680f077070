"""The segment rows of a backup: its parts with every later replacement, limited to the backup's cut."""

import hashlib

from logkeep.errors import Damaged
from logkeep.model.ranges import Range
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import PartRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import read_pinned
from logkeep.repository.chain.fold import Folded
from logkeep.repository.parts import SegmentTable, decode, encode

MAX_PART_BYTES = 1 << 30
MAX_PART_ROWS = 20_000_000


class PartReader:
    """Reads parts, each once: they are immutable and shared by many manifests."""

    def __init__(self, place: SourceRef) -> None:
        self._place = place
        self._known: dict[str, SegmentTable] = {}

    def read(self, ref: PartRef) -> SegmentTable:
        """The part that a manifest names. Raises Damaged."""
        if ref.token not in self._known:
            self._known[ref.token] = self._fetch(ref)
        return self._known[ref.token]

    def _fetch(self, ref: PartRef) -> SegmentTable:
        name = layout.part(self._place.source, ref.token)
        changed = "it is not the part that was committed"
        data = read_pinned(self._place.store, name, ref, MAX_PART_BYTES, missing="the part is missing", changed=changed)
        table = decode(data, MAX_PART_ROWS)
        if len(table) != ref.rows:
            raise Damaged(f"the part has {len(table)} rows, its manifest says {ref.rows}", subject=name)
        return table


def put_part(place: SourceRef, table: SegmentTable, token: str) -> PartRef:
    """Store rows under a new name."""
    data = encode(table)
    place.store.put_new(layout.part(place.source, token), data)
    return PartRef(token, len(data), hashlib.sha256(data).hexdigest(), len(table))


def served_parts(manifest: Manifest, folded: Folded) -> tuple[PartRef, ...]:
    """The parts to read for a manifest: those it names, or what replaced them, each once."""
    instead = {r.old: r.new for r in folded.replacements}
    served = (ref for named in manifest.parts for ref in instead.get(named.token, (named,)))
    return tuple({ref.token: ref for ref in served}.values())


def rows_of(reader: PartReader, manifest: Manifest, parts: tuple[PartRef, ...]) -> SegmentTable:
    """The rows that restore a backup, read from these parts."""
    table = SegmentTable.merge([reader.read(ref) for ref in parts])
    return table.covering({c.log: Range(c.start, c.end) for c in manifest.cut})
