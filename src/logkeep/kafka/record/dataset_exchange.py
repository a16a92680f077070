"""The journal of a dataset in a bucket, `.logkeep/exchange.json`: which run writes the dataset, and what it exchanges.

    idle → writing → exchanging → removing → idle

Every change compares the version of the object, so it is never deleted: `idle` says that nothing is under way. Until
`exchanging` the dataset is the old one and whole, and a run that was killed is undone. From then on the new topics are
whole beside the old ones, and the exchange is continued. Readers refuse a dataset while it is `exchanging`.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from logkeep.errors import Damaged, Locked, ObjectMissing, StoreLocationMissing, UnsafeName
from logkeep.kafka.record.dataset_version import FOLDER, NEWEST, refuse_newer
from logkeep.repository.chain.owner import Owner
from logkeep.store.base import ObjectInfo, Store, safe_name, safe_prefix

JOURNAL: Final = f"{FOLDER}/exchange.json"
REWRITTEN: Final = f"{FOLDER}/rewrite/"
_LIMIT = 64 << 20
_TAKEN_OVER = "at once on the same host, several minutes later on another one"
_encoder = msgspec.json.Encoder(order="deterministic")


class ExchangeState(StrEnum):
    IDLE = "idle"
    WRITING = "writing"
    EXCHANGING = "exchanging"
    REMOVING = "removing"


class ExchangeDocument(msgspec.Struct, frozen=True, kw_only=True, tag="logkeep-exchange", omit_defaults=True):
    version: int = NEWEST
    state: ExchangeState
    run: str
    """The name of the run that began the exchange, and of the place below `.logkeep/rewrite/` of what it wrote."""
    owner: Owner
    """The process that writes, exchanges or removes now."""
    prefixes: tuple[str, ...]
    """The prefixes of the topics that are exchanged, such as `orders/`."""
    topics: tuple[str, ...]
    objects: int = 0
    """How many new objects there are, once all are written."""
    released: bool = False
    """Whether the owner ended without being able to complete it."""
    renewals: int = 0

    @property
    def place(self) -> str:
        return f"{REWRITTEN}{self.run}/"

    def encoded(self) -> bytes:
        return _encoder.encode(self)


def read_journal(store: Store) -> tuple[ExchangeDocument, ObjectInfo] | None:
    """The journal and its version in the store; None if there is none. Raises Damaged, FormatTooNew."""
    try:
        data, info = store.get_with_info(JOURNAL, _LIMIT)
    except (ObjectMissing, StoreLocationMissing):
        return None
    try:
        refuse_newer(data, JOURNAL)
        journal = msgspec.json.decode(data, type=ExchangeDocument)
        _check(journal)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, UnsafeName) as error:
        remedy = f"check the names below {REWRITTEN}; remove the document if no topic is being exchanged"
        raise Damaged(f"it is no journal of an exchange ({error})", subject=JOURNAL, remedy=remedy) from error
    return journal, info


def _check(journal: ExchangeDocument) -> None:
    """Raise UnsafeName for a prefix that is not one of a topic: what is below the prefixes will be deleted."""
    safe_name(journal.run)
    for prefix in journal.prefixes:
        if "/" in journal.run or not safe_prefix(prefix) or prefix.startswith(f"{FOLDER}/"):
            raise UnsafeName("this is not the prefix of a topic", subject=repr(prefix[:200]))


def refuse_exchanging(store: Store, objects: Sequence[ObjectInfo]) -> None:
    """Raises Locked for a dataset whose topics are being exchanged: old, new and no files follow each other there."""
    if not any(info.name == JOURNAL for info in objects):
        return
    found = read_journal(store)
    if found is not None and found[0].state is ExchangeState.EXCHANGING:
        raise exchange_under_way(found[0], store.url)


def exchange_under_way(journal: ExchangeDocument, url: str) -> Locked:
    topics = ", ".join(journal.topics)
    if journal.state is ExchangeState.EXCHANGING:
        return Locked(
            f"{topics}: new files replace the old ones (--rewrite) by {journal.owner}",
            subject=url,
            remedy=f"wait for it; if it was killed, `logkeep kafka dataset verify` completes it: {_TAKEN_OVER}",
        )
    what = f"writes {topics} anew (--rewrite)" if topics else "writes this dataset"
    return Locked(
        f"{journal.owner} {what}",
        subject=url,
        remedy=f"wait for it; if it was killed, the next run may write: {_TAKEN_OVER}",
    )
