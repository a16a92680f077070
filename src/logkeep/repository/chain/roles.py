"""The role of instances that follow one source together: one is active, the others wait.

The active instance renews its role. Another one acquires it when it is released, when its process is known to be
dead, or when it was not renewed for its lifetime and a third of it, by the monotonic clock of the one that waits: wrong
clocks of hosts do not matter. An instance that could not renew in time loses its role by its own clock, also after it
was stopped for a while. The role only says which instance works. The lease of the source and the commit chain protect
the archive from all others.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum

import msgspec

from logkeep.errors import AlreadyExists, Damaged, LeaseLost, ObjectMissing, StoreError, VersionMismatch
from logkeep.model.time import Clock, rfc3339
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import SourceDocument, read, read_versioned, seal
from logkeep.repository.chain.owner import Owner, is_dead


class InstanceRole(StrEnum):
    ACTIVE = "active"
    PASSIVE = "passive"


class RoleDocument(SourceDocument, frozen=True, kw_only=True, tag="role"):
    """Replaced in place by compare-and-swap, never deleted."""

    instance: str
    owner: Owner
    epoch: int
    """Counts take-overs."""
    renewals: int = 0
    acquired: str
    renewed: str
    lifetime_s: float
    released: bool = False


class InstanceDocument(SourceDocument, frozen=True, kw_only=True, tag="instance"):
    """When an instance last reported, for `status`."""

    instance: str
    role: InstanceRole
    owner: Owner
    seen: str


def read_role(place: SourceRef) -> tuple[RoleDocument, str] | None:
    """The current role and its version; None before the first instance."""
    return read_versioned(place.store, layout.role(place.source), RoleDocument, place.repository, place.source)


class RoleSeat:
    """One instance and its claim to the role."""

    def __init__(
        self,
        place: SourceRef,
        instance: str,
        owner: Owner,
        lifetime_s: float,
        clock: Clock,
        monotonic: Callable[[], float],
        *,
        wanted: InstanceRole = InstanceRole.ACTIVE,
    ) -> None:
        self.place, self.instance, self.owner = place, instance, owner
        self.lifetime_s, self._clock, self._monotonic = lifetime_s, clock, monotonic
        self._wanted, self._guard = wanted, threading.Lock()
        self._held: RoleDocument | None = None
        self._version = ""
        self._renewed_at_s = 0.0
        self._watched: tuple[str, float] | None = None

    @property
    def active(self) -> bool:
        return self._held is not None and self._monotonic() - self._renewed_at_s < self.lifetime_s

    def try_take(self) -> bool:
        """Take the role if it is free. Raises StoreError, and Damaged for a role that cannot be read."""
        with self._guard:
            began_s, found = self._monotonic(), read_role(self.place)
            if not self._free(found, began_s):
                return False
            self._held = None
            now = rfc3339(self._clock())
            document = RoleDocument(
                repository=self.place.repository,
                source=self.place.source,
                instance=self.instance,
                owner=self.owner,
                epoch=found[0].epoch + 1 if found else 1,
                acquired=now,
                renewed=now,
                lifetime_s=self.lifetime_s,
            )
            with suppress(AlreadyExists, VersionMismatch):  # another instance was faster
                self._put(document, found[1] if found else None, began_s)
            return self._held is not None

    def _free(self, found: tuple[RoleDocument, str] | None, now_s: float) -> bool:
        version = found[1] if found else ""
        if self._watched is None or self._watched[0] != version:
            self._watched = (version, now_s)
        waited_s = now_s - self._watched[1]
        if found is None:
            return self._wanted is InstanceRole.ACTIVE or waited_s > self.lifetime_s
        role = found[0]
        return role.released or is_dead(role.owner, self.owner) or waited_s > role.lifetime_s * 4 / 3

    def _put(self, document: RoleDocument, version: str | None, began_s: float) -> None:
        """Store the document and read it back: only our own bytes prove that it was stored."""
        name, data = layout.role(self.place.source), seal(document)
        try:
            if version is None:
                self.place.store.put_new(name, data)
            else:
                self.place.store.replace(name, data, version)
        except (AlreadyExists, VersionMismatch):
            if self.place.store.get(name, RoleDocument.limit) != data:
                raise
        seen, info = self.place.store.get_with_info(name, RoleDocument.limit)
        if seen != data:
            raise VersionMismatch("the role changed at once", subject=name)
        self._held, self._version, self._renewed_at_s = document, info.version, began_s

    def renew(self) -> bool:
        """Extend the role; False once it is lost. A store that does not answer is tried again until it expires."""
        with self._guard:
            if not self.active or self._held is None:
                return self._lose()
            began_s = self._monotonic()
            renewed = msgspec.structs.replace(
                self._held, renewals=self._held.renewals + 1, renewed=rfc3339(self._clock())
            )
            try:
                self._put(renewed, self._version, began_s)
            except (VersionMismatch, AlreadyExists, ObjectMissing):
                return self._lose()
            except StoreError:
                return True
            return True

    def _lose(self) -> bool:
        self._held = None
        return False

    def confirm(self) -> None:
        """Raise LeaseLost unless the role is ours, by our own clock and in the store."""
        with self._guard:
            found = read_role(self.place) if self.active else None
            ours = self._held is not None and found is not None and self._same(found[0])
            if not ours:
                self._lose()
                raise LeaseLost("another instance is active now", subject=layout.role(self.place.source))

    def _same(self, found: RoleDocument) -> bool:
        held = self._held
        return held is not None and not found.released and (found.owner, found.epoch) == (held.owner, held.epoch)

    def release(self) -> None:
        """Let another instance become active at once. One that cannot be released expires."""
        with self._guard, suppress(StoreError, VersionMismatch, ObjectMissing):
            if self._held is not None and self.active:
                self._put(msgspec.structs.replace(self._held, released=True), self._version, self._renewed_at_s)
            self._lose()

    def report(self, role: InstanceRole) -> None:
        """Store for `status` that this instance runs. Advice: a store that refuses it changes nothing."""
        document = InstanceDocument(
            repository=self.place.repository,
            source=self.place.source,
            instance=self.instance,
            role=role,
            owner=self.owner,
            seen=rfc3339(self._clock()),
        )
        name, data = layout.instance(self.place.source, self.instance), seal(document)
        with suppress(StoreError, AlreadyExists, VersionMismatch):
            try:
                version = self.place.store.head(name).version
            except ObjectMissing:
                self.place.store.put_new(name, data)
            else:
                self.place.store.replace(name, data, version)


def instances(place: SourceRef) -> list[InstanceDocument]:
    """Every instance that ever reported, by name; unreadable ones are left out."""
    found = []
    for info in place.store.list(layout.instances(place.source)):
        with suppress(Damaged, ObjectMissing):
            found.append(read(place.store, info.name, InstanceDocument, place.repository))
    return found
