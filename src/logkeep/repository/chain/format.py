"""The format object: what a repository is, which features a reader must know, what its store was seen to do.

It is written twice (`logkeep.json` and `logkeep.copy.json`), as everything else hangs on it; a reader that finds the
first damaged uses the second and says so. Creating is put-if-absent: two racing `init` make one repository.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

import msgspec

from logkeep import __version__
from logkeep.errors import (
    AlreadyExists,
    Damaged,
    FormatTooNew,
    ObjectMissing,
    RepositoryMissing,
    StoreError,
    UsageError,
    VersionMismatch,
)
from logkeep.model.time import TokenSource, rfc3339
from logkeep.repository.chain import layout
from logkeep.repository.chain.documents import Document, seal, unseal
from logkeep.store.base import Store

ZSTD_FRAMES = "zstd-frames"
"""Some logs are stored as zstd frames: a reader that took their bytes for batches would call them damaged."""
KNOWN_FEATURES: frozenset[str] = frozenset({ZSTD_FRAMES})
"""Features a format object may require. Version 1 itself needs none; one is added when it is first used."""
_TRIES = 10


class StoreFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the probe saw when the repository was created."""

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


class Opened(msgspec.Struct, frozen=True):
    """An opened format object, and what was wrong on the way."""

    document: FormatDocument
    warnings: tuple[str, ...] = ()


def create(store: Store, facts: StoreFacts, now: datetime, tokens: TokenSource) -> FormatDocument:
    """Make a repository here. Raises UsageError when there is one already."""
    document = FormatDocument(
        repository=tokens() + tokens(), created=rfc3339(now), creator=f"logkeep {__version__}", store=facts
    )
    try:
        store.put_new(layout.FORMAT, seal(document))
    except AlreadyExists as error:
        raise UsageError(
            "there is a repository here already", subject=store.url, remedy="use it as it is, or choose another prefix"
        ) from error
    store.put_new(layout.FORMAT_COPY, seal(document))
    return document


def open_format(store: Store) -> Opened:
    """Read the format object, or its copy when the first is damaged. Raises RepositoryMissing, FormatTooNew."""
    failures: dict[str, Damaged | ObjectMissing] = {}
    for name in (layout.FORMAT, layout.FORMAT_COPY):
        try:
            document = unseal(store.get(name, FormatDocument.limit), FormatDocument, name)
        except (Damaged, ObjectMissing) as error:
            failures[name] = error
            continue
        check_features(document)
        return Opened(document, tuple(f"{n}: {e.what}; run `logkeep repair`" for n, e in failures.items()))
    raise _unopened(store.url, failures)


def _unopened(url: str, failures: Mapping[str, Damaged | ObjectMissing]) -> Damaged | RepositoryMissing:
    damaged = [e for e in failures.values() if isinstance(e, Damaged)]
    return damaged[0] if damaged else RepositoryMissing("there is no repository here", subject=url)


def check_features(document: FormatDocument, known: frozenset[str] = KNOWN_FEATURES) -> None:
    """Refuse what a later release made necessary. Unknown optional features are none of our business."""
    unknown = sorted(set(document.required_features) - known)
    if unknown:
        raise FormatTooNew(
            f"the repository requires features that this release does not know: {', '.join(unknown)}",
            subject=layout.FORMAT,
        )


def require_feature(store: Store, feature: str) -> None:
    """Make a feature required, in both copies, before the first object that needs it is written.

    From then on a release that does not know it refuses the whole repository with a clear message. A copy that is
    damaged or missing is left to `repair`, which makes it from the other one.
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
        with suppress(VersionMismatch):  # another source's backup was faster: look again
            store.replace(name, seal(msgspec.structs.replace(document, required_features=features)), info.version)
    raise StoreError("the format object changes all the time", subject=name)
