"""The documents of a restore: plan, producers, receipt, and the two small ones that say that it is over.

All are sealed (see `repository.documents`) and name the repository, the source, the restore and, where there are
several, their number: one that was copied elsewhere does not fit there. Size caps are for 100,000 partitions. What is
written is what can be read: `sealed` opens its own bytes before anything stores them. No document holds a secret.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, ClassVar

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
"""Of the plan that only one kind of source understands."""
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
    """It was told not to compare what it wrote with the archive."""
    SET = "set"
    """Groups were put where they belong; no record was written, so that there is nothing to compare."""
    FAILED = "failed"
    CHANGED = "changed"
    """It had ended well. Compared once more, target or archive were no longer what they had been: that changes nothing
    about how it had ended."""
    ABORTED = "aborted"
    PART = "part"
    """A part of a backup was put into a system that runs, and read again: no restore of the whole."""
    STOPPED = "stopped"
    """The same, and it did not come to its end: what was done until then stays."""


class RestoreDocument(SourceDocument, frozen=True, kw_only=True):
    """Base of what lies below one restore."""

    restore: StoredId


class NumberedDocument(RestoreDocument, frozen=True, kw_only=True):
    """Base of those of which a restore may have several."""

    number: Number


class RestoreTargetRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a restore goes to. Addresses are told without anything that opens a door."""

    cluster_id: str
    name: str = ""
    """As people call it."""


class RestorePlanDocument(RestoreDocument, frozen=True, kw_only=True, tag="restore-plan"):
    """What was decided before anything was changed: an id that was ever begun is never forgotten."""

    limit: ClassVar[int] = BODY_LIMIT + 4 * MIB

    backup: StoredId
    kind: Word
    """Of the source: `kafka`, `zookeeper`."""
    drill: bool
    who: str
    """The user, as the system calls them."""
    owner: Owner
    started: str
    target: RestoreTargetRef
    options: dict[str, str]
    """As they were given, for people and for resume."""
    body: msgspec.Raw
    """The plan itself, JSON that only this kind of source understands."""

    def __post_init__(self) -> None:
        moment(self.started)
        if len(bytes(self.body)) > BODY_LIMIT:
            raise ValueError(f"the plan has {len(bytes(self.body))} bytes, more than {BODY_LIMIT}")


class ProducerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Under which producer id one partition of the target is written."""

    topic: Topic
    partition: Partition
    producer_id: Position
    epoch: Annotated[int, msgspec.Meta(ge=0, le=2**15 - 1)]
    position: Position
    """The target offset at which its sequence number 0 stands."""


TopicId = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{32})?$")]


class ProducersDocument(NumberedDocument, frozen=True, kw_only=True, tag="restore-producers"):
    """Stored before the first record is sent under any of them, and before a topic that was made is written to."""

    limit: ClassVar[int] = 64 * MIB

    run: str
    """Of the process that wrote it."""
    topics: dict[Topic, TopicId] = msgspec.field(default_factory=dict)
    """Topics of the target and their ids; an empty one is about to be deleted and made again."""
    producers: tuple[ProducerRow, ...]


class ResumedDocument(NumberedDocument, frozen=True, kw_only=True, tag="restore-resumed"):
    """Another process goes on with a restore that was interrupted."""

    owner: Owner
    resumed: str

    def __post_init__(self) -> None:
        moment(self.resumed)


class RestoredPartition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of one partition."""

    source_topic: Topic
    source_partition: Partition
    topic: Topic
    partition: Partition
    mode: Word
    """`preserve` or `translate`."""
    records: Position
    bytes: Position
    end: Position
    """The target offset after the last one."""
    archive_digest: str = ""
    target_digest: str = ""
    """Empty: it was not compared."""
    outcome: Word
    """`done`, or why not."""
    detail: str = ""

    @property
    def compared(self) -> bool:
        return bool(self.archive_digest and self.target_digest)


class RestoredGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a group was set in one partition, and where it stood in the target before: enough to set it back."""

    group: str
    topic: Topic
    partition: Partition
    previous_offset: Position | None = None
    previous_metadata: str = ""
    offset: Position | None = None
    """None: it was left as it was, or in a plan that it is not known yet; `detail` says why."""
    exact: bool = True
    """False: the record it stood at did not come back, and it was set to the next one that did."""
    reread: Position = 0
    """Records that the group will see once more."""
    detail: str = ""
    share: bool = False
    """A share group: offsets are where it starts."""


class ReceiptDocument(NumberedDocument, frozen=True, kw_only=True, tag="restore-receipt"):
    """The result of a restore or a drill, with its proof."""

    limit: ClassVar[int] = 256 * MIB

    backup: StoredId
    drill: bool
    verdict: RestoreVerdict
    records_there: bool = False
    """All records are there and, where that was asked for, proven: only what follows them may still be left."""
    owner: Owner
    started: str
    finished: str
    duration_s: Seconds
    """From the first step to the proof: the recovery time that was reached."""
    target: RestoreTargetRef
    partitions: tuple[RestoredPartition, ...] = ()
    groups: tuple[RestoredGroup, ...] = ()
    map: ObjectRef | None = None
    """Which source offset stands where."""
    findings: tuple[Finding, ...] = ()
    rates: dict[str, float] = msgspec.field(default_factory=dict)
    """By name with its unit: `sent_bytes_per_s`."""
    facts: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """What only this kind of source has to tell, by name, for people; not there where it has nothing."""

    def __post_init__(self) -> None:
        moment(self.started)
        moment(self.finished)


class EndedDocument(RestoreDocument, frozen=True, kw_only=True, tag="restore-ended"):
    """Lies under a name that says all that `list` shows; pins the receipt that it was made from."""

    number: Number
    receipt_bytes: Position
    receipt_sha256: str


class AbortedDocument(RestoreDocument, frozen=True, kw_only=True, tag="restore-aborted"):
    """The restore was given up and will not be resumed."""

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
    """The time that a document tells. Raises ValueError for what is none, or has no zone."""
    told = datetime.fromisoformat(text)
    if told.tzinfo is None:
        raise ValueError("a time without its zone")
    return within_reason(told).astimezone(UTC)


def sealed(document: RestoreDocument) -> bytes:
    """The bytes of a document that certainly opens again. Raises RestoreFailed when it would not."""
    try:
        data = seal(document)
        unseal(data, type(document), str(document.__struct_config__.tag))
    except (BackupFailed, Damaged) as error:
        raise RestoreFailed(
            error.what, subject=error.subject, remedy="restore fewer topics or groups at a time"
        ) from error
    return data
