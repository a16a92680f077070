"""Stored results of verifications.

A verification at the level `source` compares whole archived bytes with a live source. Older releases stored a
difference as damage of the object. It is none: the source may have been rolled back, and the archive may be the only
copy of what it had. Such results count as good at the level `records`, which is what they checked of the objects.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import ClassVar

import msgspec

from logkeep.errors import Damaged, ObjectMissing
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId, StoredId
from logkeep.model.segments import LogName
from logkeep.model.time import rfc3339
from logkeep.repository.backups.certificate import Certificate
from logkeep.repository.backups.verdicts import DAMAGED, GOOD, depth, proven_depth, verdicts
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import MIB, SourceDocument, read, seal
from logkeep.repository.chain.layout import VerificationName
from logkeep.repository.chain.lease import Head

SOURCE_DIFFERS = "source-differs"
KEYS_RETURN = "deleted-keys-return"
"""A restore would bring back keys that were deleted at the source; the objects are good."""
_ABOUT_THE_SOURCE = frozenset({SOURCE_DIFFERS, "record-missing", "record-differs"})
"""Codes of findings about the source alone; older releases wrote the last two, as damage."""
_INHERITED = "inherited"
MAX_STORED_FINDINGS = 1_000
MAX_STORED_NAMES = 20_000
MAX_STORED_DIGESTS = 30_000


class LogDigest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The digest of one log of a backup, as its kind of source defines it."""

    log: LogName
    start: int
    end: int
    records: int
    digest: str


class Verification(SourceDocument, frozen=True, kw_only=True, tag="verification"):
    limit: ClassVar[int] = 16 * MIB

    id: StoredId
    level: str
    verdict: str
    sample: str
    """The share of the objects that was read: `1/1` is all."""
    time: str
    head: Head
    """The end of the chain during this verification: a chain that ends before it has lost commits."""
    objects: int
    bytes: int
    findings: tuple[Finding, ...]
    damaged_objects: tuple[str, ...]
    """Object names: other backups that share them are damaged too."""
    digests: tuple[LogDigest, ...] = ()
    """The digest of every log that was decoded completely; later verifications compare with them."""
    certificate: Certificate | msgspec.UnsetType = msgspec.UNSET
    """The result of a verification at the level `cut`. Others are written without this field, so that older releases
    read them."""


def inherited_damage(
    place: SourceRef, backup_id: BackupId, damaged: dict[str, str], head: Head, now: datetime
) -> Verification:
    """The verdict on a new backup that needs damaged objects."""
    names = sorted(damaged)
    findings = [
        Finding(
            code=_INHERITED,
            severity=Severity.DAMAGE,
            where=name,
            what="found damaged by an earlier verification, and this backup needs it",
        )
        for name in names[:MAX_STORED_FINDINGS]
    ]
    return Verification(
        repository=place.repository,
        source=place.source,
        id=backup_id,
        level=max(damaged.values(), key=depth),
        verdict=DAMAGED,
        sample="1/1",
        time=rfc3339(now),
        head=head,
        objects=0,
        bytes=0,
        findings=tuple(findings),
        damaged_objects=tuple(names[:MAX_STORED_NAMES]),
    )


def put_verification(place: SourceRef, document: Verification, now: datetime, token: str) -> None:
    when = layout.verification_time(now)
    name = layout.verification(place.source, BackupId(document.id), when, document.level, document.verdict, token)
    place.store.put_new(name, seal(document))


def stored_verifications(place: SourceRef) -> list[tuple[VerificationName, str]]:
    """All stored verifications that count: parsed names and names.

    An earlier release reported objects as damaged that only differ from the source, and stored that for every backup
    that shares them. Such documents are ignored, and the results of other verifications count. Only documents that may
    be of this kind have to be read.
    """
    listed = place.store.list(layout.verifications(place.source))
    stored = [(p._replace(stored_at=info.modified), info.name) for info in listed if (p := layout.verified(info.name))]
    if not any(_may_blame_wrongly(parsed) for parsed, _ in stored):
        return stored
    blameless = set(_blameless(place, stored))
    return [(parsed, name) for parsed, name in stored if name not in blameless]


def _may_blame_wrongly(parsed: VerificationName) -> bool:
    return parsed.verdict == DAMAGED and parsed.level == "source"


