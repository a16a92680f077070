"""A child process that works as the owner of a directory, and what this process says to it.

As root, files in a directory of another user are changed and opened by such a child only. It is a clean start of the
interpreter and not a fork: a fork would share the memory of root, with its secrets, and could stop forever in a lock
that another thread held. It starts as root, so it can import the package from a private directory, and becomes the
owner before it gets the first request. Threads do not share a child. It ends with this process, in every case.

The owner can stop or kill the child, and might control it. So an answer is 8 bytes and at most one descriptor. Memory
that both share is only written here, and sealed: the child cannot make it shorter.
"""

import errno
import fcntl
import json
import mmap
import os
import pwd
import socket
import subprocess
import sys
import threading
import weakref
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from logkeep.directories.child import ANSWER, PIECE_BYTES, RECEIVE, REQUEST, SHARED_BYTES
from logkeep.directories.file_work import FileWork, OpenHandle
from logkeep.directories.path_walk import user_name
from logkeep.errors import OtherOwner

_PACKAGES: Final = str(Path(__file__).resolve().parents[2])
_START: Final = "import sys; sys.path.insert(0, sys.argv[1]); from logkeep.directories.child import main; main()"
_NO_GROUP: Final = 65534
_ENDED: Final = "the process that works as the owner of the directory has ended"


class Worker(Protocol):
    """What `FileWork` can do, wherever it runs."""

    @property
    def uid(self) -> int: ...
    def gives_group(self, gid: int) -> bool: ...
    def adopt(self, descriptor: int) -> int: ...
    def open_directory(self, at: int, name: str) -> OpenHandle: ...
    def open_file(self, at: int, name: str) -> OpenHandle: ...
    def make_directory(self, at: int, name: str) -> None: ...
    def create(self, at: int, name: str, *, direct: bool = False) -> int: ...
    def write(self, handle: int, data: bytes | memoryview) -> None: ...
    def finish(self, handle: int) -> None: ...
    def sync(self, at: int) -> None: ...
    def set_owner(self, handle: int, uid: int, gid: int, mode: int) -> None: ...
    def close(self, handle: int) -> None: ...
    def rename(self, at: int, name: str, to: int, new_name: str) -> None: ...
    def exchange(self, at: int, name: str, other: str) -> None: ...
    def remove(self, at: int, name: str) -> None: ...
    def remove_directory(self, at: int, name: str) -> None: ...
    def check_writable(self, at: int) -> None: ...


class OwnerIdentity(NamedTuple):
    """The ids that a child takes."""

    uid: int
    gid: int
    groups: tuple[int, ...]


