"""Ids of backups and restores, and names of sources.

Ids are positive integers that grow. The default is the UTC time as `YYYYMMDDHHMMSS`, or the last id plus one if that is
larger: readable, and still an integer that a coordinator can choose itself.
"""

import re
from datetime import UTC, datetime
from typing import Annotated, NewType

import msgspec

from logkeep.errors import UnknownBackup, UsageError

BackupId = NewType("BackupId", int)
RestoreId = NewType("RestoreId", int)
"""Restores have ids like backups, in a sequence of their own."""

_LARGEST = 10**18 - 1
"""Fits a signed 64-bit integer and 18 digits; names pad ids to 20."""

StoredId = Annotated[int, msgspec.Meta(ge=1, le=_LARGEST)]
"""The type of an id in a stored document."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def is_id(value: int) -> bool:
    return 1 <= value <= _LARGEST


def backup_id(value: int) -> BackupId:
    """Check the range of an id."""
    if not is_id(value):
        raise UsageError(f"backup id {value} is not between 1 and {_LARGEST}")
    return BackupId(value)


def next_id(now: datetime, last: int) -> BackupId:
    """The default id of a new backup after `last` (0 if there is none)."""
    return backup_id(max(int(now.astimezone(UTC).strftime("%Y%m%d%H%M%S")), last + 1))


def choose_id(text: str, known: list[BackupId]) -> BackupId:
    """The id that the user means: a number, a unique prefix, or `latest`. `known` is in order of commit."""
    if text == "latest":
        if not known:
            raise UnknownBackup(
                "there is no backup yet",
                remedy="take the first one: `logkeep kafka backup`, `logkeep zookeeper backup`, …",
            )
        return known[-1]
    if not text.isdecimal():
        raise UnknownBackup(f"{text!r} is not a backup id: use a number, a unique prefix, or 'latest'")
    exact = [i for i in known if i == int(text)]
    if exact:
        return exact[0]
    fits = [i for i in known if str(i).startswith(text)]
    if len(fits) == 1:
        return fits[0]
    if not fits:
        raise UnknownBackup(f"no backup has the id {text}")
    raise UnknownBackup(
        f"{text} fits {len(fits)} backups: {', '.join(map(str, fits[:5]))}{' …' if len(fits) > 5 else ''}"
    )


def source_name(text: str) -> str:
    """Check the name of a source: it is used in object names and metric labels."""
    if not _NAME.fullmatch(text):
        raise UsageError(
            f"{text!r} is not a source name",
            remedy="use 1 to 64 letters, digits, '.', '_' or '-', starting with a letter or digit",
        )
    return text
