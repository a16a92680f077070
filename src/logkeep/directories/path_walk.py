"""Opens a directory by its path, once, and finds out which users can make that path lead elsewhere.

Each part is opened relative to the directory before it. A link is read and followed part by part in the same way. As
root, only root and the owner of the directory itself may have such power: another user could exchange a part for a link
to any directory, and root would work there.
"""

import errno
import os
import pwd
import shlex
import stat
from collections import deque
from collections.abc import Collection
from pathlib import Path
from typing import Final, NamedTuple

from logkeep.errors import OtherOwner
from logkeep.file_owners import OwnerFacts, facts_of, who_can_write

_PART: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MOST_LINKS: Final = 40
ANYONE: Final = -1


class WalkedDirectory(NamedTuple):
    descriptor: int
    path: Path
    """Without links."""
    deciders: frozenset[int]
    """The users who can make the path lead elsewhere; `ANYONE` for a directory that all, or a group, can write."""


def open_walked(path: Path) -> WalkedDirectory:
    """Raises OSError; OtherOwner if, for root, another user decides where the path leads."""
    walked = _walk(path)
    owner = os.fstat(walked.descriptor).st_uid
    others = other_deciders(walked.deciders, owner) if os.geteuid() == 0 else []
    if others:
        os.close(walked.descriptor)
        raise _redirectable(walked.path, owner, others)
    return walked


def other_deciders(deciders: Collection[int], owner: int) -> list[int]:
    """Those who decide and are neither root nor the owner. Pure."""
    return sorted(set(deciders) - {0, owner})


def _walk(path: Path) -> WalkedDirectory:
    todo, links = deque((Path.cwd() / path).parts[1:]), 0
    current, real, deciders = os.open("/", _PART), Path("/"), set[int]()
    try:
        while todo:
            part = todo.popleft()
            deciders |= _deciders(facts_of(current))
            below = os.open(part, _PART, dir_fd=current)
            status = os.fstat(below)
            if not stat.S_ISLNK(status.st_mode):
                os.close(current)
                current, real = below, real.parent if part == ".." else real / part
                continue
            target = os.readlink("", dir_fd=below)
            os.close(below)
            deciders.add(status.st_uid)
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))  # noqa: TRY301  it gets its path below
            todo.extendleft(reversed([each for each in target.split("/") if each not in ("", ".")]))
            if target.startswith("/"):
                os.close(current)
                current, real = os.open("/", _PART), Path("/")
        return WalkedDirectory(os.open(".", _DIRECTORY, dir_fd=current), real, frozenset(deciders))
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        os.close(current)


def _deciders(directory: OwnerFacts) -> set[int]:
    """Who can exchange an entry. In a sticky directory only its owner and the owner of the entry can."""
    return {directory.uid, ANYONE} if who_can_write(directory, "it") else {directory.uid}


def _redirectable(path: Path, owner: int, others: list[int]) -> OtherOwner:
    who = ", ".join("a group or every user" if uid == ANYONE else user_name(uid) for uid in others)
    return OtherOwner(
        f"{who} can make this path lead elsewhere, and the directory belongs to {user_name(owner)}",
        subject=str(path),
        remedy=f"run the same command with sudo -u '#{owner}'; or give the directories above "
        f"{shlex.quote(str(path))} to root or to that user, and make none of them writable for a group or for all",
    )


def user_name(uid: int) -> str:
    """For a message."""
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user id {uid}"
