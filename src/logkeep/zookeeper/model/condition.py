"""The condition of a backup: a score from 0 to 100, and one word. Pure."""

from enum import StrEnum
from typing import Final

PER_FILE: Final = 5
MOST_FOR_FILES: Final = 20
FOR_AN_OLD_HOLE: Final = 30


class Condition(StrEnum):
    """What a list of backups shows."""

    VALID = "valid"
    """Everything in it is as it was written."""
    PARTIAL = "partial"
    """Something is damaged, was repaired, or is missing from an older part; its end can be restored."""
    DAMAGED = "damaged"
    """Its end cannot be restored, or this is unknown."""
    UNVERIFIED = "unverified"
    """It is complete, and no verification of it has finished: it may well be valid."""


def quality(*, restorable: bool, repaired_files: int = 0, old_hole: bool = False, damaged_files: int = 0) -> int:
    """`old_hole`: something is missing before the newest interval that can be restored. A damaged file counts the same
    as a repaired one."""
    if not restorable:
        return 0
    files = min(PER_FILE * (repaired_files + damaged_files), MOST_FOR_FILES)
    return 100 - files - (FOR_AN_OLD_HOLE if old_hole else 0)


def condition(
    *, restorable: bool, repaired_files: int = 0, old_hole: bool = False, damaged_files: int = 0
) -> Condition:
    """The word for the same facts; a damaged file that no restore of the end needs makes a backup partial."""
    if not restorable:
        return Condition.DAMAGED
    return Condition.PARTIAL if repaired_files or old_hole or damaged_files else Condition.VALID
