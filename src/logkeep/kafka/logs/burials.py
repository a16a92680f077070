"""The buried offsets of archived logs: read from the repository, and joined where a log has very many burials."""

from collections.abc import Collection, Iterable, Mapping

from logkeep.errors import Damaged
from logkeep.formats.kafka.buried_offsets import BuriedOffsets, decode_runs, encode_runs, joined
from logkeep.model.segments import LogName
from logkeep.repository.backups.burials import MANY_BURIALS, alike_burials, put_burial, read_burial
from logkeep.repository.backups.verification import known_damaged
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import BuriedLog, JoinBurialsAction, JoinedBurial, ObjectRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Burial, Folded
from logkeep.repository.chain.write_session import Writing


def read_buried(place: SourceRef, refs: Iterable[ObjectRef]) -> BuriedOffsets | None:
    """The buried offsets of all these objects together; None if there are none. Raises Damaged."""
    found = [decode_runs(read_burial(place, ref), layout.buried(place.source, ref.token)) for ref in refs]
    return joined(found) if found else None


def unreadable_burials(
    place: SourceRef, folded: Folded, burials: Mapping[LogName, tuple[Burial, ...]], read: Collection[LogName]
) -> set[LogName]:
    """Logs whose burials are missing or damaged. Burials of the logs in `read` are read. The others may be many: they
    are only listed, and compared with what verifications found."""
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


def join_burials(session: Writing, many: int = MANY_BURIALS) -> int:
    """Store burials of a log that no kept backup can distinguish as one. Returns how many objects were replaced."""
    found = (_joined(session, some) for some in alike_burials(session.folded, many))
    logs = tuple(each for each in found if each is not None)
    if logs:
        session.commit(JoinBurialsAction(logs))
    return sum(len(each.instead_of) for each in logs)


def _joined(session: Writing, some: tuple[Burial, ...]) -> JoinedBurial | None:
    """These burials as one object; None if one cannot be read, or if two have the same offset: a backup compares the
    number of buried offsets."""
    try:
        whole = read_buried(session.place, [each.object for each in some])
    except Damaged:
        return None
    if whole is None or whole.count != sum(each.offsets for each in some):
        return None
    ref = put_burial(session.place, encode_runs(whole), session.tokens())
    return JoinedBurial(
        max(each.first for each in some),
        BuriedLog(some[0].log, ref, whole.count),
        tuple(each.object.token for each in some),
    )
