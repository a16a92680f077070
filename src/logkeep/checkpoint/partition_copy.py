"""What a backup of an application asks of its partitions, and what each of them reports. Values only.

A coordinator stores the request before it sends the first create. The leader of a partition stores one `PartitionCopy`
with the receipt of its objects. What the request and these copies say decides whether the backup is completed.
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from logkeep.errors import Damaged
from logkeep.model.segments import Position
from logkeep.model.time import within_reason

Partition = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
OnFailover = Literal["fail", "retake"]


class CopyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A stored request, as partitions need it."""

    id: int
    application: str
    """32 hex digits."""
    name: str
    history: int
    partitions: int
    nonce: str
    """16 hex digits: a copy for another request of the same id is not one for this."""
    deadline: datetime
    on_failover: OnFailover = "fail"
    base: int | None = None
    """The backup that this one continues."""
    brokers: str = ""
    """The bootstrap servers of its log; empty if that is in files."""


class PartitionCopy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one leader of one partition did for a backup. Positions are those of the partition's log."""

    partition: Partition
    term: Position
    history: Position
    nonce: str
    outcome: Literal["completed", "failed"]
    reason: str = ""
    """Why it failed."""
    position: int = -1
    """Of the create that this partition processed first: the checkpoint position."""
    cut_end: int = -1
    """After the batch of that create: the copy holds the log up to here, and nothing of it after."""
    branch: Position = 0
    """The first backup since the data directory was restored to an earlier state; 0: it never was."""
    log_start: int = -1
    """Where the log of this backup begins, in objects of this backup or of earlier ones."""
    snapshot_position: int = -1
    """The last position that the snapshot includes; -1: the whole log is there and no snapshot is needed."""
    replay_bytes: Annotated[int, msgspec.Meta(ge=-1)] = -1
    """Of the log between the snapshot and the cut; -1: not counted."""
    state_digest: str = ""
    """Of the state at the checkpoint."""
    external: dict[str, int] = msgspec.field(default_factory=dict)
    """Positions in other systems that the application reported before the checkpoint."""
    lost: tuple[tuple[int, int], ...] = ()
    """Spans `[start, end)` that were compacted before they were archived, since the base."""
    checkpoints: tuple[tuple[int, int, int], ...] = ()
    """Id, position and cut end of each checkpoint in the log of this copy, with its own."""
    pending: Annotated[int, msgspec.Meta(ge=-1)] = -1
    """Messages to other partitions without an acknowledgement at the checkpoint; -1: not counted."""
    bytes: Position = 0
    """Written by this copy."""
    took_ms: Position = 0
    pause_ms: Position = 0
    """How long processing waited for this copy at most."""


_DECODER = msgspec.json.Decoder(PartitionCopy)
"""Made at import: msgspec crashes the process if two threads build the decoder of a type at the same moment."""


def encode(copy: PartitionCopy) -> str:
    return msgspec.json.encode(copy).decode()


def decode(note: str, where: str) -> PartitionCopy:
    """The copy that the note of a receipt describes. Raises Damaged."""
    try:
        return _DECODER.decode(note)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Damaged(f"the receipt does not describe a copy ({error})", subject=where) from error


def options_of(request: CopyRequest, deadline: str) -> dict[str, str]:
    """How a request is stored: as options of the backup request of its id."""
    found = {
        "application": request.application,
        "name": request.name,
        "history": str(request.history),
        "partitions": str(request.partitions),
        "nonce": request.nonce,
        "deadline": deadline,
        "on_failover": request.on_failover,
    }
    return found | ({"brokers": request.brokers} if request.brokers else {})


class _StoredOptions(msgspec.Struct, frozen=True):
    """Options are text; decoded with `strict=False`."""

    application: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}$")]
    name: str
    history: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
    partitions: Annotated[int, msgspec.Meta(ge=1, le=100_000)]
    nonce: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}$")]
    deadline: Annotated[datetime, msgspec.Meta(tz=True)]
    on_failover: OnFailover
    brokers: str = ""


msgspec.json.Decoder(_StoredOptions)  # built at import, for the same reason


def request_from(backup_id: int, base: int | None, options: dict[str, str], where: str) -> CopyRequest:
    """The request that a coordinator stored. Raises Damaged."""
    try:
        found = msgspec.convert(options, _StoredOptions, strict=False)
        within_reason(found.deadline)
    except (msgspec.MsgspecError, ValueError) as error:
        raise Damaged(f"it is not a request for an application ({error})", subject=where) from error
    return CopyRequest(id=backup_id, base=base, **msgspec.structs.asdict(found))
