"""A --zk-host that is another server: its word cuts no backup, in a bundle, in a repository, or round by round."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from logkeep.errors import ClusterUnreachable
from logkeep.model.segments import Proof
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.follow import Follower, FollowRound
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone, ZooKeeperBackupOptions
from logkeep.zookeeper.backup.server_identity import contradicted, processes_all
from logkeep.zookeeper.follow import FollowedEnsemble
from logkeep.zookeeper.repo.sink import archiving
from logkeep.zookeeper.server.four_letter import ServerState
from tests.support.zookeeper.handmade_directories import MadeServer, bundled, rounds
from tests.support.zookeeper.repositories import archived, new_place, newest, zxids


@pytest.fixture
def server(tmp_path: Path) -> MadeServer:
    """A snapshot at 2 and two logs up to 8, all of it processed."""
    made = MadeServer(tmp_path / "server", zxid=8)
    made.snapshot(2)
    made.log([1, 2, 3])
    made.log([4, 5, 6, 7, 8])
    return made


def kept_in_bundle(server: MadeServer, out: Path) -> tuple[list[tuple[int, int, Proof]], set[str], int]:
    view, done = bundled(server, out)
    return [(log.first, log.last, log.proof) for log in view.logs], {f.code for f in done.findings}, done.exit_code


def kept_in_archive(server: MadeServer, _out: Path) -> tuple[list[tuple[int, int, Proof]], set[str], int]:
    place = new_place()
    done = archived(place, server)
    pieces = [(log.first, log.last, log.proof) for log in newest(place).logs]
    return sorted(pieces), {f.code for f in done.findings}, done.exit_code


@pytest.mark.parametrize("kept", [kept_in_bundle, kept_in_archive])
@pytest.mark.parametrize(
    ("word", "mode", "code"),
    [
        (0, "standalone", "other-server"),
        (1, "follower", "other-server"),  # its snapshot says more
        (5, "standalone", "other-server"),
        (7, "standalone", "other-server"),
        (5, "", "other-server"),
        (2, "leader", "server-lags"),
        (5, "follower", "server-lags"),
        (7, "leader", "server-lags"),
        (7, "observer", "server-lags"),
    ],
)
def test_the_word_of_another_server_cuts_nothing(
    server: MadeServer, tmp_path: Path, kept: Callable[..., object], word: int, mode: str, code: str
) -> None:
    server.zxid, server.mode = word, mode
    pieces = [(1, 2, Proof.PROVEN), (3, 3, Proof.UNPROVEN), (4, 8, Proof.UNPROVEN)]
    assert kept(server, tmp_path / "out") == (pieces, {code}, 2)


def test_a_word_that_stays_behind_is_told_with_both_numbers(server: MadeServer, tmp_path: Path) -> None:
    server.zxid, server.mode = 6, "follower"
    _, done = bundled(server, tmp_path / "out")
    (finding,) = done.findings
    assert "it is at 0x6, their logs were at 0x8 before it was asked" in finding.what
    assert "0x3 to 0x8 may not be committed" in finding.what
    assert "--zk-host" in finding.remedy


@pytest.mark.parametrize("mode", ["leader", "follower", "standalone"])
def test_what_a_server_logged_before_it_went_away_is_kept_and_labelled(server: MadeServer, mode: str) -> None:
    """It may have processed all of it: nobody can be asked any more."""
    words = iter([6])

    def ask(_host: str) -> ServerState:
        zxid = next(words, None)
        if zxid is None:
            raise ClusterUnreachable("it was stopped", subject="made:2181")
        return ServerState(zxid, mode, "3.9.5")

    place, heard = new_place(), list[FollowRound[ZooKeeperBackupDone]]()
    follower(place, server, heard, replace(rounds(server), ask=ask), rounds_wanted=1).run()
    assert sorted(zxids(newest(place))) == [(1, 2), (3, 3), (4, 8)]
    assert heard[0].done is not None
    assert [f.code for f in heard[0].done.findings] == ["server-unreachable"]
    assert heard[0].done.exit_code == 2


@pytest.mark.parametrize("mode", ["standalone", "leader", "follower"])
def test_what_a_slow_disk_or_majority_holds_back_is_waited_for(server: MadeServer, mode: str) -> None:
    """A record is in the log a moment before it is processed."""
    words = iter([6, 6, 7])
    slow = rounds(server, patience_s=5.0)
    asking = replace(slow, ask=lambda _host: ServerState(next(words, 8), mode, "3.9.5"))
    place, heard = new_place(), list[FollowRound[ZooKeeperBackupDone]]()
    follower(place, server, heard, asking, rounds_wanted=1).run()
    assert zxids(newest(place)) == [(1, 3), (4, 6)]
    assert heard[0].done is not None
    assert (heard[0].done.exit_code, heard[0].done.findings) == (0, [])


@pytest.mark.parametrize(
    ("state", "epoch", "expected"),
    [
        (ServerState(1, "standalone"), None, True),
        (ServerState(1, "standalone"), 3, True),
        (ServerState(1, "follower"), None, False),
        (ServerState(1), None, True),
        (ServerState(1), 3, False),
    ],
)
def test_who_processes_all_that_it_logs(state: ServerState, epoch: int | None, expected: bool) -> None:
    assert processes_all(state, epoch) is expected


def test_a_word_at_what_was_processed_contradicts_nothing() -> None:
    assert [contradicted(ServerState(zxid), [3, 7]) for zxid in (6, 7, 8)] == [True, False, False]
    assert not contradicted(ServerState(0), [])


class StopAfter:
    """A wish to stop after so many rounds."""

    def __init__(self, most: int) -> None:
        self.left = most

    @property
    def requested(self) -> bool:
        return self.left <= 0

    def wait(self, _seconds: float) -> None:
        self.left -= 1

    def raising(self) -> AbstractContextManager[None]:
        return nullcontext()


def follower(
    place: SourceRef,
    server: MadeServer,
    heard: list[FollowRound[ZooKeeperBackupDone]],
    asking: RoundSettings,
    *,
    rounds_wanted: int,
) -> Follower[ZooKeeperBackupDone]:
    ensemble = FollowedEnsemble(
        place,
        lambda: archiving(place, clock=utc_now, tokens=random_token),
        ZooKeeperBackupOptions((server.place("zk1"),)),
        asking,
        lambda _, word: word,
        0.0,
    )
    return Follower(ensemble, StopAfter(rounds_wanted), 0.0, heard.append)


@pytest.mark.parametrize("word", [None, 0, 1, 5])
def test_rounds_that_cannot_ask_the_server_commit_what_is_new_once(server: MadeServer, word: int | None) -> None:
    place, heard = new_place(), list[FollowRound[ZooKeeperBackupDone]]()
    archived(place, server)
    log = server.log([9, 10])
    server.zxid = word
    following = follower(place, server, heard, rounds(server), rounds_wanted=3)
    following.run()
    assert [one.done is not None for one in heard] == [True, False, False]
    assert zxids(newest(place))[-1] == (9, 10)
    server.add(log, [11])
    following.stop = StopAfter(2)
    following.run()
    assert [one.done is not None for one in heard[3:]] == [True, False]
    assert zxids(newest(place))[-1] == (9, 11)
    server.zxid = 11
    following.stop = StopAfter(2)
    following.run()
    assert [one.done.exit_code if one.done else None for one in heard[5:]] == [0, None]


def test_an_epoch_in_which_nobody_writes_is_nothing_new(server: MadeServer) -> None:
    """What the end of the epoch before brought is, though the new epoch's zxid does not tell of it."""
    server.mode = "leader"
    place, heard = new_place(), list[FollowRound[ZooKeeperBackupDone]]()
    following = follower(place, server, heard, rounds(server), rounds_wanted=2)
    following.run()
    assert [one.done is not None for one in heard] == [True, False]
    server.zxid = 1 << 32
    following.stop = StopAfter(3)
    following.run()
    assert [one.done is not None for one in heard[2:]] == [False, False, False]
    server.add(server.log_dir / "log.4", [9])
    server.zxid = 2 << 32
    following.stop = StopAfter(3)
    following.run()
    assert [one.done is not None for one in heard[5:]] == [True, False, False]
    assert zxids(newest(place))[-1] == (9, 9)
    server.log([(2 << 32) + 1])
    server.zxid = (2 << 32) + 1
    following.stop = StopAfter(2)
    following.run()
    assert [one.done is not None for one in heard[8:]] == [True, False]
