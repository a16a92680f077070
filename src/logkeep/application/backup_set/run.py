"""Takes the backups of a set: all members are previewed before the first one is captured.

An application is captured when each of its partitions has its checkpoint; its copies continue while the other members
are captured, so that little is between the cuts. After a member failed no further one is begun. Members that were
begun are followed to their ends: they are ordinary backups, whatever becomes of the set.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from logkeep.errors import OF_THE_VERB, Interrupted, LogkeepError

_FAILED = 20
"""What a verb that backs up ends with after an error of these kinds."""


class MemberCapture(Protocol):
    """One member of a set that is taken."""

    @property
    def source(self) -> str: ...

    def preview(self) -> int | None:
        """About how many bytes it would store, where that is known. Changes nothing. Raises what a capture refuses."""

    def capture(self) -> int:
        """Take the cut; the exit code that the member's own verb would end with. Raises LogkeepError."""

    def finish(self) -> int:
        """Wait until the backup is decided; the exit code. Raises LogkeepError."""


@dataclass(frozen=True)
class MemberEnd:
    """How the run of one member ended."""

    source: str
    code: int
    reason: str = ""
    """Why it failed."""


def preview_all(members: Sequence[MemberCapture]) -> dict[str, int | None]:
    """The bytes that each member would store. Raises what the first refused member raises, with its name."""
    sizes = dict[str, int | None]()
    for member in members:
        try:
            sizes[member.source] = member.preview()
        except Interrupted:
            raise
        except LogkeepError as error:
            error.what = f"member {member.source}: {error.what}"
            raise
    return sizes


def take_all(members: Sequence[MemberCapture]) -> list[MemberEnd]:
    """The ends of the members that were begun, in order of capture."""
    ends = list[MemberEnd]()
    for member in members:
        ends.append(_ended(member.source, member.capture))
        if ends[-1].reason:
            break
    return [
        end if end.reason else _ended(end.source, each.finish, end.code)
        for end, each in zip(ends, members, strict=False)
    ]


def _ended(source: str, step: Callable[[], int], earlier: int = 0) -> MemberEnd:
    try:
        return MemberEnd(source, max(step(), earlier))
    except Interrupted:
        raise
    except LogkeepError as error:
        code = _FAILED if type(error) in OF_THE_VERB else error.exit_code
        return MemberEnd(source, code, f"{error.subject}: {error.what}" if error.subject else error.what)
