"""A wrapper that retries requests where that is safe.

Reads, listings and deletes are simply repeated. A `put_new` or `replace` whose reply was lost may have succeeded: the
object is read back before it is repeated. Our bytes: it succeeded. Missing, or the old version: try again. Other bytes:
another writer was first. So writers that race for a name must put something of their own into the bytes, such as a
random run id: equal bytes count as one's own.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import stamina
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from logkeep.errors import AlreadyExists, Damaged, LogkeepError, ObjectMissing, VersionMismatch
from logkeep.store.base import ObjectInfo, Store
from logkeep.store.delegating import DelegatingStore

T = TypeVar("T")
_log = logging.getLogger("logkeep.store")
_WARN_AT = 4
"""This retry is logged as a warning, about three seconds after the first failure."""


def _log_retry(details: RetryDetails) -> None:
    level = logging.WARNING if details.retry_num == _WARN_AT else logging.INFO
    _log.log(
        level, "trying again in %.1f s (attempt %d): %s", details.wait_for, details.retry_num + 1, details.caused_by
    )


set_on_retry_hooks([_log_retry])  # stamina's own hooks print to stdout, which is for results


@dataclass(frozen=True)
class RetryLimits:
    """How long to retry. Waits double from the first to the longest, with jitter."""

    total_s: float = 120.0
    first_contact_s: float = 30.0
    """Before the store has answered at all: a wrong endpoint should be reported soon."""
    first_wait_s: float = 0.2
    longest_wait_s: float = 15.0
    attempts: int | None = None


class RetryingStore(DelegatingStore):
    """Retries errors with `retry_helps`. Streams are not retried here: the client retries their parts."""

    def __init__(self, inner: Store, patience: RetryLimits | None = None) -> None:
        super().__init__(inner)
        self._patience = patience or RetryLimits()
        self._answered = False

    def put_new(self, name: str, data: bytes) -> None:
        in_doubt = False

        def attempt() -> None:
            nonlocal in_doubt
            if in_doubt and self._is_ours(name, data):
                return
            try:
                self.inner.put_new(name, data)
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

    def delete(self, name: str) -> None:
        """Only for names that are used once: a repeated delete could remove a new object."""
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
        patience = self._patience
        total_s = patience.total_s if self._answered else min(patience.total_s, patience.first_contact_s)
        caller = stamina.RetryingCaller(
            attempts=patience.attempts,
            timeout=total_s,
            wait_initial=patience.first_wait_s,
            wait_max=min(patience.longest_wait_s, total_s / 4),  # the last wait may exceed the time limit
            wait_jitter=patience.first_wait_s,
        )
        return caller(_retry_helps, self._noting_answers, call)

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


def _retry_helps(error: Exception) -> bool:
    return isinstance(error, LogkeepError) and error.retry_helps
