"""Error codes in replies, and what they mean: retry, ask another broker, or raise. Pure.

A `Refusal` is one part of a request that the cluster refused while it did the others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from logkeep.errors import ClusterError, ClusterNotReady, ClusterTooOld, InvalidAnswer, NotAuthorised, TopicMissing
from logkeep.kafka.client.protocol import error_name

T = TypeVar("T")
OK: Final = 0
UNKNOWN_TOPIC: Final = 3
UNSUPPORTED_VERSION: Final = 35
SECURITY_DISABLED: Final = 54
INVALID_GROUP_ID: Final = 24
GROUP_ID_NOT_FOUND: Final = 69
TRANSACTIONAL_ID_NOT_FOUND: Final = 105
UNKNOWN_TOPIC_ID: Final = 100
TOPIC_EXISTS: Final = 36
UNSTABLE_OFFSET_COMMIT: Final = 88

LEADER_MOVED: Final = frozenset({UNKNOWN_TOPIC, 5, 6, 9, 13, 56, 74, 75, 78})
"""No leader, another one, or one that does not know it yet: read the metadata again and retry."""

COORDINATOR_MOVED: Final = frozenset({14, 15, 16})
"""The coordinator is loading or missing, or is another broker."""

BUSY: Final = frozenset({7, 41, 51, UNSTABLE_OFFSET_COMMIT, 89})
"""Timed out, not the controller, concurrent transactions, an undecided commit, quota: the same request, later."""

TRY_AGAIN: Final = LEADER_MOVED | COORDINATOR_MOVED | BUSY

_FORBIDDEN: Final = {
    29: "this user may not use the topic",
    30: "this user may not use the group",
    31: "this user may not ask the cluster for this",
    53: "this user may not use the transactional id",
}


def failure(code: int, *, subject: str, doing: str, message: str | None = None) -> ClusterError:
    """The error for a code that is not `OK`. `doing` is the API, `message` the text of the broker."""
    said = f": {message}" if message else ""
    if code in _FORBIDDEN:
        return NotAuthorised(f"{_FORBIDDEN[code]} ({doing}){said}", subject=subject)
    if code in {UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID}:
        return TopicMissing(f"no such topic or partition ({doing})", subject=subject)
    if code == UNSUPPORTED_VERSION:
        return ClusterTooOld(f"the broker does not support {doing}{said}", subject=subject)
    if code in TRY_AGAIN:
        return ClusterNotReady(f"{doing} still ends with {error_name(code)}{said}", subject=subject)
    return ClusterError(f"{doing} ended with {error_name(code)}{said}", subject=subject)


def check(code: int, *, subject: str, doing: str, message: str | None = None) -> None:
    """Raise `failure` unless the code is `OK`."""
    if code != OK:
        raise failure(code, subject=subject, doing=doing, message=message)


@dataclass(frozen=True)
class Refusal:
    """What was refused, the broker's code and its text."""

    subject: str
    doing: str
    code: int
    message: str

    def error(self) -> ClusterError:
        return failure(self.code, subject=self.subject, doing=self.doing, message=self.message)


def unfit_answer(doing: str, subject: str) -> InvalidAnswer:
    """The error for an answer about something else, or with more or fewer parts than the request."""
    return InvalidAnswer(f"the broker's answer to {doing} does not fit the request", subject=subject)


def the_only(found: Sequence[T], *, doing: str, subject: str) -> T:
    """The one part of an answer to a request about one thing. Raises InvalidAnswer."""
    if len(found) != 1:
        raise unfit_answer(doing, subject)
    return found[0]


def raise_first(refusals: Iterable[Refusal]) -> None:
    """Raise the error of the first refusal, if there is one."""
    for each in refusals:
        raise each.error()
