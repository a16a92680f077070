"""The buried offsets of one archived log, read from the repository."""

from collections.abc import Iterable

from logkeep.formats.kafka.buried_offsets import BuriedOffsets, decode_runs, joined
from logkeep.repository.backups.burials import read_burial
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef


def read_buried(place: SourceRef, refs: Iterable[ObjectRef]) -> BuriedOffsets | None:
    """All of them together; None if there are none. Raises Damaged."""
    found = [decode_runs(read_burial(place, ref), layout.buried(place.source, ref.token)) for ref in refs]
    return joined(found) if found else None
