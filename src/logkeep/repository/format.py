"""The format object: what a repository is, which features a reader must know, what its store was seen to do.

It is written twice (`logkeep.json` and `logkeep.copy.json`), as everything else hangs on it; a reader that finds the
first damaged uses the second and says so. Creating is put-if-absent: two racing `init` make one repository.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from logkeep import __version__
from logkeep.errors import AlreadyExists, Damaged, FormatTooNew, ObjectMissing, RepositoryMissing, UsageError
from logkeep.model.time import TokenSource, rfc3339
from logkeep.repository import layout
from logkeep.repository.documents import Document, seal, unseal
from logkeep.store.base import Store

KNOWN_FEATURES: frozenset[str] = frozenset()
"""Features a format object may require. Version 1 itself needs none."""


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


def check_features(document: FormatDocument) -> None:
    """Refuse what a later release made necessary. Unknown optional features are none of our business."""
    unknown = sorted(set(document.required_features) - KNOWN_FEATURES)
    if unknown:
        raise FormatTooNew(
            f"the repository requires features that this release does not know: {', '.join(unknown)}",
            subject=layout.FORMAT,
        )
