"""The store protocol: few operations, each docstring a promise that the conformance suite holds every store to.

Names are relative, `/`-separated, of characters `A-Za-z0-9._=-`, without empty, `.` or `..` parts; a store refuses
all others with `UnsafeName`, in both directions. No name may be a directory of another (`a` and `a/b`): a file system,
and some S3 servers, cannot keep both. Errors are those of `logkeep.errors`: never a library's own.
Stores are picklable: a task opens its own connection from the same address.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from logkeep.errors import UnsafeName

_PART = re.compile(r"[A-Za-z0-9._=-]{1,255}")
MAX_NAME = 900
"""S3 allows 1,024 bytes for the whole key; the rest is for the user's prefix."""


def safe_name(name: str) -> str:
    """Return the name if it cannot lead anywhere but below its root, else raise UnsafeName."""
    parts = name.split("/")
    if len(name) > MAX_NAME or not all(_PART.fullmatch(p) and p not in {".", ".."} for p in parts):
        raise UnsafeName("not a safe object name", subject=repr(name[:200]))
    return name


def safe_prefix(prefix: str) -> str:
    """A prefix is empty or a safe name that ends in `/`: whole directories, never parts of a name."""
    if prefix:
        if not prefix.endswith("/"):
            raise UnsafeName("a prefix must end with '/'", subject=repr(prefix[:200]))
        safe_name(prefix[:-1])
    return prefix


@dataclass(frozen=True)
class ObjectInfo:
    """What a store knows of an object without reading it."""

    name: str
    size: int
    modified: datetime
    """By the store's clock, aware. Garbage ages are measured with this, never with a client's clock."""
    version: str
    """Opaque; changes whenever the bytes change. Only `replace` understands it."""


@dataclass(frozen=True)
class Abilities:
    """What a kind of store claims; `store probe` checks the claims."""

    put_new: bool
    """Two racing `put_new` of one name: exactly one wins."""
    replace: bool
    """`replace` compares the version and writes in one step."""
    durable: bool
    """What was acknowledged survives the end of the process and a loss of power."""


class ObjectWriter(Protocol):
    """A stream into one new object."""

    def write(self, data: memoryview | bytes) -> None:
        """Append; the buffer may be reused as soon as the call returns."""

    def close(self) -> int:
        """Make the object visible and durable, whole; return its length. Before this no reader sees anything."""

    def abort(self) -> None:
        """Give up: nothing becomes visible. Harmless after close or a second time."""


class Store(Protocol):
    """One place for objects: a directory, a bucket and prefix, a dictionary."""

    @property
    def url(self) -> str:
        """Where this is, for people: never holds a secret."""

    @property
    def abilities(self) -> Abilities: ...

    def put_new(self, name: str, data: bytes) -> None:
        """Store a small object under a name that must not exist, durably. Readers see all of it or nothing.

        Raises AlreadyExists. After any other error the object may or may not be there: read it back.
        """

    def replace(self, name: str, data: bytes, version: str) -> None:
        """Put new bytes where `version` still stands, in one step. Raises VersionMismatch, or ObjectMissing."""

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        """Stream an object larger than memory under a name that nobody else will ever choose.

        Bounded memory whatever the size. The name is not guarded against a race: choose it at random.
        `size_hint` is the likely size in bytes (space is set aside for it where that is faster); 0 = unknown.
        After any error of `write` or `close` call `abort`; a failed `close` may still have made it visible.
        """

    def get(self, name: str, limit: int) -> bytes:
        """The whole object. Raises ObjectMissing, and Damaged when it is larger than `limit` bytes."""

    def get_with_info(self, name: str, limit: int) -> tuple[bytes, ObjectInfo]:
        """The whole object with the version that these very bytes have."""

    def get_range(self, name: str, start: int, length: int) -> bytes:
        """Exactly `length` bytes from `start`. Raises Damaged when the object ends before."""

    def head(self, name: str) -> ObjectInfo:
        """Raises ObjectMissing."""

    def list(self, prefix: str, after: str = "", foreign: list[str] | None = None) -> Iterator[ObjectInfo]:
        """Every object below `prefix` (recursively) whose name is greater than `after`, in order of name.

        What was acknowledged before the call is seen. Unfinished streams are not. A stray file must not stop
        everything: names that are not safe, and links, are left out and appended to `foreign` for who asks.
        """

    def delete(self, name: str) -> None:
        """Remove it. Removing what is not there is fine: sweeps are repeated.

        A power loss may bring a removed object back, so no decision may rest on an absence that `delete` made.
        """


@runtime_checkable
class Sweepable(Protocol):
    """A store in which killed writers leave something behind that no listing shows, and that can be swept.

    Directories are; buckets are not (their lifecycle rule sweeps). Find it below wrappers with `sweepable`.
    """

    def stale_partials(self, older_than: datetime) -> list[ObjectInfo]:
        """Unfinished streams untouched since then, whose writers are gone."""

    def sweep_partials(self, older_than: datetime) -> int:
        """Remove those; how many went. A writer that is alive keeps its stream however old it is."""

    def remove_empty(self, prefix: str) -> None:
        """Remove the empty directories below a prefix where nobody writes any more, and the prefix's own."""


def sweepable(store: object) -> Sweepable | None:
    """The outermost sweepable store among `store` and what it wraps, or None."""
    while store is not None and not isinstance(store, Sweepable):
        store = getattr(store, "inner", None)
    return store
