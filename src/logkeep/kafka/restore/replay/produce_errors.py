"""What a broker's answer to a batch means. Pure: an error code in, what to do out."""

from enum import StrEnum
from typing import Final

from logkeep.kafka.client.error_codes import OK
from logkeep.kafka.client.protocol import error_name
from logkeep.kafka.restore.facts.units import ReplayOutcome
from logkeep.kafka.restore.replay.resume_point import Trouble

_REFUSED: Final = frozenset({2, 10, 17, 18, 21, 32, 42, 43, 44, 47, 67, 76, 87})
"""Corrupt, too large, an invalid topic, too much at once, acks, a time, the request, the format, a policy, an epoch
that somebody raised, the codec, an invalid record: sending it again changes nothing."""

_DENIED: Final = frozenset({29, 31, 53})
_DISK_FAILED: Final = 56


class Next(StrEnum):
    GO_ON = "go-on"
    ASK_AGAIN = "ask-again"
    """Where the log ends and who leads it, then send what is missing: the same bytes."""
    DISK_FAILED = "disk-failed"
    """The same, for another replica may take over; if none does, this is the reason that people have to be told."""


def meaning(error: int, said: str) -> Next | Trouble:
    if error == OK:
        return Next.GO_ON
    told = f"{error_name(error)}{': ' + said if said else ''}"
    if error in _REFUSED:
        return Trouble(ReplayOutcome.REFUSED, f"the broker refuses a batch: {told}")
    if error in _DENIED:
        return Trouble(ReplayOutcome.DENIED, f"this user may not write there: {told}")
    return Next.DISK_FAILED if error == _DISK_FAILED else Next.ASK_AGAIN
