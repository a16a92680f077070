"""SCRAM credentials in a backup: only if the user asks for them, encrypted to the user's age keys, never in clear.

They are read from the metadata log into memory, written as one small JSON document, and encrypted at once. What is
stored is the encrypted text with the count and the public keys, as an attachment that the manifest pins. No task, no
Spark, no file and no message ever holds them in clear.
"""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from logkeep.errors import NotAuthorised, UsageError
from logkeep.formats.kafka.internal_topics.scram_records import ScramCredential, ScramFold
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
_SHOWN_USERS = 5


@dataclass(frozen=True)
class ScramOptions:
    """Recipients and controllers. Without `controllers` the brokers are asked for the controllers' addresses."""

    recipients: tuple[str, ...]
    controllers: ClientSettings | None = None

    def __post_init__(self) -> None:
        check_recipients(self.recipients)
        if not self.recipients:
            raise UsageError(
                "SCRAM credentials are archived only encrypted, and no recipient is given who could decrypt them",
                remedy="name a recipient with --scram-to age1…",
            )


@dataclass(frozen=True)
class SealedScram:
    """Encrypted credentials, ready to be stored."""

    recipients: tuple[str, ...]
    credentials: int
    age: str


class ScramDocument(SourceDocument, frozen=True, kw_only=True, tag="kafka-scram"):
    limit: ClassVar[int] = 64 * MIB

    id: StoredId
    recipients: tuple[str, ...]
    """Public keys; the holder of any of the private keys can decrypt it."""
    credentials: int
    age: str
    """The credentials as an armoured age file."""


def put_scram(place: SourceRef, backup_id: BackupId, sealed: SealedScram, token: str) -> AttachmentRef:
    """Store the encrypted credentials, for the manifest to pin."""
    document = ScramDocument(
        repository=place.repository,
        source=place.source,
        id=backup_id,
        recipients=sealed.recipients,
        credentials=sealed.credentials,
        age=sealed.age,
    )
    return put_attachment(place, backup_id, ROLE, document, token)


def probe_scram(options: ScramOptions, cluster: Cluster) -> None:
    """Check that the credentials can be read. Raises the cluster's errors."""
    quorum = open_quorum(_controllers(options, cluster))
    with quorum.connection:
        MetadataLog(quorum).probe()


def collect_scram(options: ScramOptions, cluster: Cluster) -> SealedScram:
    """Read the current credentials and encrypt them. Raises the cluster's errors."""
    quorum, fold = open_quorum(_controllers(options, cluster)), ScramFold()
    with quorum.connection:
        for value in MetadataLog(quorum).values():
            fold.add(value)
    credentials = fold.credentials()
    age = encrypted_to(options.recipients, plain_document(credentials))
    return SealedScram(options.recipients, len(credentials), age)


def plain_document(credentials: Iterable[ScramCredential]) -> bytes:
    """The document that a recipient decrypts. Binary values are in base64, as Kafka's own tools print them."""
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


def _controllers(options: ScramOptions, cluster: Cluster) -> ClientSettings:
    """How to reach the controllers: as the user said, otherwise with the brokers' security settings, at the addresses
    that the brokers report."""
    if options.controllers is not None and options.controllers.bootstrap:
        return options.controllers
    found = controller_listeners(cluster.ask_any)
    if not found:
        raise UsageError(
            "the brokers do not report the addresses of the controllers", remedy="name them with --controllers"
        )
    return replace(options.controllers or cluster.settings, bootstrap=tuple(found))


def scram_left_out(cluster: Cluster) -> tuple[Finding, ...]:
    """A note if the cluster has credentials that are not archived; nothing if this user may not list them."""
    try:
        users = scram_users(cluster)
    except NotAuthorised:
        return ()
    if not users:
        return ()
    shown = ", ".join(users[:_SHOWN_USERS]) + (" …" if len(users) > _SHOWN_USERS else "")
    return (
        Finding(
            code="scram-left-out",
            severity=Severity.NOTE,
            where="SCRAM credentials",
            what=f"not in this backup, those of {len(users)} user{'s' if len(users) > 1 else ''}: {shown}",
            remedy="archive them encrypted with --scram-to",
        ),
    )
