"""The result of verifying one backup."""

import msgspec

from logkeep.kinds import kind_of
from logkeep.model.findings import Finding
from logkeep.reports.backups import Health, health_of, health_word
from logkeep.repository.backups.certificate import Certificate
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.verify.run import Deeper, VerifyResult


class ZooKeeperVerified(msgspec.Struct, frozen=True, kw_only=True):
    restorable: bool
    """The end of the backup can be restored, as far as this level checks."""
    condition: str
    """`valid`; `partial`: its end can be restored, and something older is missing; or `damaged`."""
    quality: int
    """From 0 to 100, as `zkbackup` counts it."""
    end: str | None
    """The last zxid that can be restored."""
    reachable: tuple[str, ...]
    """Intervals in which every transaction can be restored."""
    labels: tuple[str, ...]
    """What weakens the proof of the end."""
    transactions: int
    """Number of replayed transactions."""
    digests_compared: int


class DeletedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that was deleted at the source, and that a restore of the backup would bring back."""

    log: str
    key_sha256: str
    offsets: tuple[int, ...]
    """Of its archived records."""
    key: str | None = None
    """In clear, with --show-keys; bytes that are no text are written as `\\xff`."""


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    id: int
    level: str
    """The level reached; lower than the requested one where logs could not be compared with their source."""
    asked_level: str
    sample: str
    verdict: str
    """`good` or `damaged`."""
    objects: int
    """Objects whose existence and size were checked."""
    objects_read: int
    """Objects of which every byte was read: none at the level `files`, some with a sample."""
    stored_bytes: int
    findings: tuple[Finding, ...]
    also_damaged: tuple[int, ...]
    """Other backups that need a damaged object."""
    stored: bool
    """Whether the result was stored in the repository, where `list` and `prune` read it."""
    zookeeper: ZooKeeperVerified | None = None
    """Of a backup of ZooKeeper, from the level `data` on."""
    health: Health = "unverified"
    """By all stored verifications: `damaged` also while deeper damage of an earlier one remains."""
    health_level: str | None = None
    """The level of the deepest good verification, or of the damage."""
    deleted_keys: tuple[DeletedKey, ...] = ()
    """At the level `source`: those that a restore would bring back, of the first 1,000 offsets of each log."""
    certificate: Certificate | None = None
    """At the level `cut`: what each rule gave."""
    certificate_verdict: str | None = None
    """The certificate in one sentence; it names every rule that is not checkable."""
    kind: str = ""
    """`kafka`, `zookeeper`, `application` or `zeebe`."""


def verify_report(place: SourceRef, asked_level: str, verified: VerifyResult, deeper: Deeper | None) -> VerifyReport:
    """`deeper` is the check that ran, if any."""
    document = verified.document
    verdict = health_of(place).get(document.id)
    return VerifyReport(
        source=place.source,
        id=document.id,
        level=document.level,
        asked_level=asked_level,
        sample=document.sample,
        verdict=document.verdict,
        objects=document.objects,
        objects_read=verified.read_objects,
        stored_bytes=document.bytes,
        findings=verified.findings,
        also_damaged=verified.also_damaged,
        stored=verified.stored,
        zookeeper=_zookeeper(deeper),
        health=health_word(verdict),
        health_level=verdict.level if verdict else None,
        deleted_keys=_deleted_keys(deeper) if asked_level == "source" else (),
        certificate=document.certificate or None,
        certificate_verdict=document.certificate.verdict if document.certificate else None,
        kind=kind_of(place).name,
    )


def _zookeeper(deeper: Deeper | None) -> ZooKeeperVerified | None:
    """None for other checks, and where the backup could not be read at all."""
    if deeper is None:
        return None
    from logkeep.zookeeper.repo.verify import DeepVerification, ended_at, intervals  # noqa: PLC0415 - loads numba

    if not isinstance(deeper, DeepVerification) or deeper.judged is None:
        return None
    judged = deeper.judged
    found = judged.verified
    return ZooKeeperVerified(
        restorable=judged.restorable,
        condition=judged.condition.value,
        quality=judged.score,
        end=ended_at(found),
        reachable=tuple(intervals(found)),
        labels=found.labels,
        transactions=found.transactions,
        digests_compared=found.digests_compared,
    )


def _deleted_keys(deeper: Deeper | None) -> tuple[DeletedKey, ...]:
    from logkeep.kafka.verify.source import SourceCheck  # noqa: PLC0415 - loads numba

    found = deeper.returning if isinstance(deeper, SourceCheck) else ()
    return tuple(
        DeletedKey(log=each.log, key_sha256=each.key_sha256, offsets=each.offsets, key=each.key) for each in found
    )
