"""What lists should say of a backup after a new look at it, by that look and by what deeper ones have found.

A look at names and sizes does not unsay a broken checksum: without this, a quick check would make a damaged backup a
valid one, and `prune` would then delete a good one in its stead. So a verdict stands until a look as deep, or a repair,
takes its place. The worst that stands is what counts; a deeper one that is not as bad is kept beside it. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from logkeep.repository.backups.verdicts import depth
from logkeep.zookeeper.model.condition import Condition
from logkeep.zookeeper.verify.run import Level
from logkeep.zookeeper.verify.verdict import DeeperVerdict

DEEPER: Final = "deeper"
"""In a stored verdict: another one, of a deeper look that found less."""
_LEVELS: Final = frozenset(Level)


@dataclass(frozen=True)
class StoredVerdict:
    """`fields`: all that is stored of it."""

    level: str
    condition: Condition
    score: int
    fields: Mapping[str, Any]

    @property
    def standing(self) -> DeeperVerdict:
        return DeeperVerdict(self.condition, self.score, self.level)


def stored_verdicts(validation: object) -> tuple[StoredVerdict, ...]:
    """Of a document, as it is stored. What nobody can make sense of says nothing."""
    if not isinstance(validation, dict):
        return ()
    fields = {name: value for name, value in validation.items() if name != DEEPER}
    told = verdict_of(fields)
    return (*([told] if told is not None else []), *stored_verdicts(validation.get(DEEPER)))


def verdict_of(fields: Mapping[str, Any]) -> StoredVerdict | None:
    try:
        condition, score = Condition(str(fields.get("status"))), int(fields.get("quality_score", 0))
    except (ValueError, TypeError):
        return None
    if condition is Condition.UNVERIFIED:
        return None
    level = fields.get("level", Level.REPLAY.value)  # where it is not said: the one that `verify` has without a flag
    known = level if level in _LEVELS else Level.BOOT.value  # one that can be met
    return StoredVerdict(known, condition, score, fields)


def settled(stored: Iterable[StoredVerdict], new: StoredVerdict) -> tuple[StoredVerdict, StoredVerdict | None]:
    """Which verdict counts from now on, and which deeper one is kept beside it."""
    standing = [verdict for verdict in stored if depth(verdict.level) > depth(new.level)]
    counts = min([new, *standing], key=_badness)
    deeper = [verdict for verdict in standing if depth(verdict.level) > depth(counts.level)]
    return counts, min(deeper, key=_badness, default=None)


def _badness(verdict: StoredVerdict) -> tuple[bool, int, int]:
    """Of two that are as bad the deeper one counts."""
    return verdict.condition is not Condition.DAMAGED, verdict.score, -depth(verdict.level)
