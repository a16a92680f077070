"""The current verdict on each backup, from the names of its stored verifications. Pure.

Damage stays until a verification at the same level or a deeper one finds the backup good: checking file sizes does not
disprove a wrong hash. `records` is as deep as `source` for that: what a source has is no damage of the archive. The
names alone are enough, so `list` needs one listing and no reads.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from logkeep.model.ids import BackupId
from logkeep.repository.chain.layout import VerificationName

LEVELS = ("files", "data", "records", "replay", "source", "boot")
"""From shallow to deep. The repository implements the first two; kinds of sources add theirs."""

GOOD, DAMAGED = "good", "damaged"


@dataclass(frozen=True)
class BackupVerdict:
    """The current verdict on a backup."""

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
    """From the oldest verification to the newest; an unknown level counts as the deepest if bad."""
    valid = history[0]
    for later in history[1:]:
        shallower = depth(later.level) < depth("records" if valid.level == "source" else valid.level)
        if not (shallower and valid.verdict != GOOD and later.verdict == GOOD):
            valid = later
    return BackupVerdict(valid.verdict != GOOD, valid.level, valid.when)


def depth(level: str) -> int:
    """The rank of a level; an unknown one counts as the deepest."""
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)
