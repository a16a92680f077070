"""Takes one backup of a running Zeebe: choose its id, ask for it, follow it to its end or to the deadline.

The store is listed before the request: an id that it has already would make Zeebe report an old backup as the new one.
"""

import http.client
from collections.abc import Callable, Set
from dataclasses import dataclass, replace

from logkeep.checkpoint.zeebe.take.management import BackupStatus, Management
from logkeep.checkpoint.zeebe.take.rules import (
    BeforeRequest,
    Seen,
    TakeStage,
    clock_of,
    judge,
    latest_in,
    next_number,
    other_history,
    without_result,
)
from logkeep.errors import (
    BackupFailed,
    ClusterNotReady,
    ClusterUnreachable,
    IllegalTransition,
    UsageError,
)
from logkeep.model.time import Clock
from logkeep.model.work import ProgressSink

LABEL = "Zeebe copies its partitions"
_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 5.0
_ANOTHER_ID = "run again: a new id is chosen; with --id give one that was never used"
_STORE = "check that Zeebe reaches its store, then run again: a new id is chosen"


@dataclass(frozen=True)
class TakeLimits:
    timeout_s: float
    first_sign_s: float = 120.0
    """A backup of which the store has nothing after this time has failed."""


@dataclass(frozen=True)
class Waiting:
    """Time: `wait` sleeps, or raises when the user stops the run."""

    clock: Clock
    monotonic: Callable[[], float]
    wait: Callable[[float], None]


@dataclass(frozen=True)
class ZeebeTaken:
    number: int
    status: BackupStatus
    waited_s: float


class Take:
    """One backup. `stored` lists the ids that the store has."""

    def __init__(
        self, management: Management, stored: Callable[[], Set[int]], time: Waiting, progress: ProgressSink
    ) -> None:
        self._management, self._stored, self._time, self._progress = management, stored, time, progress

    def run(self, wanted: int | None, limits: TakeLimits) -> ZeebeTaken:
        """Raises BackupFailed if it failed, did not end in time, or is not the backup that was asked for."""
        number, before = self._request(self._choose(wanted), own_choice=wanted is None)
        began = self._time.monotonic()
        try:
            status = self._followed(number, began, limits)
        finally:
            self._progress.finish()
        waited_s = self._time.monotonic() - began
        if reasons := other_history(status, before, self._management.partitions()):
            what = f"Zeebe reports backup {number} of another history as completed: {'; '.join(reasons)}"
            raise BackupFailed(what, subject=self._management.url, remedy=_ANOTHER_ID)
        return ZeebeTaken(number, status, waited_s)

    def _choose(self, wanted: int | None) -> int:
        """Raises IllegalTransition for an id that cannot become a new backup."""
        known = {each.backup_id for each in self._management.backups()} | self._stored()
        if wanted is None:
            return next_number(self._time.clock(), known)
        if wanted in known:
            what = f"the store has a backup {wanted} already: Zeebe would report that one as the new one"
            raise IllegalTransition(what, subject=self._management.url, remedy=_ANOTHER_ID)
        return wanted

    def _request(self, number: int, *, own_choice: bool) -> tuple[int, BeforeRequest]:
        before = BeforeRequest(clock_of(self._management.partitions()))
        answer = self._management.take(number)
        if answer.status == http.client.CONFLICT and own_choice and (latest := latest_in(answer.why())) is not None:
            number = next_number(self._time.clock(), (number, latest))
            answer = self._management.take(number)
        why = f"Zeebe refuses backup {number}: {answer.why()}"
        if answer.status == http.client.CONFLICT:
            raise IllegalTransition(why, subject=answer.request, remedy=_ANOTHER_ID)
        if answer.status >= http.client.INTERNAL_SERVER_ERROR:
            raise ClusterNotReady(why, subject=answer.request)
        if not http.client.OK <= answer.status < http.client.MULTIPLE_CHOICES:
            raise UsageError(why, subject=answer.request, remedy="check that backups are configured in Zeebe")
        return number, before

    def _followed(self, number: int, began: float, limits: TakeLimits) -> BackupStatus:
        pause, trouble, seen, started = _PAUSE_S, "", Seen(TakeStage.NOT_YET), False
        while True:
            try:
                status = self._management.status(number)
                trouble, seen = "", _later(seen, judge(status))
            except (ClusterUnreachable, ClusterNotReady) as error:
                status, trouble = None, error.what
            if status is not None and seen.stage is TakeStage.COMPLETED:
                return status
            if seen.stage is TakeStage.FAILED:
                what = f"Zeebe reports backup {number} as failed: {seen.reason}"
                raise BackupFailed(what, subject=self._management.url, remedy=_STORE)
            if seen.partitions and not started:
                self._progress.start(LABEL, 0, seen.partitions)
                started = True
            if started:
                self._progress.update(0, seen.done, 0)
            waited_s = self._time.monotonic() - began
            if waited_s >= _limit_s(seen, limits):
                what = without_result(number, seen, waited_s, trouble)
                raise BackupFailed(what, subject=self._management.url, remedy=_STORE)
            self._time.wait(min(pause, max(_limit_s(seen, limits) - waited_s, 0.0)))
            pause = min(pause * 1.5, _LONGEST_PAUSE_S)


def _later(before: Seen, now: Seen) -> Seen:
    """A backup that had begun does not become one that never did."""
    if now.stage is TakeStage.NOT_YET and before.stage is TakeStage.IN_PROGRESS:
        return replace(before, reason=now.reason)
    return now


def _limit_s(seen: Seen, limits: TakeLimits) -> float:
    return min(limits.first_sign_s, limits.timeout_s) if seen.stage is TakeStage.NOT_YET else limits.timeout_s
