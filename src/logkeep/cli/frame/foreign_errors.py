"""Errors of the operating system and of libraries as errors of ours. Both programs end with them, whatever was running.

Code that knows more, such as the object of a store, translates them itself. What is left here can still be caused by a
host, a server or a store, so it must not look like a fault of this program. Libraries are known by the names of their
exceptions: none is loaded.
"""

import errno
import os
import re

from logkeep.errors import (
    AuthenticationFailed,
    ClusterError,
    ClusterUnreachable,
    Damaged,
    HostFailed,
    LogkeepError,
    NotAuthorised,
    StoreDenied,
    StoreError,
    StoreFull,
    TlsFailed,
    UsageError,
)

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_OF_THE_HOST = {errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ENODEV, errno.ENXIO}
"""Errors of a file that say nothing about the path that a user named."""
_OURS = {errno.EBADF, errno.EINVAL, errno.EFAULT, errno.ENOTSOCK, errno.EDOM, errno.ERANGE}
"""A call that this program made wrongly."""
_NETWORK = {errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETRESET, errno.ENOTCONN}
_TRY_NETWORK = "check the network and the server, then run again"
_TRY_SPACE = "free space or raise the quota, then run again"
_LIBRARIES: tuple[tuple[str, type[LogkeepError]], ...] = (
    ("kazoo.exceptions.NoAuthError", NotAuthorised),
    ("kazoo.exceptions.AuthFailedError", AuthenticationFailed),
    ("kazoo.exceptions.ConnectionLoss", ClusterUnreachable),
    ("kazoo.exceptions.ConnectionClosedError", ClusterUnreachable),
    ("kazoo.exceptions.SessionExpiredError", ClusterUnreachable),
    ("kazoo.exceptions.ConnectionDropped", ClusterUnreachable),
    ("kazoo.handlers.threading.KazooTimeoutError", ClusterUnreachable),
    ("kazoo.", ClusterError),
    ("kafka.errors.", ClusterError),
    ("cimpl.KafkaException", ClusterError),
    ("confluent_kafka.", ClusterError),
    ("http.client.", ClusterUnreachable),
    ("urllib.error.", ClusterUnreachable),
    ("botocore.exceptions.", StoreError),
    ("boto3.exceptions.", StoreError),
    ("obstore.exceptions.", StoreError),
    ("py4j.", HostFailed),
    ("pyspark.errors.", HostFailed),
    ("subprocess.", HostFailed),
    ("builtins.MemoryError", HostFailed),
    ("sqlite3.", HostFailed),
)
"""The first match counts. fastavro, msgspec, pyarrow and yaml are not here: where data of a user is read, the reader
names the file and the place."""
_BUG_IN_A_WORKER = re.compile(
    r"^(Type|Key|Index|Attribute|Assertion|Value|NotImplemented|ZeroDivision|Name|UnboundLocal|Recursion)Error\b", re.M
)
"""In the traceback of a Python worker of Spark."""
_SQLITE = {"SQLITE_FULL": StoreFull, "SQLITE_READONLY": StoreDenied, "SQLITE_PERM": StoreDenied,
           "SQLITE_CORRUPT": Damaged, "SQLITE_NOTADB": Damaged}  # fmt: skip


def known_error(error: BaseException) -> LogkeepError | None:
    """Our error for one that a user, a server, a store or this host can cause; None for a fault of this program."""
    if isinstance(error, LogkeepError):
        return error
    if isinstance(error, OSError) and not _is_from(error, ("http.", "urllib.")):
        return _of_the_system(error)
    if isinstance(error, ImportError):
        return None if (error.name or "").startswith("logkeep") else _unloaded(error)
    if isinstance(error, RuntimeError) and str(error).startswith("can't start new thread"):
        return HostFailed("the operating system starts no more threads", remedy="raise the limit (`ulimit -u`)")
    if _is_from(error, ("pyspark.errors.exceptions.base.PythonException",)) and _BUG_IN_A_WORKER.search(str(error)):
        return None
    kind = next((kind for name, kind in _LIBRARIES if _is_from(error, (name,))), None)
    return _of_a_library(error, kind) if kind is not None else None


def _unloaded(error: ImportError) -> LogkeepError:
    remedy = "check free memory and `ulimit -v`, and that the installation is whole"
    return HostFailed(f"a library cannot be loaded: {error}", remedy=remedy)


def _is_from(error: BaseException, names: tuple[str, ...]) -> bool:
    """Whether its class, or one that this inherits from, has a name that begins so."""
    return any(f"{each.__module__}.{each.__qualname__}".startswith(names) for each in type(error).__mro__)


def _of_a_library(error: BaseException, kind: type[LogkeepError]) -> LogkeepError:
    own_text = getattr(error.args[0] if error.args else None, "str", None)  # of librdkafka's errors
    text = " ".join(str(own_text() if callable(own_text) else error).split())[:300]
    if isinstance(error, MemoryError):
        return HostFailed("the memory is used up", remedy="lower --parallel, or run it where there is more memory")
    name = str(getattr(error, "sqlite_errorname", ""))
    kind = next((found for prefix, found in _SQLITE.items() if name.startswith(prefix)), kind)
    remedy = _TRY_NETWORK if kind is ClusterUnreachable else None
    return kind(f"{type(error).__name__}: {text}" if text else type(error).__name__, remedy=remedy)


def _of_the_system(error: OSError) -> LogkeepError | None:
    """A file, a disk, a connection or a limit of the host."""
    subject = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) and error.filename else ""
    what = (error.strerror or str(error) or type(error).__name__).lower()
    if _is_from(error, ("ssl.SSL",)):
        return TlsFailed(what, subject=subject)
    if (
        isinstance(error, ConnectionError | TimeoutError)
        or _is_from(error, ("socket.gaierror",))
        or error.errno in _NETWORK
    ):
        return ClusterUnreachable(f"the connection failed: {what}", subject=subject, remedy=_TRY_NETWORK)
    if error.errno in _FULL:
        return StoreFull(what, subject=subject, remedy=_TRY_SPACE)
    if error.errno == errno.ENOENT and error.filename is None:  # of a relative path: `os.getcwd` names no file
        remedy = "change to another directory and run again"
        return UsageError("the working directory does not exist any more", remedy=remedy)
    if error.errno in _FORBIDDEN:
        return StoreDenied(what, subject=subject, remedy="check the owner and the permissions of this path")
    return _of_the_host(error, what, subject)


def _of_the_host(error: OSError, what: str, subject: str) -> LogkeepError | None:
    if subject and error.errno not in _OF_THE_HOST:
        return UsageError(what, subject=subject, remedy="check this path")
    if not subject and (error.errno is None or error.errno in _OURS):
        return None
    return HostFailed(what, subject=subject)
