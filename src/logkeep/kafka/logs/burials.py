"""The buried offsets of archived logs, read from the repository."""

from collections.abc import Collection, Iterable, Mapping

from logkeep.errors import Damaged
from logkeep.formats.kafka.buried_offsets import BuriedOffsets, decode_runs, joined
from logkeep.model.segments import LogName
from logkeep.repository.backups.burials import read_burial
from logkeep.repository.backups.verification import known_damaged
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Burial, Folded


def read_buried(place: SourceRef, refs: Iterable[ObjectRef]) -> BuriedOffsets | None:
    """All of them together; None if there are none. Raises Damaged."""
    found = [decode_runs(read_burial(place, ref), layout.buried(place.source, ref.token)) for ref in refs]
    return joined(found) if found else None


def unreadable_burials(
    place: SourceRef, folded: Folded, burials: Mapping[LogName, tuple[Burial, ...]], read: Collection[LogName]
) -> set[LogName]:
    """Logs whose burials are missing or damaged. Those of the logs in `read` are read; the others may be many, and are
    listed, and compared with what verifications found."""
    if not burials:
        return set()
    sizes = {info.name: info.size for info in place.store.list(layout.buried_root(place.source))}
    damaged = known_damaged(place, {entry.id for entry in folded.completed})

    def there(ref: ObjectRef) -> bool:
        name = layout.buried(place.source, ref.token)
        return sizes.get(name) == ref.size and name not in damaged

    refs = {log: [each.object for each in some] for log, some in burials.items()}
    return {
        log for log, some in refs.items() if not (all(map(there, some)) and (log not in read or _reads(place, some)))
    }


def _reads(place: SourceRef, refs: Iterable[ObjectRef]) -> bool:
    try:
        read_buried(place, refs)
    except Damaged:
        return False
    return True
