"""The exclusive lease of a source: owner, expiry, and the last head of the chain.

The lease keeps two writers from doing the same work; safety comes from the commit chain, not from the lease. It is
created once, then only replaced by compare-and-swap, never deleted. It also holds the head of the chain that its last
holder saw: removing the newest commits is noticed.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import Enum, auto
from types import TracebackType

import msgspec

from logkeep.errors import AlreadyExists, Damaged, LeaseLost, Locked, StoreError, VersionMismatch
from logkeep.model.ids import BackupId
from logkeep.model.time import Clock, rfc3339
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import FIRST_GENERATION, NO_PREDECESSOR, Commit
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import SourceDocument, read_versioned, seal, seal_of
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.owner import Owner, is_dead

DEFAULT_TTL = timedelta(minutes=5)
_SMALLEST_STEP = timedelta(milliseconds=1)
"""The smallest difference of two stored times."""
_unreleased: set[str] = set()
"""Runs of this process that ended without being able to release their lease, in a full store for example. The next run
of this process acquires it at once, and does not wait until it expires."""
_watched: dict[tuple[str, str], tuple[str, float]] = {}
"""The version of each source's lease that this process read last, and when it first read it, by its monotonic clock."""


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A head of the chain that a run has seen."""

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
    """What a lease means to another process that wants it."""

    FREE = auto()
    HELD = auto()
    EXPIRED = auto()
    OWNER_DEAD = auto()


def lease_state(document: LeaseDocument, now: datetime, here: Owner) -> LeaseState:
    """Pure except for the process table and the runs that ended here. A third of the lifetime is added to the expiry:
    clocks differ."""
    if document.released:
        return LeaseState.FREE
    if now > datetime.fromisoformat(document.acquired) + unchanged_at_most(document):
        return LeaseState.EXPIRED
    ended = document.owner.run in _unreleased or is_dead(document.owner, here)
    return LeaseState.OWNER_DEAD if ended else LeaseState.HELD


def unchanged_at_most(document: LeaseDocument) -> timedelta:
    """How long a live holder can leave this document unchanged, at most: from its acquisition to its expiry, and a
    third of that. The lifetime itself is not stored. Renewals move the expiry, so this is longer than needed for a
    holder that renewed often, and never shorter. Such a lease is acquired by its expiry, unless clocks differ."""
    life = datetime.fromisoformat(document.expires) - datetime.fromisoformat(document.acquired)
    return life + min(life / 3, timedelta(minutes=3))


def check_head(folded: Folded, seen: Head, where: str) -> None:
    """Raise Damaged for a chain that ends before a head that was seen: commits were removed."""
    if folded.generation < seen.generation or (folded.generation == seen.generation and folded.head != seen.seal):
        raise Damaged(
            f"the chain ends at generation {folded.generation}, but generation {seen.generation} was committed before",
            subject=where,
            remedy="restore the commit objects from the store's versions; "
            "if they are lost for good, `logkeep repair --accept-loss` continues without them",
        )


def check_seen(place: SourceRef, folded: Folded, seen: Head) -> None:
    """The same, and in a longer chain the commit that was seen must still be the one of its generation."""
    check_head(folded, seen, layout.commits(place.source))
    if not folded.repaired_generation <= seen.generation < folded.generation or seen == NOTHING_SEEN:
        return  # the chain is not longer, or a repair continued it elsewhere
    name = layout.commit(place.source, seen.generation)
    if seal_of(place.store.get(name, Commit.limit)) != seen.seal:
        raise Damaged(f"generation {seen.generation} is another commit than the one that was seen before", subject=name)


def read_lease(place: SourceRef) -> tuple[LeaseDocument, str] | None:
    """The current lease and its version; None before the first holder."""
    return read_versioned(place.store, layout.lease(place.source), LeaseDocument, place.repository, place.source)


class Lease:
    """A lease that we hold. `confirm` before anything that cannot be undone."""

    def __init__(
        self,
        place: SourceRef,
        document: LeaseDocument,
        version: str,
        clock: Clock,
        ttl: timedelta,
        monotonic: Callable[[], float],
    ) -> None:
        self._place, self._document, self._version = place, document, version
        self._clock, self._ttl, self._monotonic = clock, ttl, monotonic
        self._acquired, self._began_s = datetime.fromisoformat(document.acquired), monotonic()
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
        """Check in the store that the lease is still ours and has not expired. Raises LeaseLost."""
        with self._guard:
            self._check_own()
            self._catch_up()
            if self._clock() >= datetime.fromisoformat(self._document.expires):
                self._lose("it expired before it could be renewed")

    def work_on(self, backup: BackupId) -> None:
        """Store which backup this run is working on, so that readers see it as ongoing."""
        with self._guard:
            self._check_own()
            self._put(lambda found: msgspec.structs.replace(found, backup=backup, expires=self._expiry(found)))

    def renew(self) -> bool:
        """Extend the expiry; called every third of the lifetime. False once the lease is lost. If the store does not
        answer, this is tried again until the lease expires."""
        with self._guard:
            try:
                self._check_own()
                self._put(lambda found: msgspec.structs.replace(found, expires=self._expiry(found)))
            except LeaseLost:
                return False
            except StoreError:
                return self._clock() < datetime.fromisoformat(self._document.expires)
            return True

    def remember(self, head: Head) -> None:
        """Store the head that we committed: a chain that ends before it has lost commits."""
        with self._guard:
            self._check_own()
            self._put(
                lambda found: msgspec.structs.replace(found, head=_newer(head, found), expires=self._expiry(found))
            )

    def release(self) -> None:
        """If the store refuses it, the next run of this process can still acquire the lease at once."""
        with self._guard:
            self._check_own()
            try:
                self._put(lambda found: msgspec.structs.replace(found, released=True, backup=None))
            except StoreError:
                _unreleased.add(self.run)
                raise

    def _expiry(self, found: LeaseDocument) -> str:
        """The new expiry. It counts from the later of two times: the clock of this host, and the acquisition plus the
        seconds counted since. So a clock that is set back does not make the lease of a live run look expired, and a
        clock that was ahead for a while does not keep it for longer once it is right again."""
        counted = self._acquired + timedelta(seconds=self._monotonic() - self._began_s)
        expires = rfc3339(max(self._clock(), counted) + self._ttl)
        # Waiting processes see a renewal by its version, which may be a hash of the bytes.
        return expires if expires != found.expires else rfc3339(datetime.fromisoformat(expires) + _SMALLEST_STEP)

    def _check_own(self) -> None:
        if self._lost is not None:
            raise LeaseLost(f"the lease was lost: {self._lost}", subject=self.name)

    def _lose(self, why: str) -> None:
        self._lost = why
        self._check_own()

    def _put(self, changed: Callable[[LeaseDocument], LeaseDocument]) -> None:
        try:
            self._replace(changed)
        except VersionMismatch:
            self._catch_up()
            try:
                self._replace(changed)
            except VersionMismatch:
                self._lose("another run acquired it")

    def _replace(self, changed: Callable[[LeaseDocument], LeaseDocument]) -> None:
        document = changed(self._document)
        self._version = _swap(self._place, document, self._version)
        self._document = document

    def _catch_up(self) -> None:
        """Read the lease again, if it is ours: a renewal may have succeeded although its reply was lost."""
        found = read_lease(self._place)
        if found is None or found[0].released or (found[0].owner, found[0].epoch) != (self.owner, self._document.epoch):
            self._lose("another run acquired it")
        else:
            self._document, self._version = found


def _newer(head: Head, found: LeaseDocument) -> Head:
    """The later head. The stored lease may have a later one, because a user who pins a backup stores a head in it."""
    return max(head, found.head, key=lambda one: one.generation)


def _swap(place: SourceRef, document: LeaseDocument, version: str) -> str:
    """Replace and return the new version. If the acknowledgement was lost, our own bytes are there."""
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


def acquire(
    place: SourceRef,
    owner: Owner,
    operation: str,
    clock: Clock,
    ttl: timedelta,
    monotonic: Callable[[], float] = time.monotonic,
) -> Lease:
    """Acquire the lease, or raise Locked naming its holder. Read the chain after this, never before.

    A process that tries again and again acquires a lease that its holder does not renew, even if the clock of either
    host is wrong.
    """
    began_s, found = monotonic(), read_lease(place)
    if found is not None and not _abandoned(place, found, began_s, monotonic()):
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
    return Lease(place, document, _claim(place, document, found), clock, ttl, monotonic)


def _abandoned(place: SourceRef, found: tuple[LeaseDocument, str], began_s: float, read_s: float) -> bool:
    """Whether this process has read the same version of the lease for longer than a live holder leaves it unchanged."""
    document, version = found
    source = (place.repository, place.source)
    watched, since_s = _watched.get(source, ("", 0.0))
    if watched != version:
        _watched[source] = (version, read_s)
        return False
    return began_s - since_s > unchanged_at_most(document).total_seconds()


def _refuse_if_held(document: LeaseDocument, now: datetime, here: Owner, where: str) -> None:
    if lease_state(document, now, here) is LeaseState.HELD:
        held = Locked(
            f"{document.operation} by {document.owner} holds the source until {document.expires}", subject=where
        )
        held.operation = document.operation
        raise held


def _claim(place: SourceRef, document: LeaseDocument, found: tuple[LeaseDocument, str] | None) -> str:
    name = layout.lease(place.source)
    try:
        if found is not None:
            return _swap(place, document, found[1])
        place.store.put_new(name, seal(document))
        return place.store.head(name).version
    except (AlreadyExists, VersionMismatch) as error:
        raise Locked("another run acquired the lease at the same moment", subject=name) from error


def free(place: SourceRef, document: LeaseDocument, version: str) -> None:
    """Release the lease of another holder, by compare-and-swap; its head stays."""
    try:
        _swap(place, msgspec.structs.replace(document, released=True, backup=None), version)
    except VersionMismatch as error:
        raise Locked(
            "the lease was acquired or renewed at the same moment", subject=layout.lease(place.source)
        ) from error


def note_head(place: SourceRef, head: Head) -> None:
    """Store a head in the lease that was committed without holding it. Best effort: the commit is valid anyway.

    A holder finds its own lease with a newer head and keeps that.
    """
    found = read_lease(place)
    if found is None or found[0].head.generation >= head.generation:
        return
    try:
        _swap(place, msgspec.structs.replace(found[0], head=head), found[1])
    except VersionMismatch:
        return  # another run wrote it, after reading a chain at least as long


class Renewal:
    """A thread that calls `renew` every `interval_s` until closed, or until `renew` returns False."""

    def __init__(self, renew: Callable[[], bool], interval_s: float) -> None:
        self._renew = renew
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="logkeep-renewal", daemon=True)

    def __enter__(self) -> "Renewal":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            if not self._renew():
                return


@contextmanager
def renewed(lease: Lease, ttl: timedelta) -> Iterator[Lease]:
    """Renew in the background while the body runs."""
    with Renewal(lease.renew, ttl.total_seconds() / 3):
        yield lease
