"""How the small segments of a topic become one object: the way of Kafka for `repository.optimize`."""

from collections.abc import Hashable
from datetime import timedelta

from logkeep.kafka.merge import merge_segments
from logkeep.model.segments import Collection, Segment
from logkeep.model.time import Clock, TokenSource
from logkeep.repository.chain import SourceRef
from logkeep.repository.optimize import MergeWay, Optimizing

_PROOF = "the same batches end to end; the SHA-256 of every input, and the CRC-32C of every batch, proven while reading"


def of_topics(row: Segment) -> Hashable | None:
    """All segments of a partition are of one kind."""
    return row.log if row.log.collection is Collection.TOPICS else None


WAY = MergeWay(merge_segments, lambda _place, _folded: of_topics, _PROOF)


def optimizing(
    place: SourceRef, clock: Clock, tokens: TokenSource, lease_ttl: timedelta = timedelta(minutes=5)
) -> Optimizing:
    return Optimizing(place, WAY, clock, tokens, lease_ttl)
