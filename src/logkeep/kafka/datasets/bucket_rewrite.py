"""Rewrites topics of a dataset in a bucket: first beside the old ones, and then exchanged with them under a journal.

The new topics are written to `.logkeep/rewrite/<run>/`, a dataset by itself, and read back. From the journal's
`exchanging` on, the old objects of a topic are deleted, indexes first and the newest records before older ones, and the
new ones are copied to their names in the opposite order. So another reader finds the beginning of the old records,
none, or the beginning of the new ones, never records of both; and an index of a partition only while all that it lists
is there. At the end the document of the new topics replaces what was noted of the old ones. What was copied stays until
all of that is done: a run that is killed is continued from the start of the exchange.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import msgspec

from logkeep.errors import Damaged, Locked, ObjectMissing, StoreDenied
from logkeep.kafka.datasets.bucket_journal import HeldJournal, is_abandoned, renew_journal
from logkeep.kafka.datasets.documents import put_document, read_document, with_topics
from logkeep.kafka.datasets.target import DatasetTarget, writes_meanwhile
from logkeep.kafka.datasets.values import ExportedLog
from logkeep.kafka.record.dataset_document import DatasetDocument
from logkeep.kafka.record.dataset_exchange import (
    JOURNAL,
    REWRITTEN,
    ExchangeDocument,
    ExchangeState,
    exchange_under_way,
    read_journal,
)
from logkeep.kafka.record.dataset_version import DOCUMENT
from logkeep.model.findings import Finding
from logkeep.model.time import random_token
from logkeep.repository.chain.owner import this_process
from logkeep.store.base import Store
from logkeep.store.below import StoreBelow

_log = logging.getLogger("logkeep.kafka")
_NOT_THERE = (
    f"bring the objects back from the bucket's versions; or remove {JOURNAL} and run --rewrite for the topic again"
)


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


@contextmanager
def hold_journal(target: DatasetTarget) -> Iterator[HeldJournal]:
    """Take the journal of a bucket; continue or undo what a killed run left. Raises Locked if its owner is alive."""
    run, found = random_token(), read_journal(target.store)
    own = ExchangeDocument(state=ExchangeState.WRITING, run=run, owner=this_process(run), topics=(), prefixes=())
    if found is None or found[0].state is ExchangeState.IDLE:
        with renew_journal(HeldJournal(target.store, own, found[1] if found else None)) as journal:
            yield journal
        return
    document, info = found
    if not is_abandoned(target.store, document, info):
        raise exchange_under_way(document, target.url)
    state = document.state if document.state is ExchangeState.EXCHANGING else ExchangeState.REMOVING
    taken = msgspec.structs.replace(document, state=state, owner=own.owner, released=False, renewals=0)
    with renew_journal(HeldJournal(target.store, taken, info)) as journal:
        checked = journal.checked(target)
        if state is ExchangeState.EXCHANGING:
            _exchange(checked, journal)
            _log.warning("completed what an earlier run began: %s replaced (--rewrite)", ", ".join(document.topics))
        _remove(checked, journal)
        journal.write(own)
        yield journal


class BucketRewrite:
    """One run's new topics, in a place beside the dataset; at the end they are exchanged with the old ones.

    `target` refuses changes once another run has the journal."""

    def __init__(
        self,
        target: DatasetTarget,
        journal: HeldJournal,
        topics: Sequence[str],
        prefixes: Sequence[str],
        read_back: ReadBack,
    ) -> None:
        self._target, self._journal, self._read_back = target, journal, read_back
        journal.write(msgspec.structs.replace(journal.document, topics=tuple(topics), prefixes=tuple(prefixes)))
        self.beside = DatasetTarget(StoreBelow(journal.owned(), journal.document.place))

    def finish(self, written: Sequence[ExportedLog], document: DatasetDocument, begun: DatasetDocument) -> None:
        """Read the new topics back, and note what was done for the other topics, before an old object is touched."""
        topics = self._journal.document.topics
        new = [each for each in written if each.topic in topics]
        if any(each.last >= 0 for each in new):
            _compare(new, self._read_back(self.beside), self.beside.url)
        put_document(self.beside, document)
        _try_rights(self._target.store, self._journal.document.place)
        put_document(self._target, with_topics(document, begun, topics), begun)
        self._journal.enter(ExchangeState.EXCHANGING, sum(map(len, _new_objects(self._journal))))
        _exchange(self._target, self._journal)
        _remove(self._target, self._journal)


def _compare(written: Sequence[ExportedLog], found: Iterable[ReadBackLog], url: str) -> None:
    """Raise Damaged if the new topics are not what was written. A log may have more records than were counted: an
    attempt that was repeated has not counted all of them."""
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


def _try_rights(store: Store, place: str) -> None:
    """Copy and delete one object, before an exchange that needs both rights. Raises StoreDenied."""
    store.copy_new(f"{place}{DOCUMENT}", f"{place}{DOCUMENT}.copy")
    store.delete(f"{place}{DOCUMENT}.copy")


def _exchange(target: DatasetTarget, journal: HeldJournal) -> None:
    store, place = target.store, journal.document.place
    document, found = read_document(DatasetTarget(StoreBelow(store, place))), _new_objects(journal)
    if document is None or sum(map(len, found)) != journal.document.objects:
        raise Damaged("the rewritten objects are missing", subject=f"{target.url}/{place}", remedy=_NOT_THERE)
    for prefix, new in zip(journal.document.prefixes, found, strict=True):
        for name in removal_order(info.name for info in store.list(prefix)):
            store.delete(name)
        for name in reversed(removal_order(new)):
            try:
                store.copy_new(f"{place}{name}", name)
            except ObjectMissing as error:  # the run that took it over has completed it
                raise writes_meanwhile(name) from error
        if {info.name: info.size for info in store.list(prefix)} != new:
            raise writes_meanwhile(prefix)
    current = read_document(target)
    put_document(target, with_topics(current, document, journal.document.topics))


def _new_objects(journal: HeldJournal) -> list[dict[str, int]]:
    """Names and sizes of the new objects of each topic."""
    beside = StoreBelow(journal.store, journal.document.place)
    return [{info.name: info.size for info in beside.list(prefix)} for prefix in journal.document.prefixes]


def removal_order(names: Iterable[str]) -> list[str]:
    """Indexes of partitions, indexes of segments, then the others, the newest of each first. Copies are made in the
    opposite order. Pure."""
    return sorted(sorted(names, reverse=True), key=_rank)


def _rank(name: str) -> int:
    leaf = name.rpartition("/")[2]
    return 0 if leaf.startswith("index_partition_") else 1 if leaf.endswith("_index") else 2


def _remove(target: DatasetTarget, journal: HeldJournal) -> None:
    """Remove everything below `.logkeep/rewrite/`: while this run has the journal no other one writes there.

    A run without the right to delete leaves this to another run: no later run uses these names.
    """
    journal.enter(ExchangeState.REMOVING)
    try:
        for info in list(target.store.list(REWRITTEN)):
            target.store.delete(info.name)
    except StoreDenied as error:
        _log.warning("the objects below %s stay: %s", REWRITTEN, error)
