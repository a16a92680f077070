"""The whole way with an ensemble: its members backed up online under load, restored to moments that were seen.

Three voters and an observer, over several epochs, whose leaders are killed, and since 3.5 a reconfiguration. All
members of a new ensemble get what is restored, start together, and each shows the tree of that moment.
"""

from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import RELEASES, ZooKeeperRelease
from logkeep.formats.zookeeper.names import epoch_of
from logkeep.formats.zookeeper.transactions import TransactionType
from logkeep.model.segments import Proof
from logkeep.zookeeper.repo.view import ArchiveView
from tests.crash.seeds import seeded
from tests.support.servers.zookeeper_ensemble import ZooKeeperEnsemble
from tests.support.zookeeper.ensemble_members import everywhere_the_same, leave_and_join, members_agree
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.recorded_moments import (
    JAVA,
    SESSION_MS,
    SETTINGS,
    Moments,
    Only,
    Told,
    looked_at,
    restored_to,
    scratch,
)
from tests.support.zookeeper.replayed_files import Replay, transactions_in
from tests.support.zookeeper.repositories import new_local_place, newest
from tests.support.zookeeper.running_servers import CACHE, archive_of, place_of, plain_copy, replays
from tests.support.zookeeper.server_files import bodies_of
from tests.support.zookeeper.tree_recorder import Recording
from tests.support.zookeeper.unstartable_snapshots import WHOLE_SINCE
from tests.support.zookeeper.versions import MATRIX

pytestmark = pytest.mark.xdist_group("zookeeper-ensemble")
MOST_SNAPSHOTS = 4
"""Of each member so many are replayed, evenly chosen."""


def test_a_moment_of_a_working_ensemble_comes_back(tmp_path: Path) -> None:
    """The leader is killed before it, and the observer leaves and joins again behind it."""
    judge("3.9.5", tmp_path, epochs=2, moments=1, most_per_s=1_500)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", [*MATRIX, *(each for each in RELEASES if each not in MATRIX)])
def test_many_moments_of_a_working_ensemble_come_back(version: str, tmp_path: Path) -> None:
    judge(version, tmp_path, epochs=3, moments=12 if version in MATRIX else 3)


def judge(version: str, directory: Path, *, epochs: int, moments: int, most_per_s: int | None = None) -> None:
    told = Told(f"{version}, three voters and an observer", others=True)
    taken = Moments(seeded(f"an ensemble of {version}"))
    ensemble = ZooKeeperEnsemble(directory / "source", CACHE, ZooKeeperRelease(version), SETTINGS, JAVA)
    load = Load(
        [member.client for member in ensemble.members.values()],
        ensemble.password,
        line=ensemble.release.line,
        session_ms=SESSION_MS,
        most_per_s=most_per_s,
        multis=ensemble.release.line >= WHOLE_SINCE,
    )
    view = live(ensemble, load, directory, told, taken, epochs=epochs, moments=moments)
    knows_its_members(view, epochs, ensemble.release)
    has_every_feature(view, directory, ZooKeeperRelease(version))
    for number, moment in enumerate(taken.taken):
        with scratch(directory / f"moment-{number}") as home:
            comes_back(view, moment, ZooKeeperEnsemble(home, CACHE, ZooKeeperRelease(version), SETTINGS, JAVA), told)
    print(told)


def live(
    ensemble: ZooKeeperEnsemble, load: Load, directory: Path, told: Told, taken: Moments, *, epochs: int, moments: int
) -> ArchiveView:
    """The last moments are of the last epoch; a backup is taken in each."""
    place = new_local_place(directory / "repo")
    with ensemble:
        members = [place_of(member, f"zk{number}") for number, member in ensemble.members.items()]
        with told.load(load):
            for epoch in reversed(range(epochs)):
                load.wait_for(600)
                for _ in range(max(moments // epochs, 0 if epoch else 1)):
                    taken.take(load, lambda: everywhere_the_same(ensemble))
                told.backup(load, lambda: archive_of(place, *members))
                if epoch:
                    ensemble.next_epoch()
                elif ensemble.release.line >= (3, 5):
                    leave_and_join(ensemble)
                    load.wait_for(300)
                    told.backup(load, lambda: archive_of(place, *members))
        leader = ensemble.leader()
    members_agree(ensemble, leader, taken.taken[-1].zxid)
    return newest(place)


def knows_its_members(view: ArchiveView, epochs: int, release: ZooKeeperRelease) -> None:
    """Servers before 3.5 do not tell who the voters are."""
    assert {member.name for member in view.members} == {"zk1", "zk2", "zk3", "zk4"}
    assert {member.role for member in view.members} == {"leader", "follower", "observer"}
    assert {member.voters for member in view.members} == {3 if release.line >= (3, 5) else None}
    found = {epoch_of(log.first) for log in view.logs}
    assert len(found) >= epochs
    assert all(epoch_of(log.first) == epoch_of(log.last) for log in view.logs)
    assert {log.proof for log in view.logs if epoch_of(log.first) == max(found)} == {Proof.PROVEN}


def has_every_feature(view: ArchiveView, directory: Path, release: ZooKeeperRelease) -> None:
    """And each member's files alone replay from some snapshots as far as they go."""
    found = Replay()
    for member in view.members:
        files = plain_copy(view, member.name, directory / member.name)
        for log in (each for each in view.logs if each.member == member.name):
            for transaction in transactions_in(bodies_of(files / f"log.{log.first:x}")):
                found.count(transaction)
        kept = [each for each in view.snapshots if each.member == member.name]
        some = tuple(kept[:: max(1, len(kept) // MOST_SNAPSHOTS)])
        for _, replay in replays(Only(view, some), member.name, files):
            assert replay.wrong == []
            found.compared += replay.compared
    assert {
        TransactionType.MULTI,
        TransactionType.CLOSE_SESSION,
        TransactionType.SET_ACL,
        TransactionType.ERROR,
    } <= set(found.kinds)
    assert found.half_failed > 0
    if release.line >= (3, 5):
        assert {TransactionType.RECONFIG, TransactionType.CREATE_CONTAINER, TransactionType.CREATE_TTL} <= set(
            found.kinds
        )
    assert found.compared > 500 or release.line < (3, 6)


def comes_back(view: ArchiveView, moment: Recording, ensemble: ZooKeeperEnsemble, told: Told) -> None:
    members = list(ensemble.members.values())
    restored_to(view, moment, members, told)
    with ensemble:
        for member in members:
            looked_at(member, moment, told)
    told.restores += 1
