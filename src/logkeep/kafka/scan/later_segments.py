"""The segments of a log after those that a scan range carries, read from the repository when a transaction needs them.

A unit of a transactional log carries only the next segments after its own. Most transactions end there. If every unit
carried all later segments, the units of one log would grow with the square of its segments.
"""

from logkeep.errors import UnknownBackup
from logkeep.kafka.scan.values import ScanRange
from logkeep.model.ranges import Range
from logkeep.model.segments import Segment
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import read_chain


def segments_after(wanted: ScanRange, offset: int) -> tuple[Segment, ...]:
    """The segments that overlap the offsets from here to the cut, in order; a merge since then may have joined some.

    Raises UnknownBackup if the backup was deleted since the range was planned, Damaged, or a StoreError.
    """
    if wanted.backup is None or offset >= wanted.settled_to:
        return ()
    folded = read_chain(wanted.place)
    entry = next((each for each in folded.completed if each.id == wanted.backup), None)
    if entry is None:
        raise UnknownBackup(
            f"backup {wanted.backup} was deleted while it was read",
            subject=wanted.place.source,
            remedy="read a backup that is kept; `logkeep hold` keeps one",
        )
    manifest = read_manifest(wanted.place, entry)
    rows = rows_of(PartReader(wanted.place), manifest, served_parts(manifest, folded))
    found = rows.covering({wanted.log: Range(offset, wanted.settled_to)}).to_segments()
    return tuple(sorted(found, key=lambda segment: segment.start))
