"""Backups that processes of the source copy themselves, while no run holds the lease.

The request has a deadline. Each process leaves a receipt whose note names its partition and its outcome. Until the
deadline the backup is ongoing, unless a partition failed; readers derive that, a lease holder records it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeVar

import msgspec

from logkeep.errors import Damaged
from logkeep.model.ids import BackupId
from logkeep.model.plurals import plural
from logkeep.model.time import rfc3339
from logkeep.repository.backups.journal import BackupRequest, read_request
from logkeep.repository.chain.commits import SourceRef

DEADLINE: Final = "deadline"
COMPLETED: Final = "completed"
CLOCK_SKEW: Final = timedelta(seconds=30)
"""No run completes a backup after its deadline. A reader whose clock is ahead by less than this never says `failed` of
one that is completed in time."""


class UnitNote(msgspec.Struct, frozen=True):
    """The part of a receipt's note that readers of every kind understand."""

    partition: int
    outcome: str
    term: int = 0
    nonce: str = ""
    reason: str = ""


_NOTES = msgspec.json.Decoder(UnitNote)
"""Made on import: msgspec crashes the process if two threads make decoders of one type at the same moment."""


class UnitOutcome(Protocol):
    """What a receipt says of one leader's copy of one partition."""

    @property
    def partition(self) -> int: ...
    @property
    def term(self) -> int: ...
    @property
    def outcome(self) -> str: ...


OutcomeT = TypeVar("OutcomeT", bound=UnitOutcome)


def first_failure(copies: Iterable[OutcomeT]) -> OutcomeT | None:
    """The copy by which a backup has failed; None if none failed. Pure.

    One rule for those who decide and for readers: a failed copy counts, whatever other leaders of its partition store
    before or after it. Otherwise a reader could see `failed` and then `completed`.
    """
    failed = [copy for copy in copies if copy.outcome != COMPLETED]
    return min(failed, key=lambda copy: (copy.partition, -copy.term), default=None)


def is_detached(request: BackupRequest) -> bool:
    return DEADLINE in request.options


def detached_requests(place: SourceRef, opened: Iterable[BackupId]) -> list[BackupRequest]:
    """Readable ones among requests that the chain has not decided on, in their order."""
    found = []
    for backup_id in opened:
        try:
            request = read_request(place, backup_id)
        except Damaged:
            continue
        if request is not None and is_detached(request):
            found.append(request)
    return found


def deadline_of(request: BackupRequest) -> datetime | None:
    """The deadline of a request; None if it has none that can be read."""
    try:
        found = msgspec.convert(request.options.get(DEADLINE, ""), datetime, strict=False)
    except (msgspec.MsgspecError, ValueError):
        return None
    return found if found.tzinfo is not None and 1970 <= found.year <= 9998 else None


def unit_note(text: str) -> UnitNote | None:
    try:
        return _NOTES.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def derived_failure(request: BackupRequest, notes: Iterable[str], now: datetime) -> str | None:
    """Why a backup that is not decided cannot complete any more; None while it can."""
    known = [note for text in notes if (note := unit_note(text)) and note.nonce == request.options.get("nonce", "")]
    failed = first_failure(known)
    if failed is not None:
        return partition_failure(failed.partition, failed.reason)
    whole = {note.partition for note in known}
    deadline = deadline_of(request)
    if deadline is None:
        return "its deadline cannot be read"
    return late(deadline, whole, request.options.get("partitions", "")) if now > deadline + CLOCK_SKEW else None


def partition_failure(partition: int, reason: str) -> str:
    """How a failure names its partition, in the chain and in reports."""
    return f"partition {partition}: {reason}" if partition >= 0 else reason


def late(deadline: datetime, whole: set[int], partitions: str) -> str:
    """The reason of a backup whose deadline has passed."""
    count = int(partitions) if partitions.isdecimal() and len(partitions) < 7 else 0
    missing = [i for i in range(count) if i not in whole]
    if not missing:
        return f"it was not completed before its deadline, {rfc3339(deadline)}"
    others = f", nor have {plural(len(missing) - 1, 'other partition')}" if len(missing) > 1 else ""
    return partition_failure(missing[0], f"it has no copy at the deadline, {rfc3339(deadline)}{others}")
