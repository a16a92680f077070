"""A wrapper that retries requests where that is safe.

Reads, listings and deletes are simply repeated. A `put_new` or `replace` whose reply was lost may have succeeded: the
object is read back before it is repeated. Our bytes: it succeeded. Missing, or the old version: try again. Other bytes:
another writer was first. So writers that race for a name must put something of their own into the bytes, such as a
random run id: equal bytes count as one's own.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import stamina
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from logkeep.errors import (
    AlreadyExists,
    Damaged,
    LogkeepError,
    ObjectMissing,
    StoreBusy,
    StoreUnreachable,
    VersionMismatch,
)
from logkeep.store.base import ObjectInfo, ObjectMetadata, Store
from logkeep.store.wrapper import DelegatingStore

T = TypeVar("T")
_log = logging.getLogger("logkeep.store")
_WARN_AT = 4
"""The retry that warns of a busy store, about three seconds after the first failure; before it that is usual."""


def _log_retry(details: RetryDetails) -> None:
    shown_at = _WARN_AT if isinstance(details.caused_by, StoreBusy) else 1
    level = logging.WARNING if details.retry_num == shown_at else logging.INFO
    _log.log(
        level, "trying again in %.1f s (attempt %d): %s", details.wait_for, details.retry_num + 1, details.caused_by
    )


set_on_retry_hooks([_log_retry])  # stamina's own hooks print to stdout, which is for results


@dataclass(frozen=True)
class RetryLimits:
    """How long to retry. Waits double from the first to the longest, with jitter."""

    total_s: float = 120.0
    first_contact_s: float = 30.0
    """The same limit before the store has answered for the first time."""
    lasting_s: float = 1.5
    """The same for a cause that rarely goes away. With the last wait, a wrong endpoint is reported within 5 s."""
    first_wait_s: float = 0.2
    longest_wait_s: float = 15.0
    attempts: int | None = None


class RetryingStore(DelegatingStore):
    """Retries errors with `retry_helps`. Streams are not retried here: the client retries their parts."""

    def __init__(self, inner: Store, limits: RetryLimits | None = None) -> None:
        super().__init__(inner)
        self._limits = limits or RetryLimits()
        self._answered = False

    def around(self, wrap: Callable[[Store], Store]) -> "RetryingStore":
        """A store with the same retries, whose inner store is wrapped by `wrap`."""
        return RetryingStore(wrap(self.inner), self._limits)

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        in_doubt = False

        def attempt() -> None:
            nonlocal in_doubt
            if in_doubt and self._is_ours(name, data):
                return
            try:
                self.inner.put_new(name, data, metadata)
            except AlreadyExists:
                if not (in_doubt and self._is_ours(name, data)):
                    raise
            except LogkeepError as error:
                in_doubt = in_doubt or error.retry_helps
                raise

        self._retried(attempt)

    def replace(self, name: str, data: bytes, version: str) -> None:
        in_doubt = False

        def attempt() -> None:
            nonlocal in_doubt
            if in_doubt and self._is_replaced(name, data, version):
                return
            try:
                self.inner.replace(name, data, version)
            except VersionMismatch:
                if not (in_doubt and self._is_replaced(name, data, version)):
                    raise
            except LogkeepError as error:
                in_doubt = in_doubt or error.retry_helps
                raise

        self._retried(attempt)

    def copy_new(self, name: str, to: str) -> None:
        self._retried(lambda: self.inner.copy_new(name, to))

    def get(self, name: str, limit: int) -> bytes:
        return self._retried(lambda: self.inner.get(name, limit))

    def get_with_info(self, name: str, limit: int) -> tuple[bytes, ObjectInfo]:
        return self._retried(lambda: self.inner.get_with_info(name, limit))

    def get_range(self, name: str, start: int, length: int) -> bytes:
        return self._retried(lambda: self.inner.get_range(name, start, length))

    def head(self, name: str) -> ObjectInfo:
        return self._retried(lambda: self.inner.head(name))

    def list(self, prefix: str, after: str = "", foreign: list[str] | None = None) -> Iterator[ObjectInfo]:
        """After an error the listing continues after the last name that was yielded."""
        listing = _ResumedListing(self.inner, prefix, after)
        while (info := self._next(listing)) is not None:
            yield info
        if foreign is not None:
            foreign.extend(listing.foreign)

    def some(self, prefix: str, most: int) -> Sequence[ObjectInfo]:
        return self._retried(lambda: self.inner.some(prefix, most))

    def delete(self, name: str) -> None:
        """Delete with retries. Only for names that are used once: a repeated delete could remove a new object."""
        self._retried(lambda: self.inner.delete(name))

    def _next(self, listing: "_ResumedListing") -> ObjectInfo | None:
        try:
            found = listing.advance()  # without the overhead of a retry for each name
        except LogkeepError as error:
            if not error.retry_helps:
                raise
            return self._retried(listing.advance)
        self._answered = True
        return found

    def _is_ours(self, name: str, data: bytes) -> bool:
        """After a put without a reply: True if our bytes are there, False if nothing is, else AlreadyExists."""
        try:
            stored = self.inner.get(name, len(data))
        except ObjectMissing:
            return False
        except Damaged:  # larger than ours
            stored = None
        if stored != data:
            raise AlreadyExists("the name exists already", subject=name)
        return True

    def _is_replaced(self, name: str, data: bytes, version: str) -> bool:
        """After a replace without a reply: True if our bytes are there, False if the old version is."""
        if self.inner.head(name).version == version:
            return False
        try:
            stored = self.inner.get(name, len(data))
        except Damaged:
            stored = None
        if stored != data:
            raise VersionMismatch("the object changed since it was read", subject=name)
        return True

    def _retried(self, call: Callable[[], T]) -> T:
        limits = self._limits
        total_s = limits.total_s if self._answered else min(limits.total_s, limits.first_contact_s)
        caller = stamina.RetryingCaller(
            attempts=limits.attempts,
            timeout=total_s,
            wait_initial=limits.first_wait_s,
            wait_max=min(limits.longest_wait_s, total_s / 4),  # the last wait may exceed the time limit
            wait_jitter=limits.first_wait_s,
        )
        lasting_until = time.monotonic() + min(total_s, limits.lasting_s)

        def helps(error: Exception) -> bool:
            if not isinstance(error, LogkeepError) or not error.retry_helps:
                return False
            lasting = isinstance(error, StoreUnreachable) and error.lasting and not self._answered
            return not lasting or time.monotonic() < lasting_until

        return caller(helps, self._noting_answers, call)

    def _noting_answers(self, call: Callable[[], T]) -> T:
        try:
            result = call()
        except LogkeepError as error:
            self._answered = self._answered or not error.retry_helps
            raise
        self._answered = True
        return result


class _ResumedListing:
    """Yields a listing name by name; after an error the next step opens a new one after the last name."""

    def __init__(self, store: Store, prefix: str, after: str) -> None:
        self._store = store
        self._prefix = prefix
        self._last = after
        self._current: Iterator[ObjectInfo] | None = None
        self._met: list[str] = []
        self.foreign: list[str] = []

    def advance(self) -> ObjectInfo | None:
        if self._current is None:
            self._met = []
            self._current = self._store.list(self._prefix, self._last, self._met)
        try:
            info = next(self._current, None)
        except LogkeepError:
            self._current = None
            raise
        finally:
            self._remember_foreign()
        if info is not None:
            self._last = info.name
        return info

    def _remember_foreign(self) -> None:
        if not self._met:
            return
        known = set(self.foreign)
        self.foreign.extend(name for name in self._met if name not in known)
        self._met.clear()
