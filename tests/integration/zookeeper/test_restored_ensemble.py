"""A real ensemble, restored: identical members, one epoch above all, and no way back for a forgotten one."""

from collections.abc import Sequence

import pytest

from logkeep.formats.zookeeper.names import epoch_of, snapshot_name
from logkeep.zookeeper.restore.target.state import EPOCH_FILES
from logkeep.zookeeper.restore.values import Sessions, ZooKeeperRestoreOptions
from tests.support.servers.zookeeper_ensemble import ZooKeeperMember, running
from tests.support.zookeeper.restored_servers import compared, refuses, restored, target_of
from tests.support.zookeeper.stopped_ensemble import ABANDONED, Stood
from tests.support.zookeeper.tree_recorder import record

pytestmark = pytest.mark.xdist_group("zookeeper-restored-ensemble")


def _wish(members: Sequence[ZooKeeperMember]) -> ZooKeeperRestoreOptions:
    """A least epoch says that somebody knows of the others."""
    targets = tuple(target_of(member) for member in members)
    return ZooKeeperRestoreOptions(targets=targets, sessions=Sessions.DROP, ensemble=True, min_epoch=1)


def test_all_members_have_the_tree_and_an_epoch_above_all(stood: Stood) -> None:
    members = list(stood.ensemble.members.values())
    prepared = restored(stood.view, _wish(members), stood.zxid)
    assert prepared.planned.epoch is not None
    assert prepared.planned.epoch > epoch_of(stood.highest)
    assert prepared.dropped.ephemerals >= 1
    tree = prepared.replayed.tree
    assert tree.nodes[b"/kept"].data == b"here"
    with stood.ensemble:
        for member in members:
            assert compared(member, tree) == []
            assert not refuses(member.client, stood.highest)
            state = member.state()
            assert state is not None
            assert epoch_of(state.zxid) > prepared.planned.epoch - 1


def test_a_forgotten_member_does_not_bring_old_data_back(stood: Stood) -> None:
    """It has later zxids and a later snapshot, and the first leader is elected with its vote."""
    members = stood.ensemble.members
    first, _, forgotten = stood.ensemble.voters
    prepared = restored(stood.view, _wish([m for m in members.values() if m is not forgotten]), stood.zxid)
    with running(forgotten, first), stood.ensemble:
        for member in members.values():
            assert compared(member, prepared.replayed.tree) == []
    with stood.ensemble:  # and it stays so
        assert compared(forgotten, prepared.replayed.tree) == []


@pytest.mark.parametrize("live", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["of-the-data", "live"])
def test_without_the_epoch_the_old_data_would_come_back(stood: Stood, live: bool) -> None:
    """The same restore with the name that the data had, and its epoch or the last one that was in use.

    The forgotten one and a restored one are started first. Two restored voters are a majority, and on a busy machine
    they elect one of them before a forgotten one that is started with them has read its files.
    """
    members = stood.ensemble.members
    first, second, forgotten = stood.ensemble.voters
    others = [member for member in members.values() if member is not forgotten]
    prepared = restored(stood.view, _wish(others), stood.zxid)
    for member in others:
        held = member.data_dir / "version-2"
        (held / snapshot_name(prepared.planned.named)).rename(held / snapshot_name(stood.zxid))
        for name in EPOCH_FILES:
            (held / name).write_text(str(epoch_of(stood.highest if live else stood.zxid)))
    with running(forgotten, first), stood.ensemble:
        found = record(second.client, second.password).nodes
    assert sum(path.startswith("/abandoned") for path in found) > ABANDONED
