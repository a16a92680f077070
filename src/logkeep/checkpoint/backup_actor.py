"""Copies one partition for a backup: pins at once, then copies in the background, and records how it ended.

Only the leader of a partition has one. `begin` is called while the create is processed: it pins a snapshot from before
the checkpoint and the log, without any remote call, and returns the copy as steps. The copy ends exactly after the
create. Its receipt is put last, and pins are freed in every case. After a start, `resume` records the checkpoint that
the last leader had begun and not finished as failed, or makes the copy itself if the request wants that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import msgspec

from logkeep.checkpoint.archive.copies import continued, copy_request, put_copy, stored_copies
from logkeep.checkpoint.archive.copy_plan import CopyPlan, is_continued, plan_copy
from logkeep.checkpoint.archive.log_names import log_of, snapshots_of
from logkeep.checkpoint.archive.partition_files import copy_log, copy_snapshot
from logkeep.checkpoint.archive.record import read_application
from logkeep.checkpoint.archive.settle import settle
from logkeep.checkpoint.log import PartitionLog
from logkeep.checkpoint.machine import TakeBackup
from logkeep.checkpoint.partition_copy import CopyRequest, PartitionCopy
from logkeep.checkpoint.partition_state import CutFacts
from logkeep.checkpoint.snapshot_choice import KeptSnapshot, NoSnapshotFits, UseSnapshot, choose, reuse
from logkeep.checkpoint.snapshots import LogKeeping, Reservation, SnapshotStore
from logkeep.checkpoint.steps import Steps, Wait
from logkeep.errors import BackupFailed, Interrupted, LogkeepError
from logkeep.model.ids import BackupId
from logkeep.model.segments import Segment
from logkeep.model.time import TokenSource
from logkeep.repository.backups.journal import open_ids
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.backups.states import StateName, decided
from logkeep.repository.chain.commits import SourceRef, read_chain

FAILOVER = "the leader of the partition changed before its copy was complete"
_RETRY_S, _ATTEMPTS = 1.0, 3
_POLL_S = 1.0
_UNKNOWN = 1 << 62
"""More bytes than a log has."""


@dataclass(frozen=True)
class ActorIdentity:
    """Which partition of which application, under which leader, archives where, by which clocks."""

    application: str
    """32 hex digits."""
    name: str
    history: int
    partition: int
    run: str
    """16 hex digits of this process."""
    open_place: Callable[[], SourceRef]
    clock: Callable[[], datetime]
    tokens: TokenSource
    elapsed_s: Callable[[], float]


@dataclass(frozen=True)
class _Pinned:
    """What a copy may use until it frees it."""

    choice: UseSnapshot | NoSnapshotFits
    reservation: Reservation | None


@dataclass(frozen=True)
class _Job:
    cut: CutFacts
    nonce: str
    pinned: _Pinned
    begun_s: float
    pause_ms: int = 0


class BackupActor:
    """Used by the processor's thread (`begin`) and by the one that executes the steps."""

    def __init__(self, identity: ActorIdentity, log: PartitionLog, keeping: LogKeeping) -> None:
        self._me, self._log, self._keeping = identity, log, keeping
        self._snapshots: SnapshotStore = keeping.snapshots
        self._begun: set[int] = set()
        self.checkpoints: Callable[[], tuple[tuple[int, int, int], ...]] = lambda: ()
        """The last checkpoints of this partition: id, position, cut end."""

    def begin(self, take: TakeBackup, cut: CutFacts) -> Steps[None] | None:
        """Pin what the copy needs; the copy as steps. None if a copy for this id was begun before."""
        if take.id in self._begun:
            return None
        started = self._me.elapsed_s()
        pinned = self._pin(cut.position)
        self._begun.add(take.id)
        pause_ms = int((self._me.elapsed_s() - started) * 1000)
        return self._copy(_Job(cut, take.nonce, pinned, started, pause_ms), take.repository)

    def resume(self, cut: CutFacts | None) -> Steps[None]:
        """After replay: learn what is archived, and end what the last leader began."""
        pinned = self._pin(cut.position) if cut is not None else _Pinned(NoSnapshotFits("no checkpoint"), None)
        return self._resume(cut, pinned)

    def _pin(self, position: int) -> _Pinned:
        """The newest snapshot below the checkpoint, and the whole local log, before any remote call."""
        found: list[Reservation] = []

        def reserve(snapshot: KeptSnapshot | None) -> bool:
            reservation = self._snapshots.reserve(snapshot, self._log.start)
            found.extend([reservation] if reservation else [])
            return reservation is not None

        choice = choose(self._snapshots.list(), position, self._log.start, reserve)
        if isinstance(choice, UseSnapshot) and choice.snapshot is None:
            reserve(None)
        return _Pinned(choice, found[-1] if found else None)

    def _free(self, pinned: _Pinned) -> None:
        if pinned.reservation is not None:
            self._snapshots.release(pinned.reservation)

    def _copy(self, job: _Job, repository: str) -> Steps[None]:
        try:
            yield "copy: open the store"
            place = self._me.open_place()
            request = self._request_to_copy(place, job, repository)
            if request is None:
                return
            yield from self._fail_jumped(place, job.cut)
            yield from self._archive(place, request, job)
        except Interrupted:
            raise
        except (LogkeepError, OSError) as error:
            self._free(job.pinned)
            yield from self._record_failure(job.cut, job.nonce, str(error))
        finally:
            self._free(job.pinned)

    def _request_to_copy(self, place: SourceRef, job: _Job, repository: str) -> CopyRequest | None:
        """The request, if this partition has to copy for it: stored here, for us, undecided, without a failure."""
        request = self._request(place, job.cut.id)
        if request is None or repository not in ("", place.repository) or job.nonce not in ("", request.nonce):
            return None
        own = [one.copy for one in stored_copies(place, request) if one.copy.partition == self._me.partition]
        done = any(copy.outcome == "failed" or copy.term == self._log.term for copy in own)
        return None if done else request

    def _request(self, place: SourceRef, backup_id: int) -> CopyRequest | None:
        """An undecided request of this application and history."""
        request = copy_request(place, backup_id)
        if request is None or (request.application, request.history) != (self._me.application, self._me.history):
            return None
        if self._me.clock() >= request.deadline or backup_id in decided(read_chain(place)):
            return None
        return request

    def _archive(self, place: SourceRef, request: CopyRequest, job: _Job) -> Steps[None]:
        copy, segments = yield from self._copied(place, request, job)
        yield "copy: receipt"
        put_copy(place, request.id, copy, segments, self._me.run, self._me.tokens())
        yield "copy: receipt stored"
        self._free(job.pinned)
        yield from self._settle(place, request, job.cut.cut_end)

    def _copied(
        self, place: SourceRef, request: CopyRequest, job: _Job
    ) -> Steps[tuple[PartitionCopy, tuple[Segment, ...]]]:
        """The files; from the beginning a few times if the store fails in a way that passes: it retries no stream."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return (yield from self._copy_files(place, request, job))
            except LogkeepError as error:
                if not error.retry_helps:
                    raise
            yield Wait(_RETRY_S)
        return (yield from self._copy_files(place, request, job))

    def _copy_files(
        self, place: SourceRef, request: CopyRequest, job: _Job
    ) -> Steps[tuple[PartitionCopy, tuple[Segment, ...]]]:
        me, cut, choice = self._me, job.cut, job.pinned.choice
        if isinstance(choice, NoSnapshotFits):
            raise BackupFailed(choice.reason)
        yield "copy: read the base"
        base, branch = continued(place, request, me.partition, self.checkpoints())
        choice, replayed = self._chosen(choice, base, cut.cut_end)
        position = choice.snapshot.position if choice.snapshot else -1
        plan = plan_copy(
            base,
            history=me.history,
            local_start=self._log.start,
            snapshot_position=position,
            cut_end=cut.cut_end,
        )
        log = log_of(me.name, me.history, me.partition, branch)
        batches = self._log.batches(plan.copy_from, cut.cut_end)
        segments = yield from copy_log(place, log, plan.copy_from, cut.cut_end, batches, me.tokens)
        if choice.snapshot and not plan.snapshot_archived:
            copied = yield from self._copy_snapshot(place, choice.snapshot, branch)
            segments = (*segments, copied)
        completed = self._completed(request, job, plan, branch, position, segments)
        return msgspec.structs.replace(completed, replay_bytes=replayed), segments

    def _chosen(self, choice: UseSnapshot, base: PartitionCopy | None, cut_end: int) -> tuple[UseSnapshot, int]:
        """The snapshot of the base instead, as `reuse` says, and the bytes of log from the snapshot to the cut; -1 if
        they cannot be counted. This copy continues the log of the base, so there is no gap up to its own end."""
        if base is not None and base.snapshot_position >= 0 and self._log.start <= base.cut_end:
            since = self._since_snapshot(base, cut_end)
            archived = KeptSnapshot(base.snapshot_position, 0, base.snapshot_position + 1)
            choice = reuse(choice, archived, cut_end, _UNKNOWN if since is None else since, base.log_start)
            if choice.archived:
                return choice, -1 if since is None else since
        return choice, self._log_bytes(choice.log_from, cut_end)

    def _since_snapshot(self, base: PartitionCopy, cut_end: int) -> int | None:
        """The log from the snapshot of the base to this cut, most of which may be in the archive only. None if it
        cannot be counted."""
        if base.replay_bytes >= 0:
            return base.replay_bytes + self._log_bytes(base.cut_end, cut_end)
        first = base.snapshot_position + 1
        return self._log_bytes(first, cut_end) if first >= self._log.start else None

    def _log_bytes(self, start: int, end: int) -> int:
        behind = self._log.size_from(end)  # first: the log grows meanwhile
        return self._log.size_from(start) - behind

    def _copy_snapshot(self, place: SourceRef, snapshot: KeptSnapshot, branch: int) -> Steps[Segment]:
        me = self._me
        name = snapshots_of(me.name, me.history, me.partition, branch)
        time_ms = int(me.clock().timestamp() * 1000)
        with self._snapshots.path(snapshot.position).open("rb") as file:
            return (yield from copy_snapshot(place, name, snapshot.position, time_ms, file, me.tokens))

    def _completed(
        self,
        request: CopyRequest,
        job: _Job,
        plan: CopyPlan,
        branch: int,
        snapshot_position: int,
        segments: tuple[Segment, ...],
    ) -> PartitionCopy:
        cut = job.cut
        return PartitionCopy(
            partition=self._me.partition,
            term=self._log.term,
            history=self._me.history,
            nonce=request.nonce,
            outcome="completed",
            position=cut.position,
            cut_end=cut.cut_end,
            branch=branch,
            log_start=plan.log_start,
            snapshot_position=snapshot_position,
            state_digest=cut.digest,
            external=cut.external,
            pending=cut.pending,
            lost=plan.lost,
            checkpoints=tuple(one for one in self.checkpoints() if plan.log_start <= one[1] <= cut.position),
            bytes=sum(segment.stored_bytes for segment in segments),
            took_ms=int((self._me.elapsed_s() - job.begun_s) * 1000),
            pause_ms=job.pause_ms,
        )

    def _settle(self, place: SourceRef, request: CopyRequest, cut_end: int) -> Steps[None]:
        """Until the backup is decided, by this partition or another: then the log up to the cut is archived."""
        me = self._me
        while True:
            try:
                settled = yield from settle(place, request.id, me.clock, me.tokens)
            except Interrupted:
                raise
            except (LogkeepError, OSError):
                settled = None  # the store is down: nothing was decided
            if settled is not None and settled.state is not StateName.ONGOING:
                if settled.state is StateName.COMPLETED:
                    self._keeping.archived_end = cut_end
                return
            if me.clock() > request.deadline:
                return
            yield Wait(_POLL_S)

    def _record_failure(self, cut: CutFacts, nonce: str, reason: str) -> Steps[None]:
        """Put a failed receipt; a store that refuses it too leaves the backup to its deadline."""
        for _ in range(_ATTEMPTS):
            try:
                yield "copy: record the failure"
                place = self._me.open_place()
                request = self._request(place, cut.id)
                if request is not None and nonce in ("", request.nonce):
                    yield from self._put_failure(place, request, reason)
            except Interrupted:
                raise
            except (LogkeepError, OSError):
                yield Wait(_RETRY_S)
            else:
                return

    def _put_failure(self, place: SourceRef, request: CopyRequest, reason: str) -> Steps[None]:
        failed = PartitionCopy(
            partition=self._me.partition,
            term=self._log.term,
            history=self._me.history,
            nonce=request.nonce,
            outcome="failed",
            reason=reason,
        )
        put_copy(place, request.id, failed, (), self._me.run, self._me.tokens())
        yield "copy: failure stored"
        yield from settle(place, request.id, self._me.clock, self._me.tokens)

    def _fail_jumped(self, place: SourceRef, cut: CutFacts) -> Steps[None]:
        """Backups between the last checkpoint and this one can never complete: this partition has none of them."""
        for backup_id in open_ids(place, read_chain(place).last_id):
            if cut.previous_id < backup_id < cut.id:
                request = self._request(place, backup_id)
                if request is not None:
                    reason = f"jumped over: it went from checkpoint {cut.previous_id} to {cut.id}"
                    yield from self._put_failure(place, request, reason)

    def _resume(self, cut: CutFacts | None, pinned: _Pinned) -> Steps[None]:
        try:
            yield "resume: open the store"
            place = self._me.open_place()
            self._learn_archived(place)
            request = self._request(place, cut.id) if cut is not None else None
            if cut is None or request is None:
                return
            own = [one.copy for one in stored_copies(place, request) if one.copy.partition == self._me.partition]
            if any(copy.outcome == "completed" for copy in own):
                self._free(pinned)
                yield from self._settle(place, request, cut.cut_end)
            elif not any(copy.outcome == "failed" for copy in own):
                yield from self._end_checkpoint(place, request, _Job(cut, request.nonce, pinned, self._me.elapsed_s()))
        except Interrupted:
            raise
        except (LogkeepError, OSError):
            return  # the store is down: the backup ends by its deadline
        finally:
            self._free(pinned)

    def _end_checkpoint(self, place: SourceRef, request: CopyRequest, job: _Job) -> Steps[None]:
        if request.on_failover == "retake" and isinstance(job.pinned.choice, UseSnapshot):
            self._begun.add(job.cut.id)
            yield from self._retake(place, request, job)
            return
        self._free(job.pinned)
        yield from self._put_failure(place, request, FAILOVER)

    def _retake(self, place: SourceRef, request: CopyRequest, job: _Job) -> Steps[None]:
        try:
            yield from self._archive(place, request, job)
        except Interrupted:
            raise
        except (LogkeepError, OSError) as error:
            self._free(job.pinned)
            yield from self._record_failure(job.cut, job.nonce, str(error))

    def _learn_archived(self, place: SourceRef) -> None:
        """Where the archived log of this partition ends, by the newest backup."""
        folded = read_chain(place)
        completed = [i for i, state in decided(folded).items() if state.name is StateName.COMPLETED]
        entry = folded.entry(BackupId(max(completed))) if completed else None
        if entry is None:
            return
        record = read_application(place, read_manifest(place, entry))
        if (record.application, record.history) != (self._me.application, self._me.history):
            return
        newest = record.copies[self._me.partition]
        if is_continued(newest, record.id, history=record.history, checkpoints=self.checkpoints()):
            self._keeping.archived_end = newest.cut_end
