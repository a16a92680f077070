"""What a topic guarantees: how long, and how much of each partition, its brokers keep. Pure.

A topic with `delete` in its `cleanup.policy` guarantees records that are younger than `retention.ms` and among the last
`retention.bytes` of their partition. Any other topic guarantees all of them. What the cluster record does not have
counts as no limit: a salvage, and an older release, may not know what is set on the brokers.

A lower guarantee counts only some time after the first backup that saw it, so that a mistake in a config costs nothing
that was archived. What was before the first backup of a topic is not known, and counts as no limit too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from logkeep.kafka.retention.rules import NO_LIMIT

if TYPE_CHECKING:
    from logkeep.kafka.record.documents import ClusterRecord, TopicRecord

TopicId = tuple[str, str]
"""Name and id."""
_DEFAULT_MS = 7 * 86_400_000


@dataclass(frozen=True)
class Guarantee:
    time_ms: int = NO_LIMIT
    size_bytes: int = NO_LIMIT
    deletes: bool = True
    """False: `cleanup.policy` is without `delete`."""


@dataclass(frozen=True)
class SeenGuarantee:
    """What one backup recorded of a topic."""

    committed: datetime
    guarantee: Guarantee


@dataclass(frozen=True)
class GuaranteeInForce:
    """The largest guarantee that still counts, and why it is not that of the newest backup."""

    guarantee: Guarantee
    until: datetime | None = None
    """From then on a lower one counts, if nothing changes; None: it is that of the newest backup."""
    known_since: datetime | None = None
    """Since when backups know the topic, if that is too short a time."""


def guarantees_of(record: "ClusterRecord") -> dict[TopicId, Guarantee]:
    """The guarantee of each topic."""
    known = knows_brokers(record)
    return {(topic.name, topic.id): guarantee_of(topic, brokers_known=known) for topic in record.topics}


def knows_brokers(record: "ClusterRecord") -> bool:
    """Whether the record has what is set on the brokers: not that of a salvage, of an import or of an older release."""
    return any(log.deletions is not None for log in record.logs)


def guarantee_of(topic: "TopicRecord", *, brokers_known: bool) -> Guarantee:
    """`brokers_known`: the record has what is set on the brokers. Otherwise only the topic's own configs count."""
    configs = {**topic.inherited, **topic.configs}
    known = configs if brokers_known else topic.configs
    if "delete" not in configs.get("cleanup.policy", "delete").split(","):
        return Guarantee(deletes=False)
    if not brokers_known and "retention.ms" not in known:
        return Guarantee()
    return Guarantee(
        _limit(known, "retention.ms", _DEFAULT_MS),
        _limit(known, "retention.bytes", NO_LIMIT),
    )


def _limit(configs: Mapping[str, str], name: str, default: int) -> int:
    """A number of Kafka; -1, and what is no number, is no limit."""
    text = configs.get(name)
    if text is None:
        return default
    return min(int(text), NO_LIMIT) if text.isdecimal() else NO_LIMIT


def in_force(seen: Sequence[SeenGuarantee], now: datetime, grace: timedelta, last: int = 1) -> GuaranteeInForce:
    """The largest guarantee of the `last` backups and of all that were the newest one at some time within `grace`.

    `seen` is in order of backups, the oldest first.
    """
    since, newest = now - grace, seen[-1].guarantee
    if seen[0].committed > since:
        return GuaranteeInForce(Guarantee(deletes=newest.deletes), known_since=seen[0].committed)
    later = [*(each.committed for each in seen[1:]), now]
    counted = [*seen[-last:], *(each for each, next_at in zip(seen, later, strict=True) if next_at > since)]
    times = max(each.guarantee.time_ms for each in counted)
    sizes = max(each.guarantee.size_bytes for each in counted)
    joined = Guarantee(times, sizes, newest.deletes)
    if joined == newest:
        return GuaranteeInForce(joined)
    lowered = max(
        next_at
        for each, next_at in zip(seen, later, strict=True)
        if each.guarantee.time_ms > newest.time_ms or each.guarantee.size_bytes > newest.size_bytes
    )
    return GuaranteeInForce(joined, until=lowered + grace)
