"""Time and randomness as arguments.

A `Clock` returns the UTC time; a `TokenSource` returns 16 random hex digits. Deciding code never calls either itself:
callers pass `utc_now` and `random_token`, tests pass their own.
"""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta

Clock = Callable[[], datetime]
TokenSource = Callable[[], str]
Rfc3339 = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""A time in a report, as `rfc3339` writes it: the type of every such field, so that its schema says so."""


def utc_now() -> datetime:
    return datetime.now(UTC)


def random_token() -> str:
    """16 hex digits: unique among all objects of a repository."""
    return secrets.token_hex(8)


def rfc3339(moment: datetime) -> str:
    """`2026-11-15T10:30:00.123Z`: always UTC, always with a zone, milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def within_reason(moment: datetime) -> datetime:
    """Check a time from a document: it must be valid in every time zone. Raises ValueError."""
    if not 1970 <= moment.year <= 9998:
        raise ValueError(f"the year {moment.year}")
    return moment
