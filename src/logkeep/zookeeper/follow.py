"""Following an ensemble: a look, a backup of what is new, and again, until somebody wishes to stop.

Every round that found something new commits a restorable point; the loss that a disaster can cause is the time since
the last round that ended. The active log is read from its last archived record on. The lease is held within a round
and free between rounds. A round that failed for a reason that passes is told and tried again. Now and then the small
objects that rounds leave are merged.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from logkeep.errors import ClusterError, Interrupted, Locked, LogkeepError, TaskFailed
from logkeep.formats.zookeeper.names import counter_of
from logkeep.repository.chain.freshness import put_freshness
from logkeep.repository.upkeep.optimize import Optimized
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import AskWord, ZooKeeperBackupDone, ZooKeeperBackupOptions, back_up
from logkeep.zookeeper.backup.server_files import MemberPlace, ServerFiles, list_files
from logkeep.zookeeper.model.sink import Known
from logkeep.zookeeper.repo.sink import ArchiveSink

_LONGEST_PAUSE_S = 60.0
_LOOK_WITHIN_S = 3
MERGE_EVERY = 32
"""Committed rounds between two looks for small neighbours."""
MERGE_LEAST = 8
"""Fewer small neighbours than this are left for later: every merge commits, and rewrites rows of old backups."""


class Stopping(Protocol):
    """Somebody's wish to stop."""

    @property
    def requested(self) -> bool:
        """The round under way shall be the last."""

    def wait(self, seconds: float) -> None:
        """Sleep, at most until the wish."""


@dataclass(frozen=True)
class ZooKeeperFollowRound:
    """What became of one round."""

    number: int
    took_s: float
    done: ZooKeeperBackupDone | None = None
    """None when nothing was new, or it failed."""
    behind_s: float = 0.0
    """The age of the newest moment at which the archive was seen to hold all that the members had."""
    merged: Optimized | None = None
    """What became of small objects, in a round that looked for them."""
    error: LogkeepError | None = None
    """Why it failed, or, with `done`, what could not be done after its commit."""
    again_in_s: float = 0.0


