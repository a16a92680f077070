"""Whether the stored verdict of a backup stands against a new look at it, which was not as deep as the one before.

A look at names and sizes does not unsay a broken checksum: without this, a quick check would make a damaged backup a
valid one, and `prune` would then delete a good one in its stead.
"""

from pathlib import Path

from logkeep.cli.zkbackup.claims import claims
from logkeep.repository.verdicts import depth
from logkeep.zookeeper.judging import Judged, Standing
from logkeep.zookeeper.score import Condition
from logkeep.zookeeper.verify import Level


def standing(bundle: Path, new: Judged) -> Standing | None:
    """What an earlier verification found and the new one was too shallow to see; None where the new one counts."""
    try:
        stored = claims(bundle).validation
    except (OSError, ValueError):  # nobody can tell what it said, so there is nothing to keep
        return None
    level = stored.level if stored.level in set(Level) else Level.BOOT.value  # one that we know, so that it can be met
    if stored.condition is Condition.UNVERIFIED or depth(new.level) >= depth(level):
        return None
    if stored.condition is not Condition.DAMAGED and stored.quality_score >= new.score:
        return None
    return Standing(stored.condition, stored.quality_score, level)
