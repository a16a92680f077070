"""The manifest of a backup: its cut, its parts, its attachments, its findings."""

from typing import Annotated, ClassVar, Final

import msgspec

from logkeep.model.findings import Finding
from logkeep.model.ids import StoredId
from logkeep.model.segments import Codec, LogName, Position, Sha256, Token
from logkeep.repository.chain.actions import PartRef
from logkeep.repository.chain.documents import MIB, SourceDocument

MAX_PARTS = 16
LARGEST_ATTACHMENT: Final = 512 * MIB
"""Limit of every type of attachment."""
WITH_PACKED: Final = 2
"""The version of a manifest with a packed attachment, and of the document in it: an earlier release ends at either."""


class LogCut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Positions `[start, end)` of one log that a backup covers."""

    log: LogName
    start: Position
    end: Position


class KnownGap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Positions inside the cut that could not be archived, and why. All others must be archived."""

    log: LogName
    start: Position
    end: Position
    reason: str


class AttachmentRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A document that only this kind of source has: topic configs, groups, ACLs."""

    role: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9-]{0,40}$")]
    token: Token
    size: Position
    sha256: Sha256
    """The hash of the stored bytes."""
    codec: Codec = Codec.NONE
    plain_size: Position = 0
    """If it is packed: the size of the document."""

    @property
    def packed(self) -> bool:
        return self.codec is not Codec.NONE


class Manifest(SourceDocument, frozen=True, kw_only=True, tag="manifest"):
    limit: ClassVar[int] = 64 * MIB
    newest: ClassVar[int] = WITH_PACKED

    id: StoredId
    run: str
    kind: str
    identity: dict[str, str]
    """What identifies the source. Its own document has the same, and can be rebuilt from this one."""
    group: tuple[str, ...] = ()
    started: str
    finished: str
    base: int | None
    """The backup whose segments this one continues."""
    cut: tuple[LogCut, ...]
    parts: Annotated[tuple[PartRef, ...], msgspec.Meta(max_length=MAX_PARTS)]
    gaps: tuple[KnownGap, ...] = ()
    attachments: tuple[AttachmentRef, ...] = ()
    findings: tuple[Finding, ...] = ()
