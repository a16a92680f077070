"""The process that works in a directory as its owner: it gets requests and bytes on a socket, and never a secret.

It is started as root with a clean memory, imports what it needs, then becomes the owner for good: user, group,
supplementary groups, no new privileges, no core dumps. It ends when the other end of the socket is closed.

    request   head length, payload length (4 bytes each), head: JSON [operation, arguments…], payload; or a descriptor
    answer    errno or 0 (4 bytes), handle (4 bytes); a read descriptor for what was opened

An answer has no text: the parent, which is root, decodes nothing that the owner could have made.
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

REQUEST: Final = struct.Struct(">II")
ANSWER: Final = struct.Struct(">iI")
PIECE_BYTES: Final = 1 << 20
"""The largest payload."""
OPERATIONS: Final = (
    "open_directory", "open_file", "make_directory", "create", "write", "finish", "sync", "set_owner", "close",
    "rename", "exchange", "remove", "remove_directory", "check_writable",
)  # fmt: skip
_NO_NEW_PRIVILEGES: Final = 38


def main() -> None:
    """Arguments: the socket's descriptor, user id, group id, supplementary groups with commas."""
    channel = socket.socket(fileno=int(sys.argv[2]))
    uid, gid, groups = int(sys.argv[3]), int(sys.argv[4]), [int(text) for text in sys.argv[5].split(",") if text]
    try:
        _become(uid, gid, groups)
    except OSError as error:
        _answer(channel, error.errno or errno.EPERM)
        return
    _answer(channel, 0)
    _serve(channel, FileWork())


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


def _serve(channel: socket.socket, work: FileWork) -> None:
    buffer = memoryview(mmap.mmap(-1, PIECE_BYTES))
    while True:
        head, descriptors, _, _ = socket.recv_fds(
            channel, REQUEST.size, 1, socket.MSG_WAITALL | socket.MSG_CMSG_CLOEXEC
        )
        if len(head) < REQUEST.size:
            return
        head_size, size = REQUEST.unpack(head)
        request = json.loads(bytes(_received(channel, memoryview(bytearray(head_size)))))
        payload = _received(channel, buffer[:size])
        try:
            _done(channel, work, request, payload, descriptors)
        except OSError as error:
            _answer(channel, error.errno or errno.EIO)


def _done(channel: socket.socket, work: FileWork, request: list[Any], payload: memoryview, given: list[int]) -> None:
    operation, *arguments = request
    if operation == "adopt":
        _answer(channel, 0, given[0])
        return
    if operation not in OPERATIONS:
        raise OSError(errno.EINVAL, operation)
    arguments = [os.fsdecode(each.encode("latin-1")) if isinstance(each, str) else each for each in arguments]
    if operation == "write":
        arguments.append(payload)
    options = {"direct": bool(arguments.pop())} if operation == "create" else {}
    result = getattr(work, operation)(*arguments, **options)
    if isinstance(result, OpenHandle):
        _answer(channel, 0, result.handle, result.descriptor)
        if operation == "open_file":
            work.close(result.handle)  # only the parent reads it; a file that is open here would look used
    else:
        _answer(channel, 0, result or 0)


def _answer(channel: socket.socket, code: int, handle: int = 0, descriptor: int | None = None) -> None:
    content = ANSWER.pack(code, handle)
    if descriptor is None:
        channel.sendall(content)
    else:
        socket.send_fds(channel, [content], [descriptor])


def _received(channel: socket.socket, view: memoryview) -> memoryview:
    rest = view
    while rest:
        count = channel.recv_into(rest)
        if not count:
            raise SystemExit(0)
        rest = rest[count:]
    return view
