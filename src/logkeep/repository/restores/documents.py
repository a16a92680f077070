"""The documents of a restore: plan, producers, resumes, receipts, and the two small ones about its end.

All are sealed (see `chain.documents`) and name the repository, the source, the restore and their number, if there are
several: a copy under another name is refused. Size limits are for 100,000 partitions. Everything written can be read:
`sealed` opens its own bytes before they are stored. No document contains a secret.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Final

import msgspec

from logkeep.errors import BackupFailed, Damaged, RestoreFailed
from logkeep.model.findings import Finding
from logkeep.model.ids import StoredId
from logkeep.model.segments import Position
from logkeep.model.time import within_reason
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.documents import MIB, SourceDocument, seal, unseal
from logkeep.repository.chain.layout import MOST_NUMBERED
from logkeep.repository.chain.owner import Owner

BODY_LIMIT = 240 * MIB
"""The largest body: the part of a plan that its kind of source defines."""
MAP_LIMIT = 1024 * MIB

Number = Annotated[int, msgspec.Meta(ge=1, le=MOST_NUMBERED)]
Partition = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Topic = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
Word = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]{1,40}$")]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e11)]


class RestoreVerdict(StrEnum):
    """How a restore ended, in its receipt."""

    PROVEN = "proven"
    UNPROVEN = "unproven"
    """The user asked not to compare the target with the archive."""
    SET = "set"
    """Group offsets were set; no record was written, so there is nothing to compare."""
    FAILED = "failed"
    CHANGED = "changed"
    """A later comparison of a successful restore found that target or archive had changed. The restore itself stays
    successful."""
    ABORTED = "aborted"
    PART = "part"
    """A part of a backup was restored into a running system and read back: no restore of the whole."""
    STOPPED = "stopped"
    """The same, but it did not finish: what was done until then stays."""


class RestoreDocument(SourceDocument, frozen=True, kw_only=True):
    """Base of the documents of one restore."""

    restore: StoredId


class NumberedDocument(RestoreDocument, frozen=True, kw_only=True):
    """Base of numbered documents."""

    number: Number


class RestoreTargetRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The target of a restore. Contains no credentials."""

    cluster_id: str
    name: str = ""
    """The name of the target, for display."""


WITH_BURIED: Final = 3


class RestorePlanDocument(RestoreDocument, frozen=True, kw_only=True, tag="restore-plan"):
    """What was decided before anything was changed. Never deleted."""

    limit: ClassVar[int] = BODY_LIMIT + 4 * MIB
    newest: ClassVar[int] = WITH_BURIED
    """2: the body has a rule by which small batches are merged; an earlier release would send others. 3: it names
    records that are not restored, because their keys were deleted at the source."""

    backup: StoredId
    kind: Word
    """The kind of the source: `kafka`, `zookeeper`."""
    drill: bool
    who: str
    """The name of the user."""
    owner: Owner
    started: str
    target: RestoreTargetRef
    options: dict[str, str]
    """The user's options, for display and for resume."""
    body: msgspec.Raw
    """The plan itself: JSON that the kind of source defines."""

    def __post_init__(self) -> None:
        moment(self.started)
        if len(bytes(self.body)) > BODY_LIMIT:
            raise ValueError(f"the plan has {len(bytes(self.body))} bytes, more than {BODY_LIMIT}")


class ProducerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The producer id with which one partition of the target is written."""

    topic: Topic
    partition: Partition
    producer_id: Position
    epoch: Annotated[int, msgspec.Meta(ge=0, le=2**15 - 1)]
    position: Position
    """The target offset of its sequence number 0."""


TopicId = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{32})?$")]


class ProducersDocument(NumberedDocument, frozen=True, kw_only=True, tag="restore-producers"):
    """Stored before the first record is sent with any of them, and before a created topic is written to."""

    limit: ClassVar[int] = 64 * MIB

    run: str
    """The run that wrote it."""
    topics: dict[Topic, TopicId] = msgspec.field(default_factory=dict)
    """Topics of the target and their ids; an empty id: the topic is about to be deleted and created again."""
    producers: tuple[ProducerRow, ...]


class ResumedDocument(NumberedDocument, frozen=True, kw_only=True, tag="restore-resumed"):
    """Another process resumed an interrupted restore."""

    owner: Owner
    resumed: str

    def __post_init__(self) -> None:
        moment(self.resumed)


class RestoredPartition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result for one partition."""

    source_topic: Topic
    source_partition: Partition
    topic: Topic
    partition: Partition
    mode: Word
    """`preserve` or `translate`."""
    records: Position
    bytes: Position
    end: Position
    """The target offset after the last record."""
    archive_digest: str = ""
    target_digest: str = ""
    """Empty if it was not compared."""
    outcome: Word
    """`done`, or why not."""
    detail: str = ""

    @property
    def compared(self) -> bool:
        return bool(self.archive_digest and self.target_digest)


class RestoredGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The offset of a group in one partition of the target, and the earlier one: enough to undo it."""

    group: str
    topic: Topic
    partition: Partition
    previous_offset: Position | None = None
    previous_metadata: str = ""
    offset: Position | None = None
    """None: it was not changed, or, in a plan, is not known yet; `detail` says why."""
    exact: bool = True
    """False: the record at its offset was not restored; it was set to the next one that was."""
    reread: Position = 0
    """Records that the group will read again."""
    detail: str = ""
    share: bool = False
    """A share group: offsets are its start offsets."""


class ReceiptDocument(NumberedDocument, frozen=True, kw_only=True, tag="restore-receipt"):
    """The result of a restore or a drill, with its proof."""

    limit: ClassVar[int] = 256 * MIB

    backup: StoredId
    drill: bool
    verdict: RestoreVerdict
    records_there: bool = False
    """All records were written and, if requested, proven; only the steps after that may be missing."""
    owner: Owner
    started: str
    finished: str
    duration_s: Seconds
    """From the first step to the proof: the recovery time."""
    target: RestoreTargetRef
    partitions: tuple[RestoredPartition, ...] = ()
    groups: tuple[RestoredGroup, ...] = ()
    map: ObjectRef | None = None
    """The map from source offsets to target offsets."""
    findings: tuple[Finding, ...] = ()
    rates: dict[str, float] = msgspec.field(default_factory=dict)
    """Rates by name; the name has the unit: `sent_bytes_per_s`."""
    facts: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """Facts of this kind of source, by name, for display; absent if there are none."""

    def __post_init__(self) -> None:
        moment(self.started)
        moment(self.finished)


class EndedDocument(RestoreDocument, frozen=True, kw_only=True, tag="restore-ended"):
    """Its name contains all that `list` shows; it pins the receipt that it was made from."""

    number: Number
    receipt_bytes: Position
    receipt_sha256: str


class AbortedDocument(RestoreDocument, frozen=True, kw_only=True, tag="restore-aborted"):
    """The restore was aborted and cannot be resumed."""

    backup: StoredId
    drill: bool
    owner: Owner
    started: str
    aborted: str
    reason: str = ""

    def __post_init__(self) -> None:
        moment(self.started)
        moment(self.aborted)


def moment(text: str) -> datetime:
    """The time in a document. Raises ValueError if it is invalid or has no time zone."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError("the time has no time zone")
    return within_reason(time).astimezone(UTC)


def sealed(document: RestoreDocument) -> bytes:
    """The bytes of a document, checked to be readable. Raises RestoreFailed if they are not."""
    try:
        data = seal(document)
        unseal(data, type(document), str(document.__struct_config__.tag))
    except (BackupFailed, Damaged) as error:
        raise RestoreFailed(
            error.what, subject=error.subject, remedy="restore fewer topics or groups at a time"
        ) from error
    return data
