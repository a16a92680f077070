"""Attempts of a restore: which process resumed it, and which producers it writes with."""

from collections.abc import Mapping, Sequence

from logkeep.model.ids import RestoreId
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import Owner, this_process
from logkeep.repository.restores.document_numbers import last_number, put_next, put_numbered, read_all, read_newest
from logkeep.repository.restores.documents import ProducerRow, ProducersDocument, RestorePlanDocument, ResumedDocument


def put_producers(
    place: SourceRef,
    restore_id: RestoreId,
    topics: Mapping[str, str],
    producers: Sequence[ProducerRow],
    run: str,
    *,
    after: int,
) -> ProducersDocument:
    """Store producers and topic ids as the list after number `after`, before anything is sent.

    Returns the list with that number, which may be of another attempt that was faster. So all attempts write with
    the same producers.
    """
    document = ProducersDocument(
        repository=place.repository,
        source=place.source,
        restore=restore_id,
        number=after + 1,
        run=run,
        topics=dict(topics),
        producers=tuple(producers),
    )
    return put_numbered(place, restore_id, document)


def read_producers(place: SourceRef, restore_id: RestoreId) -> list[ProducersDocument]:
    """All lists of producers, oldest first; the last one is valid. Raises Damaged, also if one is missing."""
    return read_all(place, restore_id, ProducersDocument)


def newest_producers(place: SourceRef, restore_id: RestoreId) -> ProducersDocument | None:
    return read_newest(place, restore_id, ProducersDocument)


def topic_ids(place: SourceRef, restore_id: RestoreId) -> dict[str, str]:
    """The last known id of each topic of a restore, also of topics that are about to be created again."""
    found: dict[str, str] = {}
    for each in read_producers(place, restore_id):
        found |= {name: topic_id for name, topic_id in each.topics.items() if topic_id}
    return found


def note_resumed(place: SourceRef, restore_id: RestoreId, clock: Clock, tokens: TokenSource) -> ResumedDocument:
    """Store that this process resumes a restore, so that others see its owner. The first step of a resume."""
    owner, now = this_process(tokens()), clock()

    def make(number: int) -> ResumedDocument:
        return ResumedDocument(
            repository=place.repository,
            source=place.source,
            restore=restore_id,
            number=number,
            owner=owner,
            resumed=rfc3339(now),
        )

    return put_next(place, restore_id, make)[0]


def owners_of(place: SourceRef, plan: RestorePlanDocument) -> list[Owner]:
    """The processes that began and resumed a restore, in this order. Raises Damaged."""
    return [plan.owner, *(each.owner for each in read_all(place, RestoreId(plan.restore), ResumedDocument))]


def times_resumed(place: SourceRef, restore_id: RestoreId) -> int:
    """How often a restore was resumed."""
    return last_number(place, restore_id, ResumedDocument)


def owner_of(place: SourceRef, plan: RestorePlanDocument) -> Owner:
    """The process that began or last resumed a restore. Raises Damaged."""
    resumed = read_newest(place, RestoreId(plan.restore), ResumedDocument)
    return resumed.owner if resumed else plan.owner
