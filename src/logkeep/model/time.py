"""Time and randomness as values that are handed in.

A `Clock` tells aware UTC time; a `TokenSource` gives 16 random hex digits. Deciding code never asks for either by
itself: the callers at the edge pass `utc_now` and `random_token`, tests pass their own.
"""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
TokenSource = Callable[[], str]


def utc_now() -> datetime:
    return datetime.now(UTC)


def random_token() -> str:
    """16 hex digits: enough that no two objects of one repository ever meet."""
    return secrets.token_hex(8)


def rfc3339(moment: datetime) -> str:
    """`2026-11-15T10:30:00.123Z`: always UTC, always with a zone, milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def within_reason(moment: datetime) -> datetime:
    """The time, if every zone on earth can show it. Raises ValueError: what is stored may say anything."""
    if not 1970 <= moment.year <= 9998:
        raise ValueError(f"the year {moment.year}")
    return moment
