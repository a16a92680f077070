"""Which verifications of a backup count, from the names of their documents. Pure.

- Damage remains until a later verification of the same depth or a greater one finds the backup whole: checking file
  sizes does not disprove a wrong hash. `records` is as deep as `source` for that: what a source has is no damage of
  the archive.
- Without damage the deepest good verification counts, and of equally deep ones the latest: a weaker one never hides
  it. Those before the last damage do not count: what was damaged in between may have come back with other bytes.
- A sampled good verification is stored at the level `files`, which it checked completely. A level that this release
  does not know is the deepest one for damage, and proves no more than `files`.
- Verifications are ordered by the clocks of the machines that verified. If such a clock was ahead of the store's clock,
  the time of storing counts.

The listing alone is enough, so `list` reads no document.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from logkeep.model.ids import BackupId
from logkeep.repository.chain.layout import VerificationName

LEVELS = ("files", "data", "records", "replay", "source", "boot", "cut")
"""From shallow to deep. The repository implements the first two; kinds of sources add theirs."""

GOOD, DAMAGED = "good", "damaged"


@dataclass(frozen=True)
class BackupVerdict:
    """The current verdict on a backup."""

    counts: VerificationName
    """The deepest good verification; of a damaged backup the deepest one whose damage remains."""
    damage: tuple[VerificationName, ...] = ()
    """All verifications whose damage remains, oldest first."""

    @property
    def damaged(self) -> bool:
        return bool(self.damage)

    @property
    def level(self) -> str:
        return self.counts.level

    @property
    def when(self) -> str:
        return self.counts.when

    @property
    def time(self) -> datetime:
        return self.counts.time


def verdicts(found: Iterable[VerificationName]) -> dict[BackupId, BackupVerdict]:
    """The verdict of every backup that was ever verified."""
    by_backup: dict[BackupId, list[VerificationName]] = {}
    for one in found:
        by_backup.setdefault(one.backup, []).append(one)
    return {backup: verdict(history) for backup, history in by_backup.items()}


def verdict(history: Iterable[VerificationName]) -> BackupVerdict:
    """The verdict on one backup that was verified at least once; the order of `history` does not matter."""
    damage, best = list[VerificationName](), None
    for one in sorted(history, key=lambda each: (each.found_at, each.verdict != GOOD, each.level)):
        if one.verdict != GOOD:
            damage, best = [*damage, one], None
            continue
        damage = [bad for bad in damage if proven_depth(one.level) < _depth_to_disprove(bad.level)]
        if best is None or proven_depth(one.level) >= proven_depth(best.level):
            best = one
    if best is None or damage:
        return BackupVerdict(max(damage, key=lambda bad: (depth(bad.level), bad.found_at)), tuple(damage))
    return BackupVerdict(best)


def depth(level: str) -> int:
    """The rank of a level; an unknown one counts as the deepest."""
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)


def proven_depth(level: str) -> int:
    """The rank of the level of a good verification; an unknown one counts as the shallowest."""
    return LEVELS.index(level) if level in LEVELS else 0


def _depth_to_disprove(level: str) -> int:
    """How deep a good verification must be to disprove damage that was found at this level."""
    return depth("records" if level == "source" else level)
