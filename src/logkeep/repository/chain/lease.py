"""The one exclusive lease of a source: owner, expiry, fence.

The lease spares two writers from doing the same work; it is the commit chain that keeps them from harming each
other. Created once, then only replaced by compare-and-swap, never deleted. It also remembers the head of the chain
that its last holder left behind, which guards the end of the chain against silent removal.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import Enum, auto

import msgspec

from logkeep.errors import AlreadyExists, Damaged, LeaseLost, Locked, ObjectMissing, StoreError, VersionMismatch
from logkeep.model.ids import BackupId
from logkeep.model.time import Clock, rfc3339
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import FIRST_GENERATION, NO_PREDECESSOR, Commit
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import SourceDocument, open_in_place, seal, seal_of
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.owner import Owner, is_dead
from logkeep.repository.chain.renewal import Renewal

DEFAULT_TTL = timedelta(minutes=5)


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A head of the chain that somebody has seen."""

    generation: int
    seal: str


NOTHING_SEEN = Head(FIRST_GENERATION - 1, NO_PREDECESSOR)


class LeaseDocument(SourceDocument, frozen=True, kw_only=True, tag="lease"):
    owner: Owner
    operation: str
    backup: int | None = None
    """The id that the holder is working on."""
    epoch: int
    """Counts acquisitions."""
    acquired: str
    expires: str
    released: bool = False
    head: Head
    """The last head that a holder has seen: a chain that ends before it has lost commits."""


class LeaseState(Enum):
    """What a lease means to somebody who would like to have it."""

    FREE = auto()
    HELD = auto()
    EXPIRED = auto()
    OWNER_DEAD = auto()


def standing(document: LeaseDocument, now: datetime, here: Owner) -> LeaseState:
    """Pure but for the look at our own process table. Expiry gets a third of the life time on top: clocks differ."""
    if document.released:
        return LeaseState.FREE
    expires = datetime.fromisoformat(document.expires)
    life = expires - datetime.fromisoformat(document.acquired)
    if now > expires + min(life / 3, timedelta(minutes=3)):
        return LeaseState.EXPIRED
    return LeaseState.OWNER_DEAD if is_dead(document.owner, here) else LeaseState.HELD


def check_head(folded: Folded, seen: Head, where: str) -> None:
    """Refuse a chain that ends before a head that was seen: commits were removed."""
    if folded.generation < seen.generation or (folded.generation == seen.generation and folded.head != seen.seal):
        raise Damaged(
            f"the chain ends at generation {folded.generation}, but generation {seen.generation} was committed once",
            subject=where,
            remedy="bring the commit objects back from the store's versions; "
            "if they are lost for good, `logkeep repair --accept-loss` goes on without them",
        )


def check_seen(place: SourceRef, folded: Folded, seen: Head) -> None:
    """The same, and for a chain that is longer: the commit that was seen must still be the one of its generation."""
    check_head(folded, seen, layout.commits(place.source))
    if not folded.repaired_generation <= seen.generation < folded.generation or seen == NOTHING_SEEN:
        return  # nothing longer to compare, or a repair went on from elsewhere
    name = layout.commit(place.source, seen.generation)
    if seal_of(place.store.get(name, Commit.limit)) != seen.seal:
        raise Damaged(f"generation {seen.generation} is another commit than the one that was seen once", subject=name)


def read_lease(place: SourceRef) -> tuple[LeaseDocument, str] | None:
    """The lease as it stands and its version; None before the first holder."""
    name = layout.lease(place.source)
    try:
        data, info = place.store.get_with_info(name, LeaseDocument.limit)
    except ObjectMissing:
        return None
    document = open_in_place(data, name, LeaseDocument, place.repository)
    if document.source != place.source:
        raise Damaged("the lease belongs to another source", subject=name)
    return document, info.version