@dataclass
class ZooKeeperFollower:
    """`archiving` opens the sink of one round; `tell` gets every round as it ends."""

    archiving: Callable[[], AbstractContextManager[ArchiveSink]]
    wish: ZooKeeperBackupOptions
    rounds: RoundSettings
    ask_word: AskWord
    stop: Stopping
    interval_s: float
    tell: Callable[[ZooKeeperFollowRound], None]
    merge: Callable[[], Optimized] | None = None
    """Merges what is worth it; takes the lease itself. None: small objects stay as they are."""
    monotonic: Callable[[], float] = time.monotonic
    _unmerged: int = 0
    """Rounds that committed since the last look for small objects."""
    _whole_at_s: float | None = None
    _failures: int = 0
    _looked: dict[str, ServerFiles] = field(default_factory=dict)
    """What lay in the directories of each member before the newest backup of this run was taken."""
    _kept: dict[str, int] = field(default_factory=dict)
    """The last transaction that it kept of each, proven or not."""

    def run(self) -> None:
        """Until a wish to stop. Raises what no retry cures."""
        number = 0
        while not self.stop.requested:
            number += 1
            one = self._round(number)
            self.tell(one)
            self.stop.wait(one.again_in_s)

    def _round(self, number: int) -> ZooKeeperFollowRound:
        began_s = self.monotonic()
        done, error = None, None
        try:
            with self.archiving() as sink:
                done = self._backed_up(sink)
        except Interrupted:
            raise
        except LogkeepError as failed:
            if not _passes(failed):
                raise
            error = failed
        self._failures = self._failures + 1 if error is not None else 0
        if error is None:
            self._whole_at_s = began_s
        self._unmerged += done is not None
        merged, error = self._merged(error)
        now_s = self.monotonic()
        behind_s = now_s - (self._whole_at_s if self._whole_at_s is not None else began_s)
        return ZooKeeperFollowRound(
            number, now_s - began_s, done, behind_s, merged, error, self._pause_s(now_s - began_s)
        )

    def _merged(self, error: LogkeepError | None) -> tuple[Optimized | None, LogkeepError | None]:
        """Trouble with merging is told, and undoes nothing: the round counts."""
        if self.merge is None or error is not None or self.stop.requested or self._unmerged < MERGE_EVERY:
            return None, error
        self._unmerged = 0
        try:
            return self.merge(), None
        except Interrupted:
            raise
        except LogkeepError as failed:
            return None, failed

    def _pause_s(self, took_s: float) -> float:
        """What is left of the interval; after failures twice as long each time."""
        longer = self.interval_s * 2 ** min(self._failures, 10) if self._failures else self.interval_s
        return max(min(longer, max(_LONGEST_PAUSE_S, self.interval_s)) - took_s, 0.0)

    def _backed_up(self, sink: ArchiveSink) -> ZooKeeperBackupDone | None:
        """Commit what is new; nothing when nothing is."""
        place, looked = sink.session.place, sink.session.clock()
        if sink.known.anything and not self.wish.new_history and self._unchanged(sink.known):
            put_freshness(place, looked, sink.session.folded.completed[-1].id, 0, self._within_s)
            return None
        before = {place.name: list_files(place) for place in self.wish.members}
        done = back_up(self.wish, sink, self.rounds, self.ask_word)
        self._looked, self._kept = before, _kept_of(done)
        self.wish = ZooKeeperBackupOptions(**{**vars(self.wish), "new_history": False})
        put_freshness(place, looked, int(done.name), 0, self._within_s)
        return done

    @property
    def _within_s(self) -> int:
        return int(self.interval_s * _LOOK_WITHIN_S) + 60

    def _unchanged(self, known: Known) -> bool:
        return all(self._is_unchanged(place, known) for place in self.wish.members)

    def _is_unchanged(self, place: MemberPlace, known: Known) -> bool:
        """It says that it is where the archive is, and has no snapshot that is not kept.

        Where nobody answers, or somebody who is behind the archive and hence another server, its files must be those
        of the round before. So they must where an epoch began in which nothing was written yet: its zxid does not tell
        whether something came at the end of the epoch before.
        """
        found, told = list_files(place), self._told(place)
        reached = known.reached.get(place.name)
        last = reached.last if reached is not None else 0
        if told is None or told < max(last, self._kept.get(place.name, 0)):
            return self._looked.get(place.name) == found
        if reached is None or (told > last and (counter_of(told) or self._looked.get(place.name) != found)):
            return False
        names = {f.path.name for f in found.snapshots}
        return not names - {name for member, name in known.snapshots if member == place.name}

    def _told(self, place: MemberPlace) -> int | None:
        try:
            return self.rounds.ask(place.host).zxid if place.host else None
        except ClusterError:
            return None


def _kept_of(done: ZooKeeperBackupDone) -> dict[str, int]:
    kept: dict[str, int] = {}
    for placed in done.gathered.logs:
        kept[placed.kept.member] = max(placed.kept.last, kept.get(placed.kept.member, 0))
    return kept


def follow(
    archiving: Callable[[], AbstractContextManager[ArchiveSink]],
    wish: ZooKeeperBackupOptions,
    rounds: RoundSettings,
    ask_word: AskWord,
    stop: Stopping,
    *,
    interval_s: float,
    tell: Callable[[ZooKeeperFollowRound], None],
    merge: Callable[[], Optimized] | None = None,
) -> None:
    """Rounds of at least `interval_s` until `stop` is wished: what is lost at worst is one interval and one round."""
    ZooKeeperFollower(archiving, wish, rounds, ask_word, stop, interval_s, tell, merge).run()


def _passes(error: LogkeepError) -> bool:
    """Whether the next round may do better. A round begins from the start, and copies again what no commit names: one
    that came to nothing for the files, or for want of room, is not repeated."""
    return error.retry_helps or isinstance(error, Locked | TaskFailed)
