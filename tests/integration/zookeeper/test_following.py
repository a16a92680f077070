"""Following one real server under load: what is new is committed again and again, and nothing else."""

import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.follow import Follower, FollowRound
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone, ZooKeeperBackupOptions
from logkeep.zookeeper.follow import FollowedEnsemble
from logkeep.zookeeper.repo.sink import ArchiveSink, archiving
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.repositories import new_place, newest
from tests.support.zookeeper.running_servers import CACHE, asking, place_of, plain_copy, replays, word

pytestmark = pytest.mark.xdist_group("zookeeper-backup")
SETTINGS = {"snapCount": "700", "preAllocSize": "4096", "forceSync": "no"}
MOST_LEFT = 2
"""Snapshots that a server can have under way."""


class Rounds:
    """Follows until so many rounds committed something."""

    def __init__(self, wanted: int) -> None:
        self._wanted, self._end = wanted, threading.Event()
        self.seen: list[FollowRound[ZooKeeperBackupDone]] = []

    @property
    def requested(self) -> bool:
        return self._end.is_set()

    def wait(self, seconds: float) -> None:
        self._end.wait(seconds)

    def raising(self) -> AbstractContextManager[None]:
        return nullcontext()

    def tell(self, one: FollowRound[ZooKeeperBackupDone]) -> None:
        self.seen.append(one)
        if sum(r.done is not None for r in self.seen) >= self._wanted:
            self._end.set()


def test_following_commits_what_is_new_and_nothing_else(tmp_path: Path) -> None:
    place = new_place()
    server = EmbeddedZooKeeper(tmp_path / "server", CACHE, settings=SETTINGS)
    with server:
        with Load([server.client], server.password, line=(3, 9), most_per_s=500) as load:
            load.wait_for(200)
            busy = Rounds(4)
            follow(place, server, busy)
        assert [r.error for r in busy.seen if r.error] == []
        quiet = Rounds(1)  # what came since; then nothing is new any more
        follow(place, server, quiet)
        check_nothing_new(place, server)
    view = newest(place)
    assert view.manifest.gaps == ()
    files = plain_copy(view, "zk1", tmp_path / "files")
    assert all(replay.wrong == [] for _, replay in replays(view, "zk1", files))
    assert all(r.behind_s >= 0 for r in (*busy.seen, *quiet.seen))


def follow(place: SourceRef, server: EmbeddedZooKeeper, rounds: Rounds) -> None:
    def sink() -> AbstractContextManager[ArchiveSink]:
        return archiving(place, clock=utc_now, tokens=random_token)

    options = ZooKeeperBackupOptions((place_of(server, "zk1"),))
    Follower(FollowedEnsemble(place, sink, options, asking(), word, 0.2), rounds, 0.2, rounds.tell).run()


def check_nothing_new(place: SourceRef, server: EmbeddedZooKeeper) -> None:
    """A round that finds nothing commits nothing, and says that it looked.

    Not always the first one: the server may have been writing a snapshot when the load ended.
    """

    class UntilNothing(Rounds):
        def tell(self, one: FollowRound[ZooKeeperBackupDone]) -> None:
            self.seen.append(one)
            if one.done is None or len(self.seen) > MOST_LEFT:
                self._end.set()

    before, rounds = len(read_chain(place).completed), UntilNothing(0)
    follow(place, server, rounds)
    assert (rounds.seen[-1].done, rounds.seen[-1].error) == (None, None)
    assert len(read_chain(place).completed) == before + len(rounds.seen) - 1
