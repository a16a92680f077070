"""What of a backup's stored verdict a new look at it leaves standing.

A look at names and sizes does not unsay a broken checksum: without this, a quick check would make a damaged backup a
valid one, and `prune` would then delete a good one in its stead. Nor does it replace the word of a deeper one, unless
it found worse; what the deeper one had found must then still be unsaid by one as deep.
"""

from pathlib import Path

from logkeep.cli.zkbackup.claims import ClaimedValidation, claims
from logkeep.repository.verdicts import depth
from logkeep.zookeeper.judging import Judged, Standing
from logkeep.zookeeper.score import Condition
from logkeep.zookeeper.verify import Level


def stored_verdict(bundle: Path) -> ClaimedValidation | None:
    """None where there is none, or where nobody can tell what it said: there is nothing to keep."""
    try:
        stored = claims(bundle).validation
    except (OSError, ValueError):
        return None
    return None if stored.condition is Condition.UNVERIFIED else stored


def standing(stored: ClaimedValidation, new: Judged) -> Standing | None:
    """What an earlier verification found and the new one was too shallow to see; None where the new one saw as much."""
    level = _level(stored)
    if depth(new.level) >= depth(level):
        return None
    if stored.condition is not Condition.DAMAGED and stored.quality_score >= new.score:
        return None
    return Standing(stored.condition, stored.quality_score, level)


def replaces(stored: ClaimedValidation, new: Judged) -> bool:
    """Whether the new verdict is what lists should go by from now on."""
    return depth(new.level) >= depth(_level(stored)) or new.score < stored.quality_score


def unsaid_by(stored: ClaimedValidation | None, new: Judged) -> str:
    """The level that a verification must have that finds it whole, where that of the new verdict is not enough."""
    if stored is None or stored.condition is Condition.VALID or depth(_level(stored)) <= depth(new.level):
        return ""
    return _level(stored)


def _level(stored: ClaimedValidation) -> str:
    """One that we know, so that it can be met."""
    level = stored.unsaid_by or stored.level
    return level if level in set(Level) else Level.BOOT.value
