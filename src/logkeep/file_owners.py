"""Who can change a file or a directory besides root and the current user.

Code that a file names, or that is in a directory, is run as us. Owner and mode are read from open descriptors; a
verdict about a path (`OriginFile`, `who_can_replace`) includes every directory and link on the way to it and is kept
with what was read, because the path may lead elsewhere a moment later.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from logkeep.errors import ConfigError

_MAX_LINKS = 40
_WAY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
"""To read owner and mode, without the right to read the content. Only Linux has O_PATH."""
_ACL = "system.posix_acl_access"


@dataclass(frozen=True)
class OriginFile:
    """The file that a value was read from, with the verdict of that moment."""

    path: Path
    changeable: str = ""
    """Why others can change the file; empty if only root and this user can."""


@dataclass(frozen=True)
class OwnerFacts:
    """Owner and mode of one open file or directory."""

    uid: int
    gid: int
    mode: int
    private_group: bool = False
    """The group consists of the owner alone. False where that is not known."""


def facts_of(descriptor: int) -> OwnerFacts:
    # By way of /proc: a descriptor that was opened for its path alone has no attributes.
    return _facts(os.fstat(descriptor), f"/proc/self/fd/{descriptor}")


def _facts(found: os.stat_result, where: str) -> OwnerFacts:
    group_writes = bool(found.st_mode & stat.S_IWGRP)
    private = group_writes and not _has_acl(where) and _is_private(found.st_uid, found.st_gid)
    return OwnerFacts(found.st_uid, found.st_gid, found.st_mode, private)


def who_can_change(facts: OwnerFacts, what: str, user: int, *, sticky_allowed: bool = False) -> str:
    """The reason why others than root and `user` can write to `what`; empty if they cannot. Pure.

    `sticky_allowed`: for a directory in which only the owner of an entry may replace it.
    """
    if facts.uid not in {0, user}:
        return f"{what} belongs to the user {facts.uid}"
    if sticky_allowed and facts.mode & stat.S_ISVTX:
        return ""
    return _writers(facts, what)


def who_can_write(facts: OwnerFacts, what: str) -> str:
    """The same for any owner: whether every user, or a group of several users, can write to it. Pure."""
    return "" if facts.mode & stat.S_ISVTX else _writers(facts, what)


def _writers(facts: OwnerFacts, what: str) -> str:
    mode = f"mode {stat.S_IMODE(facts.mode):04o}"
    if facts.mode & stat.S_IWOTH:
        return f"every user can write to {what} ({mode})"
    if facts.mode & stat.S_IWGRP and not facts.private_group:
        return f"the group {facts.gid} can write to {what} ({mode})"
    return ""


def origin_of(descriptor: int, path: Path) -> OriginFile:
    """The origin of what is read from `descriptor`, which was opened as `path`."""
    reason = who_can_change(facts_of(descriptor), "the file", os.geteuid())
    if not reason and stat.S_ISREG(os.fstat(descriptor).st_mode):
        try:
            with walked(path) as (found, reason_above):
                reason = reason_above or _same_file(found, descriptor)
        except OSError as error:
            reason = f"its path cannot be checked ({error.strerror})"
    return OriginFile(path.absolute(), reason)


def who_can_replace(path: Path) -> str:
    """The reason why others can change a directory, or put another one in its place. Raises OSError."""
    with walked(path) as (found, reason_above):
        return reason_above or who_can_change(facts_of(found), str(path), os.geteuid())


@contextmanager
def walked(path: Path) -> Iterator[tuple[int, str]]:
    """A descriptor of what `path` leads to, and the reason why others can let it lead elsewhere. Raises OSError.

    Every directory on the way is opened below the one before it, and links are resolved here, so the verdict is about
    the directories that were really passed. The descriptor is good for `fstat` and as `dir_fd`.
    """
    user, path = os.geteuid(), path.absolute()
    way = _Way(os.open("/", _WAY | os.O_DIRECTORY), list(reversed(path.parts[1:])), PurePosixPath("/"))
    try:
        while way.waiting:
            facts = _above(facts_of(way.here), way.here)
            way.reason = way.reason or who_can_change(facts, str(way.where), user, sticky_allowed=True)
            way.step(user)
        yield way.here, way.reason
    finally:
        os.close(way.here)


def _above(facts: OwnerFacts, descriptor: int) -> OwnerFacts:
    """On a read-only file system, as a volume with configuration has, modes let no one exchange an entry."""
    if os.fstatvfs(descriptor).f_flag & os.ST_RDONLY:
        return replace(facts, mode=facts.mode & ~(stat.S_IWGRP | stat.S_IWOTH))
    return facts


@dataclass
class _Way:
    here: int
    waiting: list[str]
    where: PurePosixPath
    reason: str = ""
    links: int = 0

    def step(self, user: int) -> None:
        part = self.waiting.pop()
        found = os.stat(part, dir_fd=self.here, follow_symlinks=False)
        if not stat.S_ISLNK(found.st_mode):
            self._enter(part, self.where / part)
            return
        self.links += 1
        if self.links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if found.st_uid not in {0, user}:
            self.reason = self.reason or f"the symbolic link {self.where / part} belongs to the user {found.st_uid}"
        target = PurePosixPath(os.readlink(part, dir_fd=self.here))
        self.waiting += reversed(target.parts[1:] if target.is_absolute() else target.parts)
        if target.is_absolute():
            self._enter("/", PurePosixPath("/"))

    def _enter(self, part: str, where: PurePosixPath) -> None:
        there = os.open(part, _WAY, dir_fd=self.here)
        os.close(self.here)
        self.here, self.where = there, where


def who_can_change_below(directory: Path) -> str:
    """The same for everything in a directory that was found safe itself; a link is a reason. Raises OSError."""
    user = os.geteuid()
    for parent, directories, files in os.walk(directory, onerror=_raise):
        for name in (*directories, *files):
            try:
                found = os.lstat(entry := os.path.join(parent, name))  # noqa: PTH118 - many files, and Path is slow
            except FileNotFoundError:  # a temporary file of another process
                continue
            if stat.S_ISLNK(found.st_mode):
                return f"{entry} is a symbolic link"
            if reason := who_can_change(_facts(found, entry), entry, user):
                return reason
    return ""


def private_directory(path: Path, *, remedy: str) -> Path:
    """Make a directory that only this user can change, or check the one that is there; others may read it.

    Raises ConfigError if others can change it, what it holds, or a directory above it, and OSError.
    """
    _make(path)
    if reason := who_can_replace(path) or who_can_change_below(path):
        raise ConfigError(f"others can change what it holds: {reason}", subject=str(path), remedy=remedy)
    return path


def _make(path: Path) -> None:
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def _same_file(found: int, read: int) -> str:
    if os.path.samestat(os.fstat(found), os.fstat(read)):
        return ""
    return "another file was put in its place while it was read"


def _has_acl(where: str) -> bool:
    """Whether more users than owner and group may have rights. True if that cannot be found out."""
    if not hasattr(os, "listxattr"):
        return False
    try:
        return _ACL in os.listxattr(where)
    except OSError as error:
        return error.errno != errno.ENOTSUP


def _is_private(uid: int, gid: int) -> bool:
    """Whether this is the group that a system makes for one user: it has the user's name, and no other member.

    Looks up these two names only: listing all accounts may take minutes. Other accounts often share root's group.
    """
    import grp  # noqa: PLC0415 - only for files that a group can write
    import pwd  # noqa: PLC0415

    try:
        owner, group = pwd.getpwuid(uid), grp.getgrgid(gid)
    except KeyError:
        return False
    its_own = owner.pw_gid == gid and group.gr_name == owner.pw_name
    return uid != 0 and its_own and set(group.gr_mem) <= {owner.pw_name}


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
