"""Topics of a dataset in a bucket that are written anew: beside the old ones, and then exchanged under a journal.

The new topics are written to `.logkeep/rewrite/<run>/`, a dataset by itself, and read back. From the journal's
`exchanging` on, the old objects of a topic are deleted, indexes first and the newest records before older ones, and the
new ones are copied to their names in the opposite order. So another reader finds the beginning of the old records,
none, or the beginning of the new ones, never records of both; and an index of a partition only while all that it lists
is there. At the end the document of the new topics replaces what was noted of the old ones. What was copied stays until
all of that is done: a run that is killed is continued from the start of the exchange.

A living run renews the journal. Another run takes it over if its owner is dead, or has not renewed it for a minute by
the clock of the store; the first one then ends at its next step.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Protocol

import msgspec

from logkeep.errors import AlreadyExists, Damaged, Locked, LogkeepError, ObjectMissing, VersionMismatch
from logkeep.kafka.datasets.documents import DatasetDocument, put_document, read_document, with_topics
from logkeep.kafka.datasets.target import DatasetTarget, writes_meanwhile
from logkeep.kafka.datasets.values import ExportedLog
from logkeep.kafka.record.dataset_exchange import (
    JOURNAL,
    REWRITTEN,
    ExchangeDocument,
    ExchangeState,
    exchange_under_way,
    read_journal,
)
from logkeep.model.findings import Finding
from logkeep.model.time import random_token
from logkeep.repository.chain.lease import Renewal
from logkeep.repository.chain.owner import is_dead, same_process, this_process
from logkeep.store.base import ObjectInfo, Store
from logkeep.store.below import StoreBelow

_log = logging.getLogger("logkeep.kafka")
_RENEWED_EVERY_S = 15.0
_UNRENEWED_AT_MOST = timedelta(seconds=60)
"""By the clock of the store: then a run counts as killed."""
_NOT_THERE = (
    f"bring the objects back from the bucket's versions; or remove {JOURNAL} and run --rewrite for the topic again"
)
_STALE_S = 45.0
"""A run that has not renewed for so long does so before its next step."""


class HeldJournal:
    """The journal while this run owns it. Every change raises Locked if another run has taken it over."""

    def __init__(self, store: Store, document: ExchangeDocument, info: ObjectInfo | None) -> None:
        """Take it: from nothing, or from the version that was read."""
        self.store, self.document = store, document
        self._version = info.version if info is not None else None
        self._guard, self._lost = threading.Lock(), False
        self._renewed_s = 0.0
        self._put(document)

    def enter(self, state: ExchangeState, objects: int = 0) -> None:
        with self._guard:
            self._put(msgspec.structs.replace(self.document, state=state, objects=objects, renewals=0))

    def release(self) -> None:
        """The next run may take it over at once."""
        with self._guard:
            self._put(msgspec.structs.replace(self.document, released=True))

    def renew(self) -> bool:
        """False once another run has it. A store that does not answer is asked again later."""
        with self._guard:
            try:
                self._put(msgspec.structs.replace(self.document, renewals=self.document.renewals + 1))
            except LogkeepError:
                return not self._lost
            return True

    def check(self) -> None:
        """Before a step that cannot be undone."""
        with self._guard:
            if self._lost or time.monotonic() - self._renewed_s > _STALE_S:
                self._put(msgspec.structs.replace(self.document, renewals=self.document.renewals + 1))

    def _put(self, document: ExchangeDocument) -> None:
        if self._lost:
            raise writes_meanwhile(JOURNAL)
        began_s, data = time.monotonic(), document.encoded()
        try:
            if self._version is None:
                self.store.put_new(JOURNAL, data)
            else:
                self.store.replace(JOURNAL, data, self._version)
            found, info = self.store.get_with_info(JOURNAL, len(data))
        except (AlreadyExists, Damaged, ObjectMissing, VersionMismatch) as error:
            self._lost = True
            raise writes_meanwhile(JOURNAL) from error
        if found != data:
            self._lost = True
            raise writes_meanwhile(JOURNAL)
        self.document, self._version, self._renewed_s = document, info.version, began_s


class ReadBackLog(Protocol):
    """What was read back of one partition."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def last(self) -> int:
        """The offset of its last record; -1 if it has none."""

    @property
    def findings(self) -> Sequence[Finding]: ...


ReadBack = Callable[[DatasetTarget], Iterable[ReadBackLog]]
"""Reads every record of a dataset."""


def exchanged_now(target: DatasetTarget) -> Locked | None:
    """Why the dataset cannot be read: topics are being exchanged, or were by a run that was killed."""
    found = read_journal(target.store)
    return exchange_under_way(found[0], target.url) if found and found[0].state is ExchangeState.EXCHANGING else None


def settle(target: DatasetTarget) -> None:
    """Continue or undo what a killed run left. Raises Locked if its owner is alive.

    A directory has no journal, unless a bucket was copied to it.
    """
    found = read_journal(target.store)
    if found is None or found[0].state is ExchangeState.IDLE:
        return
    document, info = found
    if not _abandoned(target.store, document, info):
        raise exchange_under_way(document, target.url)
    state = document.state if document.state is ExchangeState.EXCHANGING else ExchangeState.REMOVING
    own = this_process(random_token())
    taken = msgspec.structs.replace(document, state=state, owner=own, released=False, renewals=0)
    with _kept(HeldJournal(target.store, taken, info)) as journal:
        if state is ExchangeState.EXCHANGING:
            _exchange(target, journal)
            _log.warning("completed what an earlier run began: %s replaced (--rewrite)", ", ".join(document.topics))
        _remove(journal)