def _blameless(place: SourceRef, stored: Sequence[tuple[VerificationName, str]]) -> Iterator[str]:
    """Names of verifications that found no damage, only differences from the source, also inherited ones."""
    inherited, differing = list[tuple[str, Verification]](), set[str]()
    for name in (name for parsed, name in stored if _may_blame_wrongly(parsed)):
        document = _readable(place, name)
        codes = {f.code for f in document.findings if f.severity is Severity.DAMAGE} if document else set()
        if document is None or len(document.findings) >= MAX_STORED_FINDINGS:
            continue  # what it does not list may be damage
        if codes == {_INHERITED}:
            inherited.append((name, document))
        elif codes and codes <= _ABOUT_THE_SOURCE:
            differing |= set(document.damaged_objects)
            yield name
    damaged = set(_blamed_otherwise(place, stored)) if inherited else set()
    for name, document in inherited:
        if set(document.damaged_objects) <= differing - damaged:
            yield name


def _blamed_otherwise(place: SourceRef, stored: Sequence[tuple[VerificationName, str]]) -> Iterator[str]:
    """Objects that a verification found damaged by themselves."""
    for parsed, name in stored:
        document = _readable(place, name) if parsed.verdict == DAMAGED else None
        for found in document.findings if document else ():
            if found.severity is Severity.DAMAGE and found.code not in {*_ABOUT_THE_SOURCE, _INHERITED}:
                yield found.where


def _readable(place: SourceRef, name: str) -> Verification | None:
    try:
        return read(place.store, name, Verification, place.repository)
    except (Damaged, ObjectMissing):
        return None


def stored_certificate(place: SourceRef, backup_id: BackupId) -> Certificate | None:
    """The newest certificate of a backup, with or without a broken rule; None if there is none that can be read."""
    stored = [(parsed, name) for parsed, name in stored_verifications(place) if parsed.backup == backup_id]
    for parsed, name in sorted(stored, key=lambda each: each[0].found_at, reverse=True):
        document = _readable(place, name) if parsed.level == "cut" else None
        if document is not None and document.certificate is not msgspec.UNSET:
            return document.certificate
    return None


def known_digests(
    place: SourceRef, backup_id: BackupId, changed: Mapping[LogName, int] | None = None
) -> dict[LogName, LogDigest]:
    """The digest of each log from the last good verification that decoded the whole backup.

    `changed`: by log, the generation from which on it has fewer records than before. Earlier digests do not count.
    """
    since = changed or {}
    stored = [(parsed, name) for parsed, name in stored_verifications(place) if parsed.backup == backup_id]
    for parsed, name in sorted(stored, key=lambda each: each[0].found_at, reverse=True):
        if parsed.verdict == GOOD and proven_depth(parsed.level) >= depth("records"):
            try:
                found = read(place.store, name, Verification, place.repository)
                return {d.log: d for d in found.digests if found.head.generation >= since.get(d.log, 0)}
            except (Damaged, ObjectMissing):
                continue  # an older one has the same digests
    return {}


def known_damaged(place: SourceRef, completed: Collection[int]) -> dict[str, str]:
    """Objects with damage that no later verification disproved, and the deepest level at which it was found.

    Only verifications of existing backups count: a deleted backup is never verified again.
    """
    stored = stored_verifications(place)
    found = verdicts(parsed for parsed, _ in stored)
    remaining = {bad for backup, verdict in found.items() if backup in completed for bad in verdict.damage}
    runs = defaultdict[tuple[int, str], list[str]](list)
    for parsed, name in stored:
        if parsed in remaining:
            runs[depth(parsed.level), parsed.when].append(name)
    damaged = dict[str, str]()
    for _, names in sorted(runs.items()):
        damaged |= _damaged_objects(place, names)
    return damaged


def _damaged_objects(place: SourceRef, copies: Sequence[str]) -> dict[str, str]:
    """What one verification found, and its level. It is stored for every backup that shares the damage.

    Without a readable copy the result is empty; the names of the documents still show the verdict on their backups.
    """
    document = next((found for name in copies if (found := _readable(place, name))), None)
    return dict.fromkeys(document.damaged_objects, document.level) if document else {}
