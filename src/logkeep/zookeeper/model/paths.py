"""Paths of znodes as bytes: parsing, sort order, and which paths belong to the server itself. Pure."""

from typing import Final

from logkeep.errors import UsageError

SYSTEM: Final = b"/zookeeper"
CONFIG: Final = b"/zookeeper/config"


def parsed_path(text: str) -> bytes:
    """The path of a node as a user writes it; the root is ``b""``. Raises UsageError."""
    path = text.encode(errors="surrogateescape")
    names = path.split(b"/")
    plain = path.startswith(b"/") and not any(name in (b"", b".", b"..") for name in names[1:])
    if path == b"/":
        return b""
    if not plain or not is_text(path) or b"\0" in path:
        raise UsageError("this is not the path of a node", subject=text, remedy="write it as /a/b, like zkCli.sh")
    return path


def is_system(path: bytes) -> bool:
    return path == SYSTEM or path.startswith(SYSTEM + b"/")


def is_text(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True


def above(path: bytes) -> bytes:
    return path[: path.rindex(b"/")]


def in_order(path: bytes) -> bytes:
    """Sort key: parents first, children of one node together."""
    return path.replace(b"/", b"\0")
