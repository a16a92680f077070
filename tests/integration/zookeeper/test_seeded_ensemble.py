"""What real ensembles make of data that was put under them, one snapshot and no log: why a restore does what it does.

The tree is that of a real ensemble which went on into a later epoch. New directories each time; the observer stays off.
"""

import shutil
from pathlib import Path

import pytest

from logkeep.errors import ServerFailed
from logkeep.formats.zookeeper.names import epoch_of, snapshot_name
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.zookeeper.model.tree import Tree, rows_of
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.staged_files import drop_sessions
from logkeep.zookeeper.restore.target.state import EPOCH_FILES
from logkeep.zookeeper.restore.values import Sessions, ZooKeeperRestoreOptions
from logkeep.zookeeper.timeline.plan import ToZxid
from logkeep.zookeeper.timeline.verified_path import choose
from tests.support.processes import wait_for
from tests.support.servers.zookeeper_ensemble import ZooKeeperEnsemble, ZooKeeperMember, running
from tests.support.zookeeper.recorded_moments import JAVA
from tests.support.zookeeper.restored_servers import compared, path_to, refuses, restored, target_of
from tests.support.zookeeper.running_servers import CACHE
from tests.support.zookeeper.stopped_ensemble import Stood
from tests.support.zookeeper.tree_recorder import record

pytestmark = pytest.mark.xdist_group("zookeeper-restored-ensemble")
ASKED = 60
"""So often members are asked that must not serve."""


def new_ensemble(stood: Stood, directory: Path, *java: str) -> ZooKeeperEnsemble:
    return ZooKeeperEnsemble(directory, CACHE, stood.ensemble.release, {}, (*JAVA, *java))


def tree_of(stood: Stood, *, ephemerals: bool = False) -> Tree:
    tree = choose(stood.view, ToZxid(stood.zxid)).replayed.tree
    if not ephemerals:
        drop_sessions(tree)
    return tree


def seed(member: ZooKeeperMember, tree: Tree, epoch: int | None) -> None:
    """With the name that the tree has, without sessions; with epoch files or none."""
    held = member.data_dir / "version-2"
    held.mkdir(parents=True)
    acls, rows = rows_of(tree)
    (held / snapshot_name(tree.zxid)).write_bytes(b"".join(exact_snapshot({}, acls, rows, zxid=tree.zxid, digest=None)))
    for name in EPOCH_FILES if epoch is not None else ():
        (held / name).write_text(str(epoch))


def epoch_now(member: ZooKeeperMember) -> int:
    state = member.state()
    assert state is not None
    return epoch_of(state.zxid)


def test_without_epoch_files_zxids_come_again(stood: Stood, tmp_path: Path) -> None:
    """All have the tree; and clients that saw what happened later are sent away. So a restore writes an epoch."""
    voters, tree = new_ensemble(stood, tmp_path).voters, tree_of(stood)
    for voter in voters:
        seed(voter, tree, None)
    with running(*voters):
        for voter in voters:
            assert compared(voter, tree) == []
            assert epoch_of(stood.zxid) < epoch_now(voter) <= epoch_of(stood.highest)
            assert refuses(voter.client, stood.highest)


def test_epoch_files_that_are_too_old_are_refused_by_all(stood: Stood, tmp_path: Path) -> None:
    tree = tree_of(stood)
    for voter in new_ensemble(stood, tmp_path).voters:
        seed(voter, tree, epoch_of(stood.zxid) - 1)
        with pytest.raises(ServerFailed, match="exited while starting"):
            voter.start()


@pytest.mark.parametrize("newer", [0, pytest.param(6, marks=pytest.mark.soak)], ids=["live", "newer"])
def test_epoch_files_of_the_last_epoch_let_clients_in_again(stood: Stood, tmp_path: Path, newer: int) -> None:
    """Under the name that the tree had, with an epoch that it never saw: all go on with the next one."""
    voters, tree, epoch = new_ensemble(stood, tmp_path).voters, tree_of(stood), epoch_of(stood.highest) + newer
    assert epoch > epoch_of(tree.zxid)
    for voter in voters:
        seed(voter, tree, epoch)
    with running(*voters):
        for voter in voters:
            assert compared(voter, tree) == []
            assert epoch_now(voter) > epoch
            assert not refuses(voter.client, stood.highest)


