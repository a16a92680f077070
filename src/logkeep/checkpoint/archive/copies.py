"""The journal of an application's backup: its request, and the receipts of its partitions' copies."""

from collections.abc import Collection
from dataclasses import dataclass

from logkeep.checkpoint.archive.copy_plan import is_continued
from logkeep.checkpoint.archive.log_names import log_of, snapshots_of
from logkeep.checkpoint.archive.record import read_application
from logkeep.checkpoint.partition_copy import CopyRequest, PartitionCopy, decode, encode, request_from
from logkeep.errors import Damaged
from logkeep.model.ids import BackupId
from logkeep.model.segments import Segment
from logkeep.repository.backups.journal import UnitReceipt, put_receipt, read_request, receipts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, read_chain


@dataclass(frozen=True)
class StoredCopy:
    """One receipt: what a leader did, and the segments it wrote."""

    copy: PartitionCopy
    segments: tuple[Segment, ...]


def copy_request(place: SourceRef, backup_id: int) -> CopyRequest | None:
    """The stored request of a backup; None if this repository has none. Raises Damaged."""
    found = read_request(place, BackupId(backup_id))
    if found is None:
        return None
    where = layout.request(place.source, BackupId(backup_id))
    return request_from(found.id, found.base, found.options, where)


def put_copy(
    place: SourceRef, backup_id: int, copy: PartitionCopy, segments: tuple[Segment, ...], run: str, token: str
) -> None:
    """Store the receipt of a copy, whether it was completed or failed. Leaders never overwrite one another."""
    receipt = UnitReceipt(
        repository=place.repository,
        source=place.source,
        id=backup_id,
        run=run,
        unit=f"p{copy.partition}.{copy.term}",
        segments=segments,
        note=encode(copy),
    )
    put_receipt(place, receipt, token)


def stored_copies(place: SourceRef, request: CopyRequest) -> list[StoredCopy]:
    """All copies for this request. An unreadable receipt is none: its partition has no copy."""
    found = []
    for receipt in receipts(place, BackupId(request.id)):
        try:
            copy = decode(receipt.note, f"receipt {receipt.unit} of backup {receipt.id}")
        except Damaged:
            continue
        if receipt.unit == f"p{copy.partition}.{copy.term}" and _fits(request, copy, receipt.segments):
            found.append(StoredCopy(copy, receipt.segments))
    return found


def _fits(request: CopyRequest, copy: PartitionCopy, segments: tuple[Segment, ...]) -> bool:
    """Whether it is a copy for this request, of this history and of a partition that exists."""
    known = (log_of, snapshots_of)
    names = {name(request.name, request.history, copy.partition, copy.branch) for name in known}
    ours = (copy.nonce, copy.history) == (request.nonce, request.history) and copy.partition < request.partitions
    return ours and all(segment.log in names for segment in segments)


def contradiction(stored: StoredCopy, request: CopyRequest) -> str:
    """Why the state at the checkpoint cannot be had from what a whole copy says and what it has written; "" if it can.

    Whether the segments are there, with those of the base, is checked when the backup is completed.
    """
    copy, snapshot = stored.copy, stored.copy.snapshot_position
    if not 0 <= copy.log_start <= copy.position < copy.cut_end:
        return f"the create at {copy.position} is not inside its log, {copy.log_start} to {copy.cut_end}"
    if snapshot >= copy.position:
        return f"its snapshot at {snapshot} is not before the create at {copy.position}"
    if copy.log_start > snapshot + 1:
        ends = f"its snapshot ends at {snapshot}" if snapshot >= 0 else "it has no snapshot"
        return f"its log begins at {copy.log_start}, and {ends}"
    log = log_of(request.name, request.history, copy.partition, copy.branch)
    for each in stored.segments:
        if each.log == log and not copy.log_start <= each.start <= each.end <= copy.cut_end:
            return f"it wrote {each.start} to {each.end}, and its log is {copy.log_start} to {copy.cut_end}"
        if each.log != log and each.start != snapshot:
            return f"it wrote a snapshot at {each.start}, and names one at {snapshot}"
    return ""


def base_copy(place: SourceRef, request: CopyRequest, partition: int) -> PartitionCopy | None:
    """What the backup that this one continues has of a partition; None if it continues none. Raises Damaged."""
    if request.base is None:
        return None
    entry = read_chain(place).entry(request.base)
    if entry is None:
        return None
    record = read_application(place, read_manifest(place, entry))
    return record.copies[partition] if partition < record.partitions else None


def continued(
    place: SourceRef, request: CopyRequest, partition: int, checkpoints: Collection[tuple[int, int, int]]
) -> tuple[PartitionCopy | None, int]:
    """The copy whose log a partition with these checkpoints continues, and the branch of its log. Raises Damaged.

    A log that begins anew is a branch if objects of it are stored: their positions may have another meaning.
    """
    base = base_copy(place, request, partition)
    if request.base is None:
        return None, 0
    if base is not None and is_continued(base, request.base, history=request.history, checkpoints=checkpoints):
        return base, base.branch
    stored = place.store.list(layout.log_root(place.source, log_of(request.name, request.history, partition)))
    return None, request.id if any(True for _ in stored) else 0
