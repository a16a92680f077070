"""Completes or fails a backup of an application, from its request and its journal alone.

Workers call it after each receipt, the coordinator while it waits. The holder of the lease decides, and a second
decision is impossible: an id is decided once in the chain. The lease names the backup *before* the deadline is
compared, so that no reader says `failed` of a backup that is completed a moment later.
"""

from dataclasses import dataclass
from datetime import datetime

from logkeep.checkpoint.aggregation import CanComplete, MustFail, StillOngoing, aggregate
from logkeep.checkpoint.archive.copies import StoredCopy, contradiction, copy_request, stored_copies
from logkeep.checkpoint.archive.log_names import log_of, snapshots_of
from logkeep.checkpoint.archive.record import ROLE, ApplicationRecord
from logkeep.checkpoint.partition_copy import CopyRequest, PartitionCopy
from logkeep.checkpoint.steps import Steps, Wait
from logkeep.errors import BackupFailed, Damaged, Locked, ObjectMissing
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.model.plurals import plural
from logkeep.model.segments import Segment
from logkeep.model.time import Clock, TokenSource
from logkeep.repository.backups.attachments import put_attachment
from logkeep.repository.backups.backup import FinishedRun, OngoingBackup
from logkeep.repository.backups.detached_backup import CLOCK_SKEW, late, partition_failure
from logkeep.repository.backups.journal import BackupRequest, open_ids, read_request
from logkeep.repository.backups.manifest import LogCut
from logkeep.repository.backups.source import read_facts
from logkeep.repository.backups.states import StateName, decided
from logkeep.repository.chain.actions import FailedAction
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.write_session import Writing, brief_writing

_RETRY_S = 1.0
Verdict = StillOngoing | CanComplete | MustFail


@dataclass(frozen=True)
class Settlement:
    """The state of a backup after an attempt to decide on it."""

    state: StateName
    reason: str = ""
    missing: tuple[int, ...] = ()
    """Partitions without a whole copy, while it is ongoing."""


def settle(place: SourceRef, backup_id: int, clock: Clock, tokens: TokenSource) -> Steps[Settlement]:
    """Complete the backup if it is whole, fail it if it cannot become so. After a StoreError nothing is decided."""
    while True:
        yield "settle: read"
        found, request = _read(place, backup_id, clock)
        if found is not None:
            return found
        yield "settle: lease"
        try:
            with brief_writing(place, "settle", clock, tokens) as writing:
                yield "settle: decide"
                settled = settle_in(writing, backup_id)
                yield "settle: decided"
                return settled
        except Locked:
            # Another run holds the lease. If it does not settle, nothing else would decide on this backup in time.
            if request is None or clock() > request.deadline + CLOCK_SKEW:
                return Settlement(StateName.ONGOING)
        yield Wait(_RETRY_S)


def _read(place: SourceRef, backup_id: int, clock: Clock) -> tuple[Settlement | None, CopyRequest | None]:
    """What needs no lease: it is decided, it does not exist, or it is still ongoing."""
    try:
        request = copy_request(place, backup_id)
    except Damaged:
        return _decided(read_chain(place), backup_id), None
    known = _decided(read_chain(place), backup_id)
    if known is not None or request is None:
        return known or Settlement(StateName.DOES_NOT_EXIST), None
    verdict = _judge(request, stored_copies(place, request), clock())
    if isinstance(verdict, StillOngoing):
        return Settlement(StateName.ONGOING, missing=verdict.missing), request
    return None, request


def settle_in(writing: Writing, backup_id: int) -> Settlement:
    """The same for a run that holds the lease."""
    known = _decided(writing.folded, backup_id)
    if known is not None:
        return known
    writing.lease.work_on(BackupId(backup_id))
    try:
        stored = read_request(writing.place, BackupId(backup_id))
        request = copy_request(writing.place, backup_id)
        if stored is None or request is None:
            return Settlement(StateName.DOES_NOT_EXIST)
    except Damaged as damage:
        return fail_in(writing, backup_id, f"its request cannot be read ({damage.what})")
    found = stored_copies(writing.place, request)
    match _judge(request, found, writing.clock()):
        case StillOngoing(missing):
            return Settlement(StateName.ONGOING, missing=missing)
        case MustFail(reason, partition):
            return fail_in(writing, backup_id, _with_partition(reason, partition))
        case CanComplete(copies):
            return _complete(writing, stored, request, copies, found)


def fail_in(writing: Writing, backup_id: int, reason: str) -> Settlement:
    """Record it as failed. This is final."""
    writing.commit(FailedAction(backup_id, reason))
    return Settlement(StateName.FAILED, reason)


def fail_open(writing: Writing, backup_id: int, reason: str) -> Settlement:
    """Fail it if it was started and is not decided yet; its state."""
    known = _decided(writing.folded, backup_id)
    if known is None and BackupId(backup_id) in open_ids(writing.place, writing.folded.last_id):
        return fail_in(writing, backup_id, reason)
    return known or Settlement(StateName.DOES_NOT_EXIST)


