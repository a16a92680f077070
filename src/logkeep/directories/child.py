"""The process that works in a directory as its owner: it gets requests and bytes, and never a secret.

It is started as root with a clean memory, imports what it needs, then becomes the owner for good: user, group,
supplementary groups, no new privileges, no core dumps. It ends when the other end of the socket is closed.

    request   length (4 bytes), JSON [operation, arguments…]; with `adopt` a descriptor
    answer    errno or 0 (4 bytes), handle (4 bytes); a read descriptor for what was opened

Requests and answers go through a socket. Bytes to write are in memory that both have: a request names a range of it.
An answer has no text: the parent, which is root, decodes nothing that the owner could have made, and does not read the
shared memory.
"""

import ctypes
import errno
import json
import mmap
import os
import resource
import socket
import struct
import sys
from typing import Any, Final

from logkeep.directories.file_work import FileWork, OpenHandle

REQUEST: Final = struct.Struct(">I")
ANSWER: Final = struct.Struct(">iI")
PIECE_BYTES: Final = 4 << 20
"""The most that one request writes."""
SHARED_BYTES: Final = 2 * PIECE_BYTES
"""While one half is written, the other one is filled."""
RECEIVE: Final = socket.MSG_WAITALL | socket.MSG_CMSG_CLOEXEC
OPERATIONS: Final = (
    "open_directory", "open_file", "make_directory", "create", "write", "finish", "sync", "set_owner", "close",
    "rename", "exchange", "remove", "remove_directory", "check_writable",
)  # fmt: skip
_NO_NEW_PRIVILEGES: Final = 38


def main() -> None:
    """Arguments: descriptors of socket and shared memory, user id, group id, supplementary groups with commas."""
    channel, memory = socket.socket(fileno=int(sys.argv[2])), int(sys.argv[3])
    uid, gid, groups = int(sys.argv[4]), int(sys.argv[5]), [int(text) for text in sys.argv[6].split(",") if text]
    shared = memoryview(mmap.mmap(memory, SHARED_BYTES))
    os.close(memory)
    try:
        _become(uid, gid, groups)
    except OSError as error:
        _answer(channel, error.errno or errno.EPERM)
        return
    _answer(channel, 0)
    _serve(channel, shared, FileWork())


def _become(uid: int, gid: int, groups: list[int]) -> None:
    """Raises OSError. There is no way back: real, effective and saved ids are the owner's."""
    os.chdir("/")
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if 0 in os.getresuid() or set(os.getresuid()) != {uid} or set(os.getresgid()) != {gid}:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def _serve(channel: socket.socket, shared: memoryview, work: FileWork) -> None:
    while True:
        size, descriptors, _, _ = socket.recv_fds(channel, REQUEST.size, 1, RECEIVE)
        if len(size) < REQUEST.size:
            return
        request = json.loads(_received(channel, REQUEST.unpack(size)[0]))
        try:
            _done(channel, work, request, shared, descriptors)
        except OSError as error:
            _answer(channel, error.errno or errno.EIO)


def _done(channel: socket.socket, work: FileWork, request: list[Any], shared: memoryview, given: list[int]) -> None:
    operation, *arguments = request
    if operation == "adopt":
        _answer(channel, 0, given[0])
        return
    if operation not in OPERATIONS:
        raise OSError(errno.EINVAL, operation)
    arguments = [os.fsdecode(each.encode("latin-1")) if isinstance(each, str) else each for each in arguments]
    if operation == "write":
        handle, start, end = arguments
        arguments = [handle, shared[start:end]]
    options = {"direct": bool(arguments.pop())} if operation == "create" else {}
    result = getattr(work, operation)(*arguments, **options)
    if isinstance(result, OpenHandle):
        _answer(channel, 0, result.handle, result.descriptor)
    else:
        _answer(channel, 0, result or 0)


def _answer(channel: socket.socket, code: int, handle: int = 0, descriptor: int | None = None) -> None:
    content = ANSWER.pack(code, handle)
    if descriptor is None:
        channel.sendall(content)
    else:
        socket.send_fds(channel, [content], [descriptor])


def _received(channel: socket.socket, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        piece = channel.recv(size - len(content))
        if not piece:
            raise SystemExit(0)
        content += piece
    return bytes(content)
