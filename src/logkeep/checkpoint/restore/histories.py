"""Numbers of histories: every restore of an application gets its own, by a document that only one can put.

Two restores of one backup may both run and archive to one source. With the same number, the second would continue the
archived log of the first one. A number stays reserved, also if its restore fails or its backups are deleted.
"""

from typing import Annotated, Final

import msgspec

from logkeep.errors import AlreadyExists, StoreDenied, TargetUnsafe
from logkeep.model.ids import StoredId
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import SourceDocument, put_own, seal
from logkeep.repository.chain.owner import Owner, this_process

LARGEST: Final = 2**32 - 1
"""Stamps have 32 bits for it."""


class HistoryReservation(SourceDocument, frozen=True, kw_only=True, tag="application-history"):
    history: Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
    checkpoint: StoredId
    """What the restore restores."""
    owner: Owner
    reserved: str


def reserved_histories(place: SourceRef) -> list[int]:
    """By the names alone: a damaged document keeps its number. Numbers that no release writes are left out."""
    found = (layout.placed(info.name) for info in place.store.list(layout.histories(place.source)))
    return [one.number for one in found if one is not None and not one.token and 1 <= one.number <= LARGEST]


def reserve_history(place: SourceRef, checkpoint: int, known: int, clock: Clock, tokens: TokenSource) -> int:
    """Reserve the next number that is larger than `known` and than every reserved one.

    Raises StoreDenied if the repository cannot be written.
    """
    owner, history = this_process(tokens()), max([known, *reserved_histories(place)])
    while history < LARGEST:
        history += 1
        document = HistoryReservation(
            repository=place.repository,
            source=place.source,
            history=history,
            checkpoint=checkpoint,
            owner=owner,
            reserved=rfc3339(clock()),
        )
        try:
            put_own(place.store, layout.history(place.source, history), seal(document))
        except AlreadyExists:
            continue  # another restore was faster
        except StoreDenied as error:
            raise StoreDenied(
                f"the number of the new history cannot be reserved: {error.what}",
                subject=error.subject,
                remedy=f"let this command create objects below {layout.histories(place.source)}; --dry-run needs no "
                "permission to write",
            ) from error
        return history
    raise TargetUnsafe("all numbers of histories are used", subject=place.source)
