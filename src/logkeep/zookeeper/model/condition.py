"""How good a backup is, as one number from 0 to 100 that people can watch, and one word. Pure."""

from enum import StrEnum
from typing import Final

PER_FILE: Final = 5
MOST_FOR_FILES: Final = 20
FOR_AN_OLD_HOLE: Final = 30


class Condition(StrEnum):
    """What a list says of a backup."""

    VALID = "valid"
    """Everything in it is as it was written."""
    PARTIAL = "partial"
    """Something is damaged, was repaired, or is missing from an older part; its end can be restored."""
    DAMAGED = "damaged"
    """Its end cannot be restored, or nobody can tell."""
    UNVERIFIED = "unverified"
    """It is complete, and no verification of it came to its end: it may be as good as any."""


def quality(*, restorable: bool, repaired_files: int = 0, old_hole: bool = False, damaged_files: int = 0) -> int:
    """`old_hole`: something is missing before the newest interval that can be restored. A file that is damaged counts
    as it will when it is repaired."""
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
