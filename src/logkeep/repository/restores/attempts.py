"""What each attempt at a restore leaves: which process took it up again, and under which producers it writes."""

from collections.abc import Mapping, Sequence

from logkeep.model.ids import RestoreId
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import Owner, this_process
from logkeep.repository.restores.documents import ProducerRow, ProducersDocument, RestorePlanDocument, ResumedDocument
from logkeep.repository.restores.numbered import last_number, put_next, put_numbered, read_all, read_newest


def put_producers(
    place: SourceRef,
    restore_id: RestoreId,
    topics: Mapping[str, str],
    producers: Sequence[ProducerRow],
    run: str,
    *,
    after: int,
) -> ProducersDocument:
    """Store producers and topic ids as the list that follows number `after`, before anything is sent.

    Returns the list with that number: another attempt may have been faster, and then it is that one's. So any number
    of attempts write under the same producers.
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
    """All lists of producers, oldest first; the last one counts. Raises Damaged, also when one is missing."""
    return read_all(place, restore_id, ProducersDocument)


def newest_producers(place: SourceRef, restore_id: RestoreId) -> ProducersDocument | None:
    return read_newest(place, restore_id, ProducersDocument)


def topic_ids(place: SourceRef, restore_id: RestoreId) -> dict[str, str]:
    """The last ids that were stored of the topics of a restore, also of those that are about to be made again."""
    found: dict[str, str] = {}
    for each in read_producers(place, restore_id):
        found |= {name: topic_id for name, topic_id in each.topics.items() if topic_id}
    return found


def note_resumed(place: SourceRef, restore_id: RestoreId, clock: Clock, tokens: TokenSource) -> Owner:
    """Say that this process goes on with a restore, so that others see who works on it. The first act of a resume."""
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

    return put_next(place, restore_id, make)[0].owner


def times_resumed(place: SourceRef, restore_id: RestoreId) -> int:
    """How often a restore was taken up again."""
    return last_number(place, restore_id, ResumedDocument)


def owner_of(place: SourceRef, plan: RestorePlanDocument) -> Owner:
    """The process that began a restore, or the last one that resumed it. Raises Damaged."""
    resumed = read_newest(place, RestoreId(plan.restore), ResumedDocument)
    return resumed.owner if resumed else plan.owner
