"""Storing and reading what a restore has once: its plan, its map, and that it was given up.

The plan is put first and its name decides the id: of two that begin in the same second, one takes the next id. Ids
only grow. Whatever is read is checked to be what was stored for this very restore, or it is Damaged.
"""

import hashlib
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from logkeep.errors import AlreadyExists, Damaged, ObjectMissing, RestoreFailed, StoreDenied, StoreError
from logkeep.model.ids import RestoreId, next_id
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import MIB, put_own
from logkeep.repository.chain.owner import this_process
from logkeep.repository.object_writer import StoredWriter
from logkeep.repository.restores.documents import (
    MAP_LIMIT,
    AbortedDocument,
    RestorePlanDocument,
    RestoreTargetRef,
    sealed,
)
from logkeep.repository.restores.numbered import read_of

PlanT = TypeVar("PlanT")
_ATTEMPTS = 1_000
_SMALL = 16 * MIB
"""Up to here an object is put in one call, which is tried again when the store does not answer."""


@dataclass(frozen=True)
class NewRestore:
    """What is asked of a restore that begins."""

    backup: int
    kind: str
    target: RestoreTargetRef
    body: bytes
    """The plan of this kind of source as msgspec writes it: JSON in one line."""
    options: dict[str, str] = field(default_factory=dict)
    who: str = ""
    drill: bool = False


def begin_restore(place: SourceRef, new: NewRestore, clock: Clock, tokens: TokenSource) -> RestoreId:
    """Store the plan under a new id, the first act of a restore. Raises StoreDenied where nothing may be written."""
    owner, now = this_process(tokens()), clock()
    chosen = _next_restore(place, int(next_id(now, 0)))
    for _ in range(_ATTEMPTS):
        plan = RestorePlanDocument(
            repository=place.repository,
            source=place.source,
            restore=chosen,
            backup=new.backup,
            kind=new.kind,
            drill=new.drill,
            who=new.who,
            owner=owner,
            started=rfc3339(now),
            target=new.target,
            options=new.options,
            body=msgspec.Raw(new.body),
        )
        try:
            _put_first(place, layout.restore_plan(place.source, chosen), sealed(plan))
        except AlreadyExists:
            chosen = RestoreId(next_id(now, chosen))
            continue
        return chosen
    raise StoreError("restores are begun faster than this one finds an id", subject=place.source)


def _next_restore(place: SourceRef, earliest: int) -> RestoreId:
    """The first id that is free: the time, or one more than the last id there is when that is larger."""
    names = (i.name for i in place.store.list(layout.restores(place.source), _before(place, earliest)))
    taken = [said.restore for name in names if (said := layout.restore_object(place.source, name))]
    return RestoreId(max([earliest, *(i + 1 for i in taken)]))


def _before(place: SourceRef, restore_id: int) -> str:
    """A name that is smaller than all of this restore and of those after it."""
    return layout.restore(place.source, RestoreId(restore_id)).removesuffix("/")


def _put_first(place: SourceRef, name: str, data: bytes) -> None:
    try:
        put_own(place.store, name, data)
    except StoreDenied as denied:
        raise StoreDenied(
            f"the plan of the restore cannot be stored: {denied.what}",
            subject=denied.subject or name,
            remedy="give the right to write below restores/, or keep these documents elsewhere with --state-dir DIR",
        ) from denied


def read_plan(place: SourceRef, restore_id: RestoreId) -> RestorePlanDocument:
    """The stored plan. Raises ObjectMissing when no restore has this id, and Damaged."""
    name = layout.restore_plan(place.source, restore_id)
    return read_of(place, restore_id, name, RestorePlanDocument)


def plan_body(plan: RestorePlanDocument, kind: type[PlanT]) -> PlanT:
    """The part of a plan that only one kind of source understands, as that kind defines it. Raises Damaged."""
    try:
        return msgspec.json.decode(plan.body, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Damaged(f"the plan does not follow its schema ({error})", subject=f"restore {plan.restore}") from error


def put_map(place: SourceRef, restore_id: RestoreId, data: bytes, token: str) -> ObjectRef:
    """Store a map under a random name; the receipt that names the reference makes it count."""
    if len(data) > MAP_LIMIT:
        raise RestoreFailed(
            f"the map of offsets would have {len(data)} bytes, and readers take {MAP_LIMIT}",
            subject=f"restore {restore_id}",
            remedy="restore fewer topics at a time",
        )
    name = layout.restore_map(place.source, restore_id, token)
    if len(data) <= _SMALL:
        put_own(place.store, name, data)
        return ObjectRef(token, len(data), hashlib.sha256(data).hexdigest())
    writer = StoredWriter(place.store.open_new(name, len(data)), name, token)
    try:
        writer.write(data)
        stored = writer.close()
    except BaseException:
        writer.abort()
        raise
    return ObjectRef(token, stored.size_bytes, stored.sha256)


def read_map(place: SourceRef, restore_id: RestoreId, ref: ObjectRef) -> bytes:
    """The very bytes that the reference pins. Raises Damaged."""
    name = layout.restore_map(place.source, restore_id, ref.token)
    try:
        data = place.store.get(name, min(ref.size, MAP_LIMIT))
    except ObjectMissing as error:
        raise Damaged("the map is missing", subject=name) from error
    if len(data) != ref.size or hashlib.sha256(data).hexdigest() != ref.sha256:
        raise Damaged("this is not the map that the receipt names", subject=name)
    return data


def put_aborted(place: SourceRef, plan: RestorePlanDocument, reason: str, clock: Clock, tokens: TokenSource) -> None:
    """Say that a restore is given up. Saying it again changes nothing."""
    restore_id = RestoreId(plan.restore)
    document = AbortedDocument(
        repository=place.repository,
        source=place.source,
        restore=plan.restore,
        backup=plan.backup,
        drill=plan.drill,
        owner=this_process(tokens()),
        started=plan.started,
        aborted=rfc3339(clock()),
        reason=reason,
    )
    try:
        place.store.put_new(layout.restore_aborted(place.source, restore_id), sealed(document))
    except AlreadyExists:
        read_aborted(place, restore_id)


def read_aborted(place: SourceRef, restore_id: RestoreId) -> AbortedDocument | None:
    """Who gave it up, and when; None when nobody did. Raises Damaged."""
    try:
        return read_of(place, restore_id, layout.restore_aborted(place.source, restore_id), AbortedDocument)
    except ObjectMissing:
        return None
