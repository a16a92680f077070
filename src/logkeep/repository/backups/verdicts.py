"""What stored verifications say about backups today. Pure: names in, verdicts out.

Damage that was found stays until a later verification of the same depth, or deeper, finds the backup whole: a look at
file sizes does not unsay a broken hash. The names alone tell all of it, so `list` needs one listing and no reads.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from logkeep.model.ids import BackupId
from logkeep.repository.chain.layout import VerificationName

LEVELS = ("files", "data", "records", "replay", "source", "boot")
"""From shallow to deep. A foundation knows the first two; kinds of sources add theirs."""

GOOD, DAMAGED = "good", "damaged"


@dataclass(frozen=True)
class BackupVerdict:
    """The last word on a backup."""

    damaged: bool
    level: str
    when: str


def verdicts(found: Iterable[VerificationName]) -> dict[BackupId, BackupVerdict]:
    """The verdict of every backup that was ever verified."""
    by_backup: dict[BackupId, list[VerificationName]] = {}
    for one in sorted(found, key=lambda v: (v.when, v.verdict == GOOD)):
        by_backup.setdefault(one.backup, []).append(one)
    return {backup: _verdict(history) for backup, history in by_backup.items()}


def _verdict(history: list[VerificationName]) -> BackupVerdict:
    """Walk a backup's verifications from old to new; those of an unknown level count as the deepest when bad."""
    standing = history[0]
    for one in history[1:]:
        if not _stands_against(standing, one):
            standing = one
    return BackupVerdict(standing.verdict != GOOD, standing.level, standing.when)


def _stands_against(standing: VerificationName, later: VerificationName) -> bool:
    """Whether earlier damage stands in spite of a later verification, which looked less deep and found nothing."""
    return standing.verdict != GOOD and later.verdict == GOOD and depth(later.level) < depth(standing.level)


def depth(level: str) -> int:
    """How deep a level looks; one we do not know counts as the deepest."""
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)
