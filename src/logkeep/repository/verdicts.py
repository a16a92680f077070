"""What stored verifications say about backups today. Pure: names in, verdicts out.

Damage that was found stays until a later verification of the same depth, or deeper, finds the backup whole: a look at
file sizes does not unsay a broken hash. The names alone tell all of it, so `list` needs one listing and no reads.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from logkeep.model.ids import BackupId
from logkeep.repository.layout import Verified

LEVELS = ("files", "data", "records", "replay", "source", "boot")
"""From shallow to deep. A foundation knows the first two; kinds of sources add theirs."""

GOOD, DAMAGED = "good", "damaged"


@dataclass(frozen=True)
class Verdict:
    """The last word on a backup."""

    damaged: bool
    level: str
    when: str


def verdicts(found: Iterable[Verified]) -> dict[BackupId, Verdict]:
    """The verdict of every backup that was ever verified."""
    by_backup: dict[BackupId, list[Verified]] = {}
    for one in sorted(found, key=lambda v: (v.when, v.verdict == GOOD)):
        by_backup.setdefault(one.backup, []).append(one)
    return {backup: _verdict(history) for backup, history in by_backup.items()}


def _verdict(history: list[Verified]) -> Verdict:
    """Walk a backup's verifications from old to new; those of an unknown level count as the deepest when bad."""
    standing: Verified | None = None
    for one in history:
        if one.verdict != GOOD or standing is None or standing.verdict == GOOD or _depth(one.level) >= _depth(standing.level):
            standing = one
    last = standing or history[-1]
    return Verdict(last.verdict != GOOD, last.level, last.when)


def _depth(level: str) -> int:
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)
