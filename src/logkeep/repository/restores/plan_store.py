"""Stores and reads the plan of a restore, its map, and that it was aborted.

The plan is put first and its name decides the id: of two restores that begin in the same second, one gets the next id.
Ids grow. Every document that is read must belong to this restore, otherwise it is Damaged.
"""

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from logkeep.errors import AlreadyExists, CommitConflict, Damaged, ObjectMissing, RestoreFailed, StoreDenied, UsageError
from logkeep.model.ids import RestoreId, next_id
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import MIB, put_own, read_pinned
from logkeep.repository.chain.owner import this_process
from logkeep.repository.object_writer import put_object
from logkeep.repository.restores.document_numbers import read_of
from logkeep.repository.restores.documents import (
    BODY_LIMIT,
    MAP_LIMIT,
    AbortedDocument,
    RestorePlanDocument,
    RestoreTargetRef,
    sealed,
)
from logkeep.store.access import create_place, open_store

PlanT = TypeVar("PlanT")
_ATTEMPTS = 1_000
_SMALL = 16 * MIB
"""Smaller objects are put in one call, which is retried if the store does not answer."""


@dataclass(frozen=True)
class NewRestore:
    """The facts about a restore that begins."""

    backup: int
    kind: str
    target: RestoreTargetRef
    body: bytes
    """The plan of this kind of source as one line of JSON."""
    options: dict[str, str] = field(default_factory=dict)
    who: str = ""
    drill: bool = False
    version: int = 1
    """The version of the plan document: the smallest one whose readers understand the body."""


def begin_restore(place: SourceRef, new: NewRestore, clock: Clock, tokens: TokenSource) -> RestoreId:
    """Store the plan under a new id, before anything is changed. Raises StoreDenied, or UsageError for a huge plan."""
    if len(new.body) > BODY_LIMIT:
        what = f"the plan has {len(new.body)} bytes, more than {BODY_LIMIT}"
        raise UsageError(what, subject=place.source, remedy="restore fewer topics at a time")
    owner, now = this_process(tokens()), clock()
    chosen = _next_restore(place, int(next_id(now, 0)))
    for _ in range(_ATTEMPTS):
        plan = RestorePlanDocument(
            version=new.version,
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
    raise CommitConflict("no free restore id was found: too many restores begin at the same time", subject=place.source)


def _next_restore(place: SourceRef, earliest: int) -> RestoreId:
    """The first free id: the time, or the last id plus one if that is larger."""
    names = (i.name for i in place.store.list(layout.restores(place.source), _before(place, earliest)))
    used = [parsed.restore for name in names if (parsed := layout.restore_object(place.source, name))]
    return RestoreId(max([earliest, *(i + 1 for i in used)]))


def _before(place: SourceRef, restore_id: int) -> str:
    """A name that sorts before those of this restore and of later ones."""
    return layout.restore(place.source, RestoreId(restore_id)).removesuffix("/")


def _put_first(place: SourceRef, name: str, data: bytes) -> None:
    try:
        put_own(place.store, name, data)
    except StoreDenied as denied:
        raise StoreDenied(
            f"the plan of the restore cannot be stored: {denied.what}",
            subject=denied.subject or name,
            remedy="allow writing below restores/, or store these documents in a directory with --state-dir DIR",
        ) from denied


def read_plan(place: SourceRef, restore_id: RestoreId) -> RestorePlanDocument:
    """The stored plan. Raises ObjectMissing if no restore has this id, and Damaged."""
    name = layout.restore_plan(place.source, restore_id)
    return read_of(place, restore_id, name, RestorePlanDocument)


def plan_body(plan: RestorePlanDocument, kind: type[PlanT]) -> PlanT:
    """The part of a plan that its kind of source defines. Raises Damaged."""
    try:
        return msgspec.json.decode(plan.body, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Damaged(f"the plan does not follow its schema ({error})", subject=f"restore {plan.restore}") from error


def put_map(place: SourceRef, restore_id: RestoreId, data: bytes, token: str) -> ObjectRef:
    """Store a map under a random name; it is valid once a receipt names the reference."""
    if len(data) > MAP_LIMIT:
        raise RestoreFailed(
            f"the map of offsets would have {len(data)} bytes; the limit is {MAP_LIMIT}",
            subject=f"restore {restore_id}",
            remedy="restore fewer topics at a time",
        )
    name = layout.restore_map(place.source, restore_id, token)
    if len(data) <= _SMALL:
        put_own(place.store, name, data)
        return ObjectRef(token, len(data), hashlib.sha256(data).hexdigest())
    stored = put_object(place.store, name, data, token)
    return ObjectRef(token, stored.size_bytes, stored.sha256)


def read_map(place: SourceRef, restore_id: RestoreId, ref: ObjectRef) -> bytes:
    """The map that the reference pins. Raises Damaged."""
    name = layout.restore_map(place.source, restore_id, ref.token)
    missing, changed = "the map is missing", "it is not the map that the receipt names"
    return read_pinned(place.store, name, ref, min(ref.size, MAP_LIMIT), missing=missing, changed=changed)


def put_aborted(place: SourceRef, plan: RestorePlanDocument, reason: str, clock: Clock, tokens: TokenSource) -> None:
    """Store that a restore was aborted. Repeating it changes nothing."""
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
    """Which process aborted it, and when; None if it was not aborted. Raises Damaged."""
    try:
        return read_of(place, restore_id, layout.restore_aborted(place.source, restore_id), AbortedDocument)
    except ObjectMissing:
        return None


def state_place(place: SourceRef, directory: Path, *, create: bool = False) -> SourceRef:
    """The same source with the documents of its restores in a local directory, for read-only repositories.

    Names, bytes and the repository's id are the same: a directory that was used with another repository is refused.
    """
    url = str(directory.absolute())
    if create:
        create_place(url)
    return replace(place, store=open_store(url))
