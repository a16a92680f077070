"""The format object of a repository: its id, the features a reader must know, what the probe found of its store.

It is written twice (`logkeep.json` and `logkeep.copy.json`), because everything depends on it; a reader that finds the
first damaged uses the second and warns. Creating is put-if-absent: two racing `init` make one repository.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

import msgspec

from logkeep.errors import (
    AlreadyExists,
    CommitConflict,
    Damaged,
    FormatTooNew,
    ObjectMissing,
    RepositoryMissing,
    UsageError,
    VersionMismatch,
)
from logkeep.model.time import TokenSource, rfc3339
from logkeep.model.version import __version__
from logkeep.repository.chain import layout
from logkeep.repository.chain.documents import Document, seal, unseal
from logkeep.store.base import Store

ZSTD_FRAMES = "zstd-frames"
"""Some logs are stored as zstd frames: a reader that expects plain batches would report them as damaged."""
PACKED_RECORDS = "packed-records"
"""Some attachments are stored as zstd frames, and their manifests have version 2."""
DELETION_TIMES = "deletion-times"
"""Some cluster records keep when logs were read, and have version 3."""
BURIED_OFFSETS = "buried-offsets"
"""Some archived records are left out by later backups: a reader that does not know it would bring them back."""
TRIMMED_BACKUPS = "trimmed-backups"
"""Some backups begin later than their manifests say: a reader that does not know it would report them as damaged."""
FOLDED_LOGS = "folded-logs"
"""Some logs hold fewer records than their source had: a reader that does not know it would use lost restore points."""
GENERATIONS = "generations"
"""Some topics are copied anew beside their active copy: a reader that does not know it would collect the new one."""
KNOWN_FEATURES: frozenset[str] = frozenset(
    {ZSTD_FRAMES, PACKED_RECORDS, DELETION_TIMES, BURIED_OFFSETS, TRIMMED_BACKUPS, FOLDED_LOGS, GENERATIONS}
)
"""Features a format object may require. Version 1 itself needs none; one is added when it is first used."""
_TRIES = 10


class StoreFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the probe found when the repository was created."""

    put_new: bool
    replace: bool
    durable: bool
    clock_skew_s: float = 0.0


class FormatDocument(Document, frozen=True, kw_only=True, tag="format"):
    created: str
    creator: str
    required_features: tuple[str, ...] = ()
    optional_features: tuple[str, ...] = ()
    store: StoreFacts


class OpenedFormat(msgspec.Struct, frozen=True):
    """An opened format object, with warnings."""

    document: FormatDocument
    warnings: tuple[str, ...] = ()


def create(store: Store, facts: StoreFacts, now: datetime, tokens: TokenSource) -> FormatDocument:
    """Create a repository. Raises UsageError if there is one already."""
    document = FormatDocument(
        repository=tokens() + tokens(), created=rfc3339(now), creator=f"logkeep {__version__}", store=facts
    )
    try:
        store.put_new(layout.FORMAT, seal(document))
    except AlreadyExists as error:
        raise UsageError(
            "there is already a repository", subject=store.url, remedy="use it, or choose another prefix"
        ) from error
    store.put_new(layout.FORMAT_COPY, seal(document))
    return document


def open_format(store: Store) -> OpenedFormat:
    """Read the format object, or its copy when the first is damaged. Raises RepositoryMissing, FormatTooNew."""
    failures: dict[str, Damaged | ObjectMissing] = {}
    for name in (layout.FORMAT, layout.FORMAT_COPY):
        try:
            document = unseal(store.get(name, FormatDocument.limit), FormatDocument, name)
        except (Damaged, ObjectMissing) as error:
            failures[name] = error
            continue
        check_features(document)
        return OpenedFormat(document, tuple(f"{n}: {e.what}; run `logkeep repair`" for n, e in failures.items()))
    raise _open_error(store.url, failures)


def _open_error(url: str, failures: Mapping[str, Damaged | ObjectMissing]) -> Damaged | RepositoryMissing:
    damaged = [e for e in failures.values() if isinstance(e, Damaged)]
    return damaged[0] if damaged else RepositoryMissing("there is no repository", subject=url)


def check_features(document: FormatDocument, known: frozenset[str] = KNOWN_FEATURES) -> None:
    """Refuse required features that this release does not know. Unknown optional features are ignored."""
    unknown = sorted(set(document.required_features) - known)
    if unknown:
        raise FormatTooNew(
            f"the repository requires features that this release does not know: {', '.join(unknown)}",
            subject=layout.FORMAT,
        )


def require_feature(store: Store, feature: str) -> None:
    """Make a feature required, in both copies, before the first object that needs it is written.

    From then on a release that does not know it refuses the repository with a clear message. A copy that is damaged or
    missing is left to `repair`, which rebuilds it from the other one.
    """
    last: Damaged | ObjectMissing | None = None
    changed = 0
    for name in (layout.FORMAT, layout.FORMAT_COPY):
        try:
            _require_in(store, name, feature)
            changed += 1
        except (Damaged, ObjectMissing) as error:
            last = error
    if not changed and last is not None:
        raise last


def _require_in(store: Store, name: str, feature: str) -> None:
    for _ in range(_TRIES):
        data, info = store.get_with_info(name, FormatDocument.limit)
        document = unseal(data, FormatDocument, name)
        check_features(document)
        if feature in document.required_features:
            return
        features = tuple(sorted({*document.required_features, feature}))
        with suppress(VersionMismatch):  # another run was faster: read again
            store.replace(name, seal(msgspec.structs.replace(document, required_features=features)), info.version)
    raise CommitConflict("other runs keep changing the format object", subject=name)