class OwnerProcess:
    """A `Worker` in a child. Handles are the child's descriptors. Errors are OSError, without a text of the child."""

    def __init__(self, identity: OwnerIdentity) -> None:
        """Raises OtherOwner if the user id cannot be taken."""
        self.identity = identity
        self._pending = False
        self._unused: deque[int] = deque()
        self._next, memory = 0, _shared_memory()
        self._shared = mmap.mmap(memory, SHARED_BYTES)
        try:
            self._channel, process = _started(identity, memory)
        finally:
            os.close(memory)
        self.pid = process.pid
        weakref.finalize(self, _end, self._channel, process, os.getpid())
        try:
            self._collect()
        except OSError as error:
            raise _not_taken(identity, error) from error

    @property
    def uid(self) -> int:
        return self.identity.uid

    def gives_group(self, gid: int) -> bool:
        return gid in {self.identity.gid, *self.identity.groups}

    def adopt(self, descriptor: int) -> int:
        return self._call("adopt", descriptor=descriptor).handle

    def open_directory(self, at: int, name: str) -> OpenHandle:
        return self._opened("open_directory", at, name)

    def open_file(self, at: int, name: str) -> OpenHandle:
        """The child has closed it when this returns: a file that is open there would look used."""
        found = self._opened("open_file", at, name)
        try:
            self._call("close", found.handle)
        except OSError:
            os.close(found.descriptor)
            raise
        return found

    def make_directory(self, at: int, name: str) -> None:
        self._call("make_directory", at, _wire(name))

    def create(self, at: int, name: str, *, direct: bool = False) -> int:
        return self._call("create", at, _wire(name), int(direct)).handle

    def write(self, handle: int, data: bytes | memoryview) -> None:
        """The next piece is made while the child writes this one; the next call gets its error."""
        rest = memoryview(data).cast("B")
        while rest:
            piece, start = rest[:PIECE_BYTES], self._next
            self._shared[start : start + len(piece)] = piece
            self._collect()
            self._send("write", handle, start, start + len(piece))
            self._next, rest = PIECE_BYTES - start, rest[PIECE_BYTES:]

    def finish(self, handle: int) -> None:
        self._call("finish", handle)

    def sync(self, at: int) -> None:
        self._call("sync", at)

    def set_owner(self, handle: int, uid: int, gid: int, mode: int) -> None:
        self._call("set_owner", handle, uid, gid, mode)

    def close(self, handle: int) -> None:
        """At the next request: this is also called when an object is freed, which may be inside a request."""
        self._unused.append(handle)

    def rename(self, at: int, name: str, to: int, new_name: str) -> None:
        self._call("rename", at, _wire(name), to, _wire(new_name))

    def exchange(self, at: int, name: str, other: str) -> None:
        self._call("exchange", at, _wire(name), _wire(other))

    def remove(self, at: int, name: str) -> None:
        self._call("remove", at, _wire(name))

    def remove_directory(self, at: int, name: str) -> None:
        self._call("remove_directory", at, _wire(name))

    def check_writable(self, at: int) -> None:
        self._call("check_writable", at)

    def _opened(self, operation: str, at: int, name: str) -> OpenHandle:
        found = self._call(operation, at, _wire(name))
        if found.descriptor < 0:
            raise OSError(errno.EPROTO, "the process of the owner sent no descriptor")
        return found

    def _call(self, operation: str, *arguments: int | str, descriptor: int | None = None) -> OpenHandle:
        self._collect()
        while self._unused:
            self._send("close", self._unused.popleft())
            with suppress(OSError):  # of a file that is not needed any more
                self._collect()
        self._send(operation, *arguments, descriptor=descriptor)
        return self._collect()

    def _send(self, operation: str, *arguments: int | str, descriptor: int | None = None) -> None:
        request = json.dumps([operation, *arguments]).encode()
        size = REQUEST.pack(len(request))
        self._pending = True
        with _broken_channel():
            if descriptor is None:
                self._channel.sendall(size + request)
            else:
                socket.send_fds(self._channel, [size], [descriptor])
                self._channel.sendall(request)

    def _collect(self) -> OpenHandle:
        """The answer to the last request, if there is one. Raises OSError."""
        if not self._pending and self._started:
            return OpenHandle(0, -1)
        with _broken_channel():
            content, given, _, _ = socket.recv_fds(self._channel, ANSWER.size, 1, RECEIVE)
        self._pending, self._started = False, True
        code, handle = ANSWER.unpack(content) if len(content) == ANSWER.size else (errno.EPIPE, 0)
        for unwanted in given if code else given[1:]:
            os.close(unwanted)
        if code:
            raise OSError(code, os.strerror(code) if len(content) == ANSWER.size else _ENDED)
        return OpenHandle(handle, given[0] if given else -1)

    _started = False
    """The first answer says whether the child has become the owner; it has no request."""


def worker_for(status: os.stat_result) -> Worker:
    """The one who works in a directory. Raises OtherOwner. Root never works in another user's directory itself."""
    if os.geteuid() != 0 or status.st_uid == 0:
        return FileWork()
    key = os.getpid(), status.st_uid
    known: dict[tuple[int, int], OwnerProcess] = _children.__dict__.setdefault("known", {})
    if key not in known:
        known[key] = OwnerProcess(identity_of(status.st_uid, status.st_gid))
    return known[key]


_children = threading.local()


def identity_of(uid: int, directory_gid: int) -> OwnerIdentity:
    """Groups as a login gives them. A user without an account gets the group of the directory, but not root's."""
    try:
        account = pwd.getpwuid(uid)
    except KeyError:
        return OwnerIdentity(uid, directory_gid or _NO_GROUP, ())
    return OwnerIdentity(uid, account.pw_gid, tuple(os.getgrouplist(account.pw_name, account.pw_gid)))


def _wire(name: str) -> str:
    """Any bytes of a name as JSON can have them."""
    return os.fsencode(name).decode("latin-1")


def _shared_memory() -> int:
    """For the bytes of files. Its size is sealed: a write beyond a shortened end would end this process."""
    memory = os.memfd_create("logkeep", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(memory, SHARED_BYTES)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return memory


def _started(identity: OwnerIdentity, memory: int) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with theirs:
        ids = [identity.uid, identity.gid, ",".join(map(str, identity.groups))]
        words = [str(each) for each in (theirs.fileno(), memory, *ids)]
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", _START, _PACKAGES, *words],
            pass_fds=[theirs.fileno(), memory],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,  # Ctrl-C ends this process, which then cleans up with the child's help
        )
    return ours, process


def _end(channel: socket.socket, process: subprocess.Popen[bytes], creator: int) -> None:
    channel.close()
    if os.getpid() == creator:
        process.wait()


def _not_taken(identity: OwnerIdentity, error: OSError) -> OtherOwner:
    who = user_name(identity.uid)
    return OtherOwner(
        f"it belongs to {who}, and this process cannot become that user: {(error.strerror or str(error)).lower()}",
        remedy=f"run the same command with sudo -u '#{identity.uid}'; root needs CAP_SETUID and CAP_SETGID for it",
    )


class _broken_channel:  # noqa: N801 - reads as a statement
    """A child that has ended is an OSError with a text for people."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ConnectionError):
            raise OSError(errno.EPIPE, _ENDED) from error