class BucketRewrite:
    """One run's new topics. Its journal is held."""

    def __init__(self, target: DatasetTarget, journal: HeldJournal, read_back: ReadBack) -> None:
        self._target, self._journal, self._read_back = target, journal, read_back
        self.beside = DatasetTarget(StoreBelow(target.store, journal.document.place))

    def finish(self, written: Sequence[ExportedLog], document: DatasetDocument, begun: DatasetDocument) -> None:
        """Read the new topics back, and note what was done for the other topics, before an old object is touched."""
        topics = self._journal.document.topics
        new = [each for each in written if each.topic in topics]
        if any(each.last >= 0 for each in new):
            _compare(new, self._read_back(self.beside), self.beside.url)
        put_document(self._target, with_topics(document, begun, topics), begun)
        put_document(self.beside, document)
        self._journal.enter(ExchangeState.EXCHANGING, sum(map(len, _new_objects(self._journal))))
        _exchange(self._target, self._journal)
        _remove(self._journal)


@contextmanager
def bucket_rewrite(
    target: DatasetTarget, topics: Sequence[str], prefixes: Sequence[str], read_back: ReadBack
) -> Iterator[BucketRewrite]:
    """A place beside the dataset; at the end it is exchanged, or what was written is removed."""
    run, found = random_token(), read_journal(target.store)
    begun = ExchangeDocument(
        state=ExchangeState.WRITING,
        run=run,
        owner=this_process(run),
        topics=tuple(topics),
        prefixes=tuple(prefixes),
    )
    if found is not None and found[0].state is not ExchangeState.IDLE:  # since this run settled it
        raise exchange_under_way(found[0], target.url)
    with _kept(HeldJournal(target.store, begun, found[1] if found else None)) as journal:
        yield BucketRewrite(target, journal, read_back)


@contextmanager
def _kept(journal: HeldJournal) -> Iterator[HeldJournal]:
    """Renewed in the background; released if this run cannot complete it."""
    try:
        with Renewal(journal.renew, _RENEWED_EVERY_S):
            yield journal
    except BaseException:
        with suppress(LogkeepError):
            journal.release()
        raise


def _abandoned(store: Store, document: ExchangeDocument, info: ObjectInfo) -> bool:
    here = this_process(random_token())
    if document.released or is_dead(document.owner, here) or same_process(document.owner, here):
        return True
    name = f"{REWRITTEN}clock-{here.run}"
    store.put_new(name, b"")
    try:
        return store.head(name).modified - info.modified > _UNRENEWED_AT_MOST
    finally:
        store.delete(name)


def _compare(written: Sequence[ExportedLog], found: Iterable[ReadBackLog], url: str) -> None:
    """Raises Damaged if the new topics are not what was written. A repeated attempt has not counted all records."""
    stored = {(each.topic, each.partition): each for each in found}
    for log in written:
        each = stored.get((log.topic, log.partition))
        records, last = (each.records, each.last) if each is not None else (0, -1)
        problem = f"{log.records} records up to offset {log.last} were written, and {records} up to {last} are there"
        if each is not None and each.findings:
            problem = each.findings[0].what
        elif records >= log.records and last == log.last:
            continue
        raise Damaged(f"{log.log}, written anew, was read back: {problem}", subject=url, remedy="run again")


def _exchange(target: DatasetTarget, journal: HeldJournal) -> None:
    store, place = target.store, journal.document.place
    document, found = read_document(DatasetTarget(StoreBelow(store, place))), _new_objects(journal)
    if document is None or sum(map(len, found)) != journal.document.objects:
        raise Damaged("what was written anew is not there", subject=f"{target.url}/{place}", remedy=_NOT_THERE)
    for prefix, new in zip(journal.document.prefixes, found, strict=True):
        for name in removal_order(info.name for info in store.list(prefix)):
            journal.check()
            store.delete(name)
        for name in reversed(removal_order(new)):
            journal.check()
            try:
                store.copy_new(f"{place}{name}", name)
            except ObjectMissing as error:  # the run that took it over has completed it
                raise writes_meanwhile(name) from error
        if {info.name: info.size for info in store.list(prefix)} != new:
            raise writes_meanwhile(prefix)
    journal.check()
    current = read_document(target)
    put_document(target, with_topics(current, document, journal.document.topics))


def _new_objects(journal: HeldJournal) -> list[dict[str, int]]:
    """Names and sizes of what was written anew, by topic."""
    beside = StoreBelow(journal.store, journal.document.place)
    return [{info.name: info.size for info in beside.list(prefix)} for prefix in journal.document.prefixes]


def removal_order(names: Iterable[str]) -> list[str]:
    """Indexes of partitions, indexes of segments, then the others, the newest of each first. Copies are made in the
    opposite order. Pure."""
    return sorted(sorted(names, reverse=True), key=_rank)


def _rank(name: str) -> int:
    leaf = name.rpartition("/")[2]
    return 0 if leaf.startswith("index_partition_") else 1 if leaf.endswith("_index") else 2


def _remove(journal: HeldJournal) -> None:
    """Everything below `.logkeep/rewrite/`: while this run has the journal no other one writes there."""
    journal.enter(ExchangeState.REMOVING)
    for info in list(journal.store.list(REWRITTEN)):
        journal.check()
        journal.store.delete(info.name)
    journal.enter(ExchangeState.IDLE)
