"""The store protocol: few operations. Each docstring is a promise that the conformance suite checks.

Names are relative, `/`-separated, of characters `A-Za-z0-9._=+-`, without empty, `.` or `..` parts; a store refuses
all others with `UnsafeName`, for reads and writes. No name may be a directory of another (`a` and `a/b`): a file
system, and some S3 servers, cannot store both. Errors are those of `logkeep.errors`, never a library's own. Stores are
picklable: a task opens its own connection from the same address.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from logkeep.errors import UnsafeName

_PART = re.compile(r"[A-Za-z0-9._=+-]{1,255}")
MAX_NAME = 900
"""S3 allows 1,024 bytes for the whole key; the rest is left for the user's prefix."""
LONGEST_REQUEST_S = 180
"""A store aborts a request that has no answer by then. Only `RetryingStore` repeats deletes and copies."""


def safe_name(name: str) -> str:
    """Return the name if it stays below its root, otherwise raise UnsafeName."""
    parts = name.split("/")
    if len(name) > MAX_NAME or not all(_PART.fullmatch(p) and p not in {".", ".."} for p in parts):
        raise UnsafeName("not a safe object name", subject=repr(name[:200]))
    return name


def safe_prefix(prefix: str) -> str:
    """Check a prefix: empty, or a safe name that ends in `/`."""
    if prefix:
        if not prefix.endswith("/"):
            raise UnsafeName("a prefix must end with '/'", subject=repr(prefix[:200]))
        safe_name(prefix[:-1])
    return prefix


ObjectMetadata = Mapping[str, str]
"""Names of lower-case letters and hyphens, short values in ASCII."""


@dataclass(frozen=True)
class ObjectInfo:
    """Metadata of an object."""

    name: str
    size: int
    modified: datetime
    """By the store's clock, with time zone. Ages of garbage are measured with it, never with a client's clock."""
    version: str
    """Opaque; changes whenever the bytes change. Only `replace` understands it."""


@dataclass(frozen=True)
class Abilities:
    """What a kind of store claims to support; `store probe` checks it."""

    put_new: bool
    """Two racing `put_new` of one name: exactly one wins."""
    replace: bool
    """`replace` compares the version and writes in one step."""
    durable: bool
    """What was acknowledged survives the end of the process and a power loss."""


class ObjectWriter(Protocol):
    """A stream into one new object."""

    def write(self, data: memoryview | bytes) -> None:
        """Append; the buffer may be reused as soon as the call returns."""

    def close(self) -> int:
        """Make the whole object visible and durable; return its length. Before this no reader sees anything."""

    def abort(self) -> None:
        """Discard: nothing becomes visible. Harmless after close or a second time."""


class Store(Protocol):
    """A directory, a bucket and prefix, or a dictionary."""

    @property
    def url(self) -> str:
        """The location, for display; never contains a secret."""

    @property
    def abilities(self) -> Abilities: ...

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        """Store a small object durably under a name that must not exist. Readers see all of it or nothing.

        `metadata` is for people and other tools: buckets keep it with the object, directories do not.
        Raises AlreadyExists. After any other error the object may or may not exist: read it back.
        """

    def replace(self, name: str, data: bytes, version: str) -> None:
        """Replace the bytes if the object still has this version, atomically. Raises VersionMismatch, ObjectMissing."""

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        """Stream an object larger than memory under a name that no other writer uses.

        Bounded memory whatever the size. The name is not protected against a race: choose it at random.
        `size_hint` is the likely size in bytes (space is preallocated where that is faster); 0 = unknown.
        After any error of `write` or `close` call `abort`; a failed `close` may still have made it visible.
        """

    def copy_new(self, name: str, to: str) -> None:
        """Copy an object, with its metadata, to a name that no other writer uses. The store copies it where it can.

        Readers see all of the copy or nothing. May be repeated after any error. Raises ObjectMissing.
        """

    def get(self, name: str, limit: int) -> bytes:
        """The whole object. Raises ObjectMissing, and Damaged if it is larger than `limit` bytes."""

    def get_with_info(self, name: str, limit: int) -> tuple[bytes, ObjectInfo]:
        """The whole object with the metadata of exactly these bytes."""

    def get_range(self, name: str, start: int, length: int) -> bytes:
        """Exactly `length` bytes from `start`. Raises Damaged if the object ends before."""

    def head(self, name: str) -> ObjectInfo:
        """The metadata of an object. Raises ObjectMissing."""

    def list(self, prefix: str, after: str = "", foreign: list[str] | None = None) -> Iterator[ObjectInfo]:
        """Every object below `prefix` (recursively) whose name is greater than `after`, in order of name.

        Includes everything acknowledged before the call, but no unfinished streams. Unsafe names and links are
        skipped and appended to `foreign`: a foreign file must not stop a listing.
        """

    def some(self, prefix: str, most: int) -> Sequence[ObjectInfo]:
        """At most `most` of the objects below `prefix`: any of them, in any order, by a listing that ends there."""

    def delete(self, name: str) -> None:
        """Remove it. Removing a missing object is no error.

        A removed object may reappear after a power loss, so no decision may depend on its absence.
        """


@runtime_checkable
class Sweepable(Protocol):
    """A store where killed writers leave unfinished streams that no listing shows and that can be removed.

    Directories are; buckets are not (a lifecycle rule does it). Find it inside wrappers with `sweepable`.
    """

    def stale_partials(self, older_than: datetime) -> list[ObjectInfo]:
        """Unfinished streams not modified since then, whose writers are gone."""

    def sweep_partials(self, older_than: datetime) -> int:
        """Remove them; returns how many. A stream whose writer is alive is kept, however old."""

    def remove_empty(self, prefix: str) -> None:
        """Remove the empty directories of a prefix that is no longer written to, and its own."""


def sweepable(store: object) -> Sweepable | None:
    """The outermost sweepable store among `store` and those it wraps, or None."""
    while store is not None and not isinstance(store, Sweepable):
        store = getattr(store, "inner", None)
    return store