@pytest.mark.soak
def test_a_least_epoch_is_what_all_go_on_from(stood: Stood, tmp_path: Path) -> None:
    voters = new_ensemble(stood, tmp_path).voters
    targets = tuple(target_of(voter) for voter in voters)
    wish = ZooKeeperRestoreOptions(targets=targets, sessions=Sessions.DROP, ensemble=True, min_epoch=8)
    prepared = restored(stood.view, wish, stood.zxid)
    assert prepared.planned.epoch == 9
    with running(*voters):
        for voter in voters:
            assert compared(voter, prepared.replayed.tree) == []
            assert epoch_now(voter) >= 10
            assert not refuses(voter.client, stood.highest)


def restored_one(stood: Stood, member: ZooKeeperMember) -> Tree:
    """A restore of one member alone says that the others need it too, and wants to know their epochs."""
    wish = ZooKeeperRestoreOptions(targets=(target_of(member),), sessions=Sessions.DROP, ensemble=True)
    refused = prepare(stood.view, path_to(stood.view, stood.zxid), wish).planned
    assert any("only 1 of the ensemble's members" in obstacle.what for obstacle in refused.obstacles)
    assert "ensemble-member" in {finding.code for finding in refused.findings}
    known = ZooKeeperRestoreOptions(
        targets=wish.targets, sessions=Sessions.DROP, ensemble=True, min_epoch=epoch_of(stood.highest)
    )
    prepared = restored(stood.view, known, stood.zxid)
    return prepared.replayed.tree


@pytest.mark.soak
def test_two_empty_members_that_start_first_win(stood: Stood, tmp_path: Path) -> None:
    """And the one that was restored can never join them."""
    seeded, *others = new_ensemble(stood, tmp_path).voters
    restored_one(stood, seeded)
    with running(*others):
        seeded.launch()
        try:
            wait_for(lambda: "less than accepted epoch" in seeded.log.read_text(), "the restored member to give up")
            assert not seeded.serves()
        finally:
            seeded.stop()
        assert all("/kept" not in record(other.client, other.password).nodes for other in others)


@pytest.mark.soak
def test_one_member_that_starts_first_gives_its_tree_to_all(stood: Stood, tmp_path: Path) -> None:
    seeded, second, third = new_ensemble(stood, tmp_path).voters
    tree = restored_one(stood, seeded)
    with running(seeded, second), running(third):
        for member in (seeded, second, third):
            assert compared(member, tree) == []


@pytest.mark.soak
@pytest.mark.parametrize("once_stood", ["3.9.5"], indirect=True)
def test_members_that_may_not_begin_with_nothing_wait_for_the_restored(stood: Stood, tmp_path: Path) -> None:
    """`db.autocreate=false`, which 3.4 does not know: empty members do not vote, until a file says that one may."""
    seeded, second, third = members = new_ensemble(stood, tmp_path, "-Dzookeeper.db.autocreate=false").voters
    tree = restored_one(stood, seeded)
    try:
        for member in members:
            member.launch()
        for empty in (second, third):
            wait_for(lambda: "setting zxid to -1" in empty.log.read_text(), "an empty tree")  # noqa: B023 - called here
        assert not any(member.serves() for _ in range(ASKED) for member in members)
        third.stop()
        shutil.rmtree(third.data_dir / "version-2")  # it has written down an epoch that it would not start with
        (third.log_dir / "initialize").touch()  # beside the logs, not the snapshots
        third.launch()
        for member in members:
            member.wait_until_serving()
            assert compared(member, tree) == []
    finally:
        for member in members:
            member.stop()


def test_ephemerals_without_their_sessions_part_the_members_for_good(stood: Stood, tmp_path: Path) -> None:
    """The leader removes them and tells nobody. So a restore drops both or keeps both."""
    ensemble, tree = new_ensemble(stood, tmp_path), tree_of(stood, ephemerals=True)
    for voter in ensemble.voters:
        seed(voter, tree, None)
    with running(*ensemble.voters):
        has = {voter: "/ephemeral" in record(voter.client, voter.password).nodes for voter in ensemble.voters}
        leader = ensemble.leader()
    assert not has[leader]
    assert any(has.values())
