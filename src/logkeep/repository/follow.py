"""The loop of `backup --follow`: one round after the other until the user stops it, the same for every kind of source.

Every round that finds something new commits a restorable backup. The lease is held during a round and free between
rounds. A round that fails for a temporary reason is reported and repeated; any other error ends the run. After a full
disk another holder of the lease ends it too, unless that holder frees space. Now and then the small objects that rounds
leave are merged. What a round does is the kind's part (`FollowedSource`).
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from logkeep.errors import Interrupted, Locked, LogkeepError, StoreFull
from logkeep.model.time import Clock, utc_now
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.freshness import put_freshness
from logkeep.repository.upkeep.optimize import Optimized

MERGE_EVERY = 32
"""Committed rounds between two attempts to merge small objects."""
MERGE_LEAST = 8
"""Fewer small neighbours than this are left for later: every merge commits, and rewrites rows of old backups."""
LONGEST_PAUSE_S = 60.0
FREES_SPACE = frozenset({"prune", "delete"})
"""Operations that a run waits for after its own full disk: they are what the user does about it."""

DoneT = TypeVar("DoneT")


class Stopping(Protocol):
    """The user's request to stop: signals in a command."""

    @property
    def requested(self) -> bool:
        """The current round is the last."""

    def wait(self, seconds: float) -> None:
        """Sleep, at most until the request."""

    def raising(self) -> AbstractContextManager[None]:
        """Inside, a second request raises at once."""


@dataclass(frozen=True)
class RetryPause:
    """Pauses after failures in a row: they double from the first to the longest."""

    first_s: float = 1.0
    longest_s: float = LONGEST_PAUSE_S


@dataclass(frozen=True)
class SourceState:
    """What `status` reports of the source after a round."""

    newest_id: int
    lag_offsets: int
    next_within_s: int
    """If no other round ends within this time, `status` reports that the run has stopped or makes no progress."""


class FollowedSource(Protocol[DoneT]):
    """What one kind of source brings to the loop."""

    @property
    def place(self) -> SourceRef: ...

    @property
    def retry_pause(self) -> RetryPause: ...

    def round(self) -> DoneT | None:
        """Back up what is new and commit it. None: nothing was new, and the kind has nothing else to report."""

    def changed(self, done: DoneT) -> bool:
        """Whether the round committed a backup."""

    def state(self, done: DoneT | None, took_s: float) -> SourceState:
        """The state after a round that succeeded. If this fails, the error is reported and the round counts."""

    def merge(self) -> Optimized | None:
        """Merge small objects where it is worth it; takes the lease itself."""

    def retry_cures(self, error: LogkeepError) -> bool:
        """Whether the next round may succeed although this one failed, without any action of the user."""


@dataclass(frozen=True)
class FollowRound(Generic[DoneT]):
    """The outcome of one round."""

    number: int
    took_s: float = 0.0
    done: DoneT | None = None
    """None when nothing was new or the round failed."""
    changed: bool = False
    """Whether the round committed a backup."""
    behind_s: float = 0.0
    """The age of the newest moment at which the archive held all that the source had."""
    merged: Optimized | None = None
    error: LogkeepError | None = None
    """Why the round failed; with `done`, what failed after its commit."""
    again_in_s: float = 0.0

    @property
    def failed(self) -> bool:
        return self.error is not None and self.done is None


@dataclass
class Follower(Generic[DoneT]):
    """One run. `report` gets every round as it ends."""

    source: FollowedSource[DoneT]
    stop: Stopping
    interval_s: float
    report: Callable[[FollowRound[DoneT]], None]
    clock: Clock = utc_now
    monotonic: Callable[[], float] = time.monotonic
    _unmerged: int = 0
    """Rounds that committed since the last merge."""
    _whole_at_s: float | None = None
    _full: bool = False
    """A round met a full disk or store, and none has ended well since."""

    def run(self) -> None:
        """Until the user stops it. Raises what no retry cures, and the stop's own error for a second request."""
        number = failures = 0
        while True:
            number += 1
            began_s = self.monotonic()
            with self.stop.raising():
                one = self._round(number, began_s)
            now_s = self.monotonic()
            failures = failures + 1 if one.failed else 0
            behind_s = now_s - (began_s if self._whole_at_s is None else self._whole_at_s)
            again_in_s = pause_s(self.interval_s, now_s - began_s, failures, self.source.retry_pause)
            self.report(replace(one, took_s=now_s - began_s, behind_s=behind_s, again_in_s=again_in_s))
            self.stop.wait(again_in_s)
            if self.stop.requested:
                return

    def _round(self, number: int, began_s: float) -> FollowRound[DoneT]:
        compared_at = self.clock()
        try:
            done = self.source.round()
        except LogkeepError as error:
            if isinstance(error, Interrupted) or not self.source.retry_cures(error):
                raise
            if self._full and held_by_another_run(error):
                raise
            self._full = self._full or isinstance(error, StoreFull)
            return FollowRound(number, error=error)
        self._whole_at_s, self._full = began_s, False
        changed = done is not None and self.source.changed(done)
        self._unmerged += changed
        return self._after(FollowRound(number, done=done, changed=changed), compared_at, began_s)

    def _after(self, one: FollowRound[DoneT], compared_at: datetime, began_s: float) -> FollowRound[DoneT]:
        """Steps after the commit. Errors cannot undo it: they are reported, and the round counts."""
        try:
            state = self.source.state(one.done, self.monotonic() - began_s)
            put_freshness(self.source.place, compared_at, state.newest_id, state.lag_offsets, state.next_within_s)
            if self.stop.requested or self._unmerged < MERGE_EVERY:
                return one
            self._unmerged = 0
            return replace(one, merged=self.source.merge())
        except Interrupted:
            raise
        except LogkeepError as error:
            if one.done is None and not self.source.retry_cures(error):
                raise  # nothing was committed that the run must report
            return replace(one, error=error)


def held_by_another_run(error: LogkeepError) -> bool:
    """Whether another run has the lease for work that frees no space. An unknown holder is asked for again."""
    return isinstance(error, Locked) and bool(error.operation) and error.operation not in FREES_SPACE


def pause_s(interval_s: float, took_s: float, failures: int, retry: RetryPause) -> float:
    """Rounds begin an interval apart; after failures the pause doubles with each."""
    if failures:
        return min(retry.first_s * 2.0 ** min(failures - 1, 16), retry.longest_s)
    return max(interval_s - took_s, 0.0)