def fail(place: SourceRef, backup_id: int, reason: str, clock: Clock, tokens: TokenSource) -> Steps[Settlement]:
    """Fail an ongoing backup; what was decided before stays."""
    while True:
        yield "fail: lease"
        try:
            with brief_writing(place, "fail", clock, tokens) as writing:
                yield "fail: record"
                return fail_open(writing, backup_id, reason)
        except Locked:
            yield Wait(_RETRY_S)


def _judge(request: CopyRequest, found: list[StoredCopy], now: datetime) -> Verdict:
    """A backup that is whole after its deadline fails too: readers may have seen it as failed."""
    copies = [each.copy for each in found]
    verdict = aggregate(request.partitions, request.nonce, request.deadline, copies, now)
    if isinstance(verdict, CanComplete) and now >= request.deadline:
        return MustFail(late(request.deadline, set(), ""), -1)
    return _without_contradiction(verdict, request, found) if isinstance(verdict, CanComplete) else verdict


def _without_contradiction(verdict: CanComplete, request: CopyRequest, found: list[StoredCopy]) -> Verdict:
    """A backup whose receipts contradict themselves would end completed, and could not be restored."""
    for copy in verdict.copies:
        problem = contradiction(next(each for each in found if each.copy == copy), request)
        if problem:
            return MustFail(f"the receipt of its copy contradicts itself: {problem}", copy.partition)
    return verdict


def _with_partition(reason: str, partition: int) -> str:
    return reason if f"partition {partition}" in reason else partition_failure(partition, reason)


def _decided(folded: Folded, backup_id: int) -> Settlement | None:
    state = decided(folded).get(backup_id)
    if state is not None:
        return Settlement(state.name, getattr(state, "reason", ""))
    return Settlement(StateName.DOES_NOT_EXIST) if backup_id <= folded.last_id else None


def _complete(
    writing: Writing,
    stored: BackupRequest,
    request: CopyRequest,
    copies: tuple[PartitionCopy, ...],
    found: list[StoredCopy],
) -> Settlement:
    try:
        facts = read_facts(writing.place)
        if facts is None:
            return fail_in(writing, request.id, "the source has no facts any more")
        ongoing = OngoingBackup(writing, stored, facts)
        ongoing.complete(_outcome(writing, request, copies, found))
    except (BackupFailed, Damaged, ObjectMissing) as error:
        return fail_in(writing, request.id, error.what)
    return Settlement(StateName.COMPLETED)


def _outcome(
    writing: Writing, request: CopyRequest, copies: tuple[PartitionCopy, ...], found: list[StoredCopy]
) -> FinishedRun:
    record = ApplicationRecord(
        repository=writing.place.repository,
        source=writing.place.source,
        id=request.id,
        application=request.application,
        name=request.name,
        partitions=request.partitions,
        history=request.history,
        nonce=request.nonce,
        copies=copies,
    )
    reference = put_attachment(writing.place, BackupId(request.id), ROLE, record, writing.tokens())
    return FinishedRun(
        cut=cut_of(record),
        new=_segments(copies, found),
        attachments=(reference,),
        findings=(*lost_findings(record), *branch_findings(record, request.base)),
    )


def cut_of(record: ApplicationRecord) -> tuple[LogCut, ...]:
    """The logs of a backup up to their creates, and the snapshots on which they build."""
    logs, snapshots = [], []
    for copy in record.copies:
        logs.append(
            LogCut(log_of(record.name, record.history, copy.partition, copy.branch), copy.log_start, copy.cut_end)
        )
        if copy.snapshot_position >= 0:
            log = snapshots_of(record.name, record.history, copy.partition, copy.branch)
            snapshots.append(LogCut(log, copy.snapshot_position, copy.snapshot_position + 1))
    return (*logs, *snapshots)


def _segments(copies: tuple[PartitionCopy, ...], found: list[StoredCopy]) -> list[Segment]:
    """The segments of the chosen copies, each copy once."""
    return [s for copy in copies for s in next(each.segments for each in found if each.copy == copy)]


def lost_findings(record: ApplicationRecord) -> tuple[Finding, ...]:
    """Spans of logs that the application compacted before they were archived."""
    return tuple(
        Finding(
            code="log-lost",
            severity=Severity.WARNING,
            where=str(log_of(record.name, record.history, copy.partition, copy.branch)),
            what=f"positions [{start}, {end}) were compacted before they were archived, with their checkpoints",
            remedy="take backups more often, or raise --max-unarchived",
        )
        for copy in record.copies
        for start, end in copy.lost
    )


def branch_findings(record: ApplicationRecord, base: int | None) -> tuple[Finding, ...]:
    """One, if logs begin anew with this backup because they do not continue what is archived of them."""
    begun = [copy.partition for copy in record.copies if copy.branch == record.id]
    if not begun:
        return ()
    log = log_of(record.name, record.history, begun[0], record.id)
    return (
        Finding(
            code="log-branched",
            severity=Severity.WARNING,
            where=str(log) if len(begun) == 1 else f"{log} and {plural(len(begun) - 1, 'more log')}",
            what=f"the checkpoint of backup {base} is not in it: an earlier state of the data directory was restored, "
            "a copy of it runs, or very many checkpoints are between the two; it is archived as a branch, and earlier "
            "backups keep what they have",
            remedy="if you did not restore it, find out which user or program did, or runs a copy",
        ),
    )