class Lease:
    """A lease that we hold. `confirm` before anything that cannot be undone."""

    def __init__(self, place: SourceRef, document: LeaseDocument, version: str, clock: Clock, ttl: timedelta) -> None:
        self._place, self._document, self._version = place, document, version
        self._clock, self._ttl = clock, ttl
        self._guard = threading.Lock()
        self._lost: str | None = None

    @property
    def run(self) -> str:
        return self._document.owner.run

    @property
    def owner(self) -> Owner:
        return self._document.owner

    @property
    def seen(self) -> Head:
        """The last head that any holder has seen."""
        return self._document.head

    @property
    def name(self) -> str:
        return layout.lease(self._place.source)

    def confirm(self) -> None:
        """Ask the store whether the lease is still ours and alive. Raises LeaseLost."""
        with self._guard:
            self._check_own()
            self._catch_up()
            if self._clock() >= datetime.fromisoformat(self._document.expires):
                self._lose("it expired before it could be renewed")

    def work_on(self, backup: BackupId) -> None:
        """Say which backup this run is working on, so that readers see it as ongoing and not as abandoned."""
        with self._guard:
            self._check_own()
            self._put(msgspec.structs.replace(self._document, backup=backup, expires=self._expiry()))

    def renew(self) -> bool:
        """Push the expiry out. False once the lease is lost; an unreachable store is tried again until it expires."""
        with self._guard:
            try:
                self._check_own()
                self._put(msgspec.structs.replace(self._document, expires=self._expiry()))
            except LeaseLost:
                return False
            except StoreError:
                return self._clock() < datetime.fromisoformat(self._document.expires)
            return True

    def remember(self, head: Head) -> None:
        """Write down the head that we committed: it guards the end of the chain from now on."""
        with self._guard:
            self._check_own()
            newest = max(head, self._document.head, key=lambda h: h.generation)
            self._put(msgspec.structs.replace(self._document, head=newest, expires=self._expiry()))

    def release(self) -> None:
        """Give it back."""
        with self._guard:
            self._check_own()
            self._put(msgspec.structs.replace(self._document, released=True, backup=None))

    def _expiry(self) -> str:
        return rfc3339(self._clock() + self._ttl)

    def _check_own(self) -> None:
        if self._lost is not None:
            raise LeaseLost(f"the lease is gone: {self._lost}", subject=self.name)

    def _lose(self, why: str) -> None:
        self._lost = why
        self._check_own()

    def _put(self, document: LeaseDocument) -> None:
        try:
            self._version = _swap(self._place, document, self._version)
        except VersionMismatch:
            self._catch_up()
            try:
                self._version = _swap(self._place, document, self._version)
            except VersionMismatch:
                self._lose("another run took it over")
        self._document = document

    def _catch_up(self) -> None:
        """Take the lease as it stands, if it is ours: a renewal may have arrived whose answer did not."""
        found = read_lease(self._place)
        if found is None or found[0].released or (found[0].owner, found[0].epoch) != (self.owner, self._document.epoch):
            self._lose("another run took it over")
        else:
            self._document, self._version = found


def _swap(place: SourceRef, document: LeaseDocument, version: str) -> str:
    """Replace and return the new version. A lost acknowledgement is recognised by our own bytes."""
    name, data = layout.lease(place.source), seal(document)
    try:
        place.store.replace(name, data, version)
    except VersionMismatch:
        if place.store.get(name, LeaseDocument.limit) != data:
            raise
    seen, info = place.store.get_with_info(name, LeaseDocument.limit)
    if seen != data:
        raise VersionMismatch("the lease changed at once", subject=name)
    return info.version


def acquire(place: SourceRef, owner: Owner, operation: str, clock: Clock, ttl: timedelta) -> Lease:
    """Take the lease, or raise Locked naming its holder. Read the chain after this, never before."""
    found = read_lease(place)
    if found is not None:
        _refuse_if_held(found[0], clock(), owner, layout.lease(place.source))
    now = clock()
    document = LeaseDocument(
        repository=place.repository,
        source=place.source,
        owner=owner,
        operation=operation,
        epoch=found[0].epoch + 1 if found else 1,
        acquired=rfc3339(now),
        expires=rfc3339(now + ttl),
        head=found[0].head if found else NOTHING_SEEN,
    )
    return Lease(place, document, _claim(place, document, found), clock, ttl)


def _refuse_if_held(document: LeaseDocument, now: datetime, here: Owner, where: str) -> None:
    if standing(document, now, here) is LeaseState.HELD:
        raise Locked(
            f"{document.operation} by {document.owner} holds the source until {document.expires}", subject=where
        )


def _claim(place: SourceRef, document: LeaseDocument, found: tuple[LeaseDocument, str] | None) -> str:
    name = layout.lease(place.source)
    try:
        if found is not None:
            return _swap(place, document, found[1])
        place.store.put_new(name, seal(document))
        return place.store.head(name).version
    except (AlreadyExists, VersionMismatch) as error:
        raise Locked("another run took the source at the same moment", subject=name) from error


def free(place: SourceRef, document: LeaseDocument, version: str) -> None:
    """Take the lease away from whoever holds it, by compare-and-swap; its memory of the head stays."""
    try:
        _swap(place, msgspec.structs.replace(document, released=True, backup=None), version)
    except VersionMismatch as error:
        raise Locked("the lease changed hands in this moment", subject=layout.lease(place.source)) from error


def note_head(place: SourceRef, head: Head) -> None:
    """Let the lease remember a head that was committed without holding it. Best effort: the commit stands anyway.

    A holder finds its own lease with a newer head, and takes it as it stands.
    """
    found = read_lease(place)
    if found is None or found[0].head.generation >= head.generation:
        return
    try:
        _swap(place, msgspec.structs.replace(found[0], head=head), found[1])
    except VersionMismatch:
        return  # somebody wrote it meanwhile, after reading a chain at least as long


@contextmanager
def kept(lease: Lease, ttl: timedelta) -> Iterator[Lease]:
    """Renew in the background while the body runs."""
    with Renewal(lease.renew, ttl.total_seconds() / 3):
        yield lease
