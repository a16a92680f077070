"""The stored result of a verification."""

from datetime import UTC, datetime
from typing import ClassVar

from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId, StoredId
from logkeep.repository import layout
from logkeep.repository.chain import Place
from logkeep.repository.documents import MIB, SourceDocument, read, seal
from logkeep.repository.layout import Verified
from logkeep.repository.lease import Head
from logkeep.repository.verdicts import DAMAGED

MAX_STORED_FINDINGS = 1_000
MAX_STORED_NAMES = 20_000


class Verification(SourceDocument, frozen=True, kw_only=True, tag="verification"):
    limit: ClassVar[int] = 16 * MIB

    id: StoredId
    level: str
    verdict: str
    sample: str
    """Which share of the objects was read: `1/1` is all."""
    time: str
    head: Head
    """The end of the chain as this verification saw it: an older head later means that commits were removed."""
    objects: int
    bytes: int
    findings: tuple[Finding, ...]
    damaged_objects: tuple[str, ...]
    """Object names, so that other backups that share them are known to be damaged too."""


def put_verification(place: Place, document: Verification, now: datetime, token: str) -> None:
    when = now.astimezone(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    name = layout.verification(place.source, BackupId(document.id), when, document.level, document.verdict, token)
    place.store.put_new(name, seal(document))


def stored_verifications(place: Place) -> list[tuple[Verified, str]]:
    """What the names of all stored verifications say, and the names."""
    names = (i.name for i in place.store.list(layout.verifications(place.source)))
    return [(said, name) for name in names if (said := layout.verified(name))]


def known_damaged(place: Place) -> set[str]:
    """Names of objects that verifications found damaged and no later one, as deep, found whole."""
    from_newest = sorted(stored_verifications(place), key=lambda v: v[0].when, reverse=True)
    return {
        damaged
        for said, name in from_newest
        if said.verdict == DAMAGED
        for damaged in read(place.store, name, Verification, place.repository).damaged_objects
    }
