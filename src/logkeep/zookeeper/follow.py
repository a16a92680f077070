"""One ensemble in the follow loop: read what the servers report, back up what is new.

The active log is read from its last archived record on. What a disaster can lose is what was written since the last
round that ended. The loop is `repository.follow`.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from logkeep.errors import ClusterError, Locked, LogkeepError, StoreFull, TaskFailed
from logkeep.formats.zookeeper.names import counter_of
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.follow import LONGEST_PAUSE_S, RetryPause, SourceState
from logkeep.repository.upkeep.optimize import Optimized
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import AskWord, ZooKeeperBackupDone, ZooKeeperBackupOptions, back_up
from logkeep.zookeeper.backup.server_files import MemberPlace, ServerFiles, list_files
from logkeep.zookeeper.model.sink import Known
from logkeep.zookeeper.repo.sink import ArchiveSink


@dataclass
class FollowedEnsemble:
    """The `FollowedSource` of an ensemble. `archiving` opens the sink of one round."""

    place: SourceRef
    archiving: Callable[[], AbstractContextManager[ArchiveSink]]
    options: ZooKeeperBackupOptions
    rounds: RoundSettings
    ask_word: AskWord
    interval_s: float
    merge: Callable[[], Optimized | None] = lambda: None
    _newest_id: int = 0
    _files: dict[str, ServerFiles] = field(default_factory=dict)
    """The files of each member before the newest backup of this run was taken."""
    _archived: dict[str, int] = field(default_factory=dict)
    """The last transaction that this backup archived of each member, proven or not."""

    @property
    def retry_pause(self) -> RetryPause:
        return RetryPause(2 * self.interval_s, max(LONGEST_PAUSE_S, self.interval_s))

    def round(self) -> ZooKeeperBackupDone | None:
        """Commit what is new; None when nothing is."""
        with self.archiving() as sink:
            known, places = sink.known, self.options.members
            if known.anything and not self.options.new_history and all(self._is_unchanged(p, known) for p in places):
                self._newest_id = sink.session.folded.completed[-1].id
                return None
            files = {place.name: list_files(place) for place in self.options.members}
            done = back_up(self.options, sink, self.rounds, self.ask_word)
        self._files, self._archived = files, _last_archived(done)
        self.options = replace(self.options, new_history=False)
        self._newest_id = int(done.name)
        return done

    def changed(self, _done: ZooKeeperBackupDone) -> bool:
        return True

    def state(self, _done: ZooKeeperBackupDone | None, _took_s: float) -> SourceState:
        return SourceState(self._newest_id, 0, int(self.interval_s * 3) + 60)

    def retry_cures(self, error: LogkeepError) -> bool:
        """A round begins from the start, and copies again what no commit names: one that failed because of the files is
        not repeated. One that found the store full has deleted what it stored."""
        return error.retry_helps or isinstance(error, Locked | TaskFailed | StoreFull)

    def _is_unchanged(self, place: MemberPlace, known: Known) -> bool:
        """The server reports the archive's last transaction, and has no snapshot that is not archived.

        Where no server answers, or one reports an older transaction and hence is another server, its files must equal
        those of the round before. The same holds where an epoch began in which nothing was written yet: its zxid does
        not show whether something was written at the end of the epoch before.
        """
        found, reported = list_files(place), self._reported_zxid(place)
        reached = known.reached.get(place.name)
        last = reached.last if reached is not None else 0
        if reported is None or reported < max(last, self._archived.get(place.name, 0)):
            return self._files.get(place.name) == found
        if reached is None or (reported > last and (counter_of(reported) or self._files.get(place.name) != found)):
            return False
        names = {f.path.name for f in found.snapshots}
        return not names - {name for member, name in known.snapshots if member == place.name}

    def _reported_zxid(self, place: MemberPlace) -> int | None:
        try:
            return self.rounds.ask(place.host).zxid if place.host else None
        except ClusterError:
            return None


def _last_archived(done: ZooKeeperBackupDone) -> dict[str, int]:
    last: dict[str, int] = {}
    for placed in done.gathered.logs:
        last[placed.kept.member] = max(placed.kept.last, last.get(placed.kept.member, 0))
    return last
