"""Objects with buried offsets: written once, pinned by the commit that names them, compared by every reader."""

import hashlib
from collections.abc import Iterable

from logkeep.errors import Damaged, ObjectMissing
from logkeep.model.segments import LogName
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Burial, Folded
from logkeep.repository.object_writer import StoredWriter

_LARGEST = 1 << 30


def put_burial(place: SourceRef, data: bytes, token: str) -> ObjectRef:
    """Store the runs of one log. They count once a commit names them."""
    name = layout.buried(place.source, token)
    writer = StoredWriter(place.store.open_new(name, len(data)), name, token)
    try:
        writer.write(data)
        stored = writer.close()
    finally:
        writer.abort()
    return ObjectRef(token, stored.size_bytes, stored.sha256)


def read_burial(place: SourceRef, ref: ObjectRef) -> bytes:
    """The object that a commit names. Raises Damaged."""
    name = layout.buried(place.source, ref.token)
    try:
        data = place.store.get(name, min(ref.size, _LARGEST))
    except ObjectMissing as error:
        raise Damaged("the buried offsets are missing", subject=name) from error
    if len(data) != ref.size or hashlib.sha256(data).hexdigest() != ref.sha256:
        raise Damaged("these are not the buried offsets that were committed", subject=name)
    return data


def burials_by_log(folded: Folded, backup_id: int, logs: Iterable[LogName]) -> dict[LogName, tuple[Burial, ...]]:
    """The burials that apply to a backup, of these logs that have some."""
    found: dict[LogName, list[Burial]] = {}
    for each in folded.burials(backup_id):
        found.setdefault(each.log, []).append(each)
    return {log: tuple(found[log]) for log in logs if log in found}
