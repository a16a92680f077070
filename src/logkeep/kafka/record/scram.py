"""SCRAM credentials in a backup: only when asked for, only encrypted to somebody's key, never in clear anywhere.

They are read from the metadata log into memory, written as one small JSON document, and sealed at once. What is stored
is the sealed text with the count and the public keys, as an attachment that the manifest pins. No task, no Spark, no
file and no message ever holds them.
"""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from logkeep.errors import NotAuthorised, UsageError
from logkeep.formats.kafka.scram_records import ScramCredential, ScramFold
from logkeep.kafka.admin.security import scram_users
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.metadata_log import MetadataLog, controller_listeners, open_quorum
from logkeep.kafka.client.settings import ClientSettings
from logkeep.model.age_encryption import check_recipients, encrypted_to
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId, StoredId
from logkeep.repository.backups.attachments import put_attachment
from logkeep.repository.backups.manifest import AttachmentRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import MIB, SourceDocument

ROLE = "scram"
_NAMED = 5


@dataclass(frozen=True)
class ScramWish:
    """For whom, and how controllers are reached; without `controllers` the brokers are asked where they listen."""

    recipients: tuple[str, ...]
    controllers: ClientSettings | None = None

    def __post_init__(self) -> None:
        check_recipients(self.recipients)
        if not self.recipients:
            raise UsageError(
                "SCRAM credentials are archived only encrypted, and nobody is named who could open them",
                remedy="name a recipient with --scram-to age1…",
            )


@dataclass(frozen=True)
class SealedScram:
    """What may be stored."""

    recipients: tuple[str, ...]
    credentials: int
    age: str


class ScramDocument(SourceDocument, frozen=True, kw_only=True, tag="kafka-scram"):
    limit: ClassVar[int] = 64 * MIB

    id: StoredId
    recipients: tuple[str, ...]
    """Public keys; the holder of any of them can open it."""
    credentials: int
    age: str
    """The credentials as an armoured age file."""


def put_sealed(place: SourceRef, backup_id: BackupId, sealed: SealedScram, token: str) -> AttachmentRef:
    """Store what may be stored, for the manifest to pin."""
    document = ScramDocument(
        repository=place.repository,
        source=place.source,
        id=backup_id,
        recipients=sealed.recipients,
        credentials=sealed.credentials,
        age=sealed.age,
    )
    return put_attachment(place, backup_id, ROLE, document, token)


def probe(wish: ScramWish, settings: ClientSettings) -> None:
    """Whether the credentials could be read now. Raises the cluster's errors."""
    quorum = open_quorum(_controllers(wish, settings))
    with quorum.connection:
        MetadataLog(quorum).probe()


def collect(wish: ScramWish, settings: ClientSettings) -> SealedScram:
    """Read what is in force now and seal it. Raises the cluster's errors."""
    quorum, fold = open_quorum(_controllers(wish, settings)), ScramFold()
    with quorum.connection:
        for value in MetadataLog(quorum).values():
            fold.add(value)
    credentials = fold.credentials()
    return SealedScram(wish.recipients, len(credentials), encrypted_to(wish.recipients, plain_document(credentials)))


def plain_document(credentials: Iterable[ScramCredential]) -> bytes:
    """What a recipient finds. Binary values in base64, as Kafka's own tools print them."""
    rows = [
        {
            "user": c.user,
            "mechanism": c.mechanism,
            "iterations": c.iterations,
            "salt": _base64(c.salt),
            "stored_key": _base64(c.stored_key),
            "server_key": _base64(c.server_key),
        }
        for c in credentials
    ]
    return json.dumps({"version": 1, "credentials": rows}, indent=1).encode()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _controllers(wish: ScramWish, settings: ClientSettings) -> ClientSettings:
    """As the user named them; otherwise the same security as with brokers, and the addresses that these tell."""
    if wish.controllers is not None and wish.controllers.bootstrap:
        return wish.controllers
    with Cluster(settings) as cluster:
        found = controller_listeners(cluster.ask_any)
    if not found:
        raise UsageError("the brokers do not tell where controllers listen", remedy="name them with --controllers")
    return replace(wish.controllers or settings, bootstrap=tuple(found))


def left_out(cluster: Cluster) -> tuple[Finding, ...]:
    """That there are credentials which nobody asked for; nothing when there are none, or it may not be known."""
    try:
        users = scram_users(cluster)
    except NotAuthorised:
        return ()
    if not users:
        return ()
    named = ", ".join(users[:_NAMED]) + (" …" if len(users) > _NAMED else "")
    return (
        Finding(
            code="scram-left-out",
            severity=Severity.NOTE,
            where="SCRAM credentials",
            what=f"not in this backup, those of {len(users)} user{'s' if len(users) > 1 else ''}: {named}",
            remedy="archive them encrypted with --scram-to",
        ),
    )
