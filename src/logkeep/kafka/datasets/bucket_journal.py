"""The journal of a dataset in a bucket as the lock of the run that owns it.

A living run renews it. Another run acquires it if its owner is dead as seen from the same host, or has not renewed it
for `TAKEN_OVER_AFTER_S` by the clock of the store; the first one then ends at its next step.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Final

import msgspec

from logkeep.errors import AlreadyExists, Damaged, LogkeepError, ObjectMissing, StoreBusy, VersionMismatch
from logkeep.kafka.datasets.target import DatasetTarget, writes_meanwhile
from logkeep.kafka.record.dataset_exchange import JOURNAL, ExchangeDocument, ExchangeState, read_journal
from logkeep.kafka.record.dataset_version import FOLDER
from logkeep.model.time import random_token
from logkeep.repository.chain.lease import Renewal
from logkeep.repository.chain.owner import Owner, is_dead, same_process, this_process
from logkeep.store.base import LONGEST_REQUEST_S, ObjectInfo, ObjectMetadata, ObjectWriter, Store
from logkeep.store.retrying import RetryingStore
from logkeep.store.wrapper import DelegatingStore, DelegatingWriter

CLOCK: Final = f"{FOLDER}/clock"
"""Written to learn the time of the store. It is not removed: a run may have no right to delete."""
_RENEWED_EVERY_S = 15.0
_CHECKED_S = 30.0
"""A run that renewed the journal no longer ago may take a step without asking the store."""
_MOST_RENEWALS = 5
_REQUESTS = 2
"""How many requests one attempt of a step makes: a copy asks for the size first."""
_MARGIN_S = 30.0
TAKEN_OVER_AFTER_S: Final = _CHECKED_S + _REQUESTS * LONGEST_REQUEST_S + _MARGIN_S
"""After this time, a step whose check passed right before the owner's last renewal became too old has no effect any
more. Each attempt is checked again, so retries add nothing. No clock can exclude an owner that is stopped between a
check and its request, and continues after this time."""


class HeldJournal:
    """The journal while this run owns it. Every change raises Locked if another run has acquired it."""

    def __init__(self, store: Store, document: ExchangeDocument, info: ObjectInfo | None) -> None:
        """Take it: from nothing, or from the version that was read."""
        self.store, self.document = store, document
        self._version = info.version if info is not None else None
        self._guard, self._lost = threading.Lock(), False
        self._renewed_s = 0.0
        self._put(document)

    def enter(self, state: ExchangeState, objects: int = 0) -> None:
        self.write(msgspec.structs.replace(self.document, state=state, objects=objects, renewals=0))

    def write(self, document: ExchangeDocument) -> None:
        with self._guard:
            self._put(document)

    def release(self) -> None:
        """The next run may acquire it at once."""
        self.write(msgspec.structs.replace(self.document, released=True))

    def renew(self) -> bool:
        """False once another run has it. A store that does not answer is asked again later."""
        with self._guard:
            try:
                self._renew()
            except LogkeepError:
                return not self._lost
            return True

    def check(self) -> None:
        """Check that this run still owns the journal: before each attempt of a step that cannot be undone. Raises
        Locked if it does not, and StoreBusy if renewals take too long."""
        with self._guard:
            for _ in range(_MOST_RENEWALS):
                if not self._lost and _since_boot_s() - self._renewed_s <= _CHECKED_S:
                    return
                self._renew()  # it may itself take longer than that
            raise StoreBusy(
                f"{_MOST_RENEWALS} renewals in a row took more than {_CHECKED_S:.0f} s each", subject=JOURNAL
            )

    def checked(self, target: DatasetTarget) -> DatasetTarget:
        """The same dataset for this process: each attempt of a change is checked."""
        return DatasetTarget(_with_checks(target.store, self.check))

    def owned(self) -> Store:
        """The same store for tasks of this run: each asks whether the run still has the journal. Picklable."""
        return _OwnedStore(self.store, self.document.owner)

    def _renew(self) -> None:
        self._put(msgspec.structs.replace(self.document, renewals=self.document.renewals + 1))

    def _put(self, document: ExchangeDocument) -> None:
        if self._lost:
            raise writes_meanwhile(JOURNAL)
        began_s, data = _since_boot_s(), document.encoded()
        try:
            try:
                self._swap(data)
            except VersionMismatch:
                self._catch_up()
                self._swap(data)
            found, info = self.store.get_with_info(JOURNAL, len(data))
        except (AlreadyExists, Damaged, ObjectMissing, VersionMismatch) as error:
            self._lost = True
            raise writes_meanwhile(JOURNAL) from error
        if found != data:
            self._lost = True
            raise writes_meanwhile(JOURNAL)
        self.document, self._version, self._renewed_s = document, info.version, began_s

    def _swap(self, data: bytes) -> None:
        if self._version is None:
            self.store.put_new(JOURNAL, data)
        else:
            self.store.replace(JOURNAL, data, self._version)

    def _catch_up(self) -> None:
        """An earlier change may have succeeded although no reply came."""
        found = read_journal(self.store)
        if found is None or found[0].owner != self.document.owner:
            raise VersionMismatch("another run has acquired the journal", subject=JOURNAL)
        self._version = found[1].version


@contextmanager
def renew_journal(journal: HeldJournal) -> Iterator[HeldJournal]:
    """Renew the journal in the background. At the end its state becomes `idle`; if the block fails, it is released."""
    try:
        with Renewal(journal.renew, _RENEWED_EVERY_S):
            yield journal
        journal.enter(ExchangeState.IDLE)
    except BaseException:
        with suppress(LogkeepError):
            journal.release()
        raise


def is_abandoned(store: Store, document: ExchangeDocument, info: ObjectInfo) -> bool:
    here = this_process(random_token())
    if document.released or is_dead(document.owner, here) or same_process(document.owner, here):
        return True
    with suppress(VersionMismatch):  # another run asks for the time at this moment
        DatasetTarget(store).put(CLOCK, here.run.encode())
    try:
        return store.head(CLOCK).modified - info.modified > timedelta(seconds=TAKEN_OVER_AFTER_S)
    except ObjectMissing:
        return False


class _CheckedStore(DelegatingStore):
    def __init__(self, inner: Store, check: Callable[[], None]) -> None:
        super().__init__(inner)
        self._check = check

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        self._check()
        self.inner.put_new(name, data, metadata)

    def replace(self, name: str, data: bytes, version: str) -> None:
        self._check()
        self.inner.replace(name, data, version)

    def copy_new(self, name: str, to: str) -> None:
        self._check()
        self.inner.copy_new(name, to)

    def delete(self, name: str) -> None:
        self._check()
        self.inner.delete(name)


class _OwnedStore(DelegatingStore):
    def __init__(self, inner: Store, owner: Owner) -> None:
        super().__init__(inner)
        self._owner = owner

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        self.check()
        self.inner.put_new(name, data, metadata)

    def replace(self, name: str, data: bytes, version: str) -> None:
        self.check()
        self.inner.replace(name, data, version)

    def delete(self, name: str) -> None:
        self.check()
        self.inner.delete(name)

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        return _OwnedWriter(self.inner.open_new(name, size_hint), self.check)

    def check(self) -> None:
        found = read_journal(self.inner)
        if found is None or found[0].owner != self._owner:
            raise writes_meanwhile(JOURNAL)


class _OwnedWriter(DelegatingWriter):
    def __init__(self, inner: ObjectWriter, check: Callable[[], None]) -> None:
        super().__init__(inner)
        self._check = check

    def close(self) -> int:
        self._check()
        return super().close()


def _with_checks(store: Store, check: Callable[[], None]) -> Store:
    """The store with a check before each attempt: the checks are put below the retries, so that retries are checked
    too."""
    if isinstance(store, RetryingStore):
        return store.around(lambda inner: _with_checks(inner, check))
    return _CheckedStore(store, check)


def _since_boot_s() -> float:
    """Seconds since the machine started, including the time for which it slept, where the system counts that."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)
