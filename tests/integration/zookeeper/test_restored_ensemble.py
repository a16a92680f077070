"""A real ensemble, restored: identical members, one epoch above all, and no way back for a forgotten one."""

import os
import shutil
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import ZooKeeperRelease
from logkeep.formats.zookeeper.names import epoch_of, snapshot_name
from logkeep.spark.cache import cache_dir
from logkeep.zookeeper.directory_view import DirectoryView
from logkeep.zookeeper.restore.holding import EPOCH_FILES
from logkeep.zookeeper.restore.values import RestoreWish, Sessions
from tests.integration.processes import wait_for
from tests.servers.zookeeper_ensemble import ZooKeeperEnsemble, ZooKeeperMember
from tests.zookeeper.files import snapshots
from tests.zookeeper.load import Load
from tests.zookeeper.recording import kazoo, record
from tests.zookeeper.restoring import compared, connect_request, restored, target_of, view_of

pytestmark = pytest.mark.xdist_group("zookeeper-restored-ensemble")
_ABANDONED = 50


@dataclass(frozen=True)
class Stood:
    """An ensemble that was stopped after it went on behind `zxid`: later nodes, a later epoch, later snapshots."""

    ensemble: ZooKeeperEnsemble
    view: DirectoryView
    zxid: int
    highest: int
    before: Path
    """A copy of all its directories."""

    def again(self) -> None:
        """All directories as they were when it was stopped."""
        for member in self.ensemble.members.values():
            for directory in (member.data_dir, member.log_dir):
                shutil.rmtree(directory)
                shutil.copytree(self.before / str(member.number) / directory.name, directory)


@pytest.fixture(scope="module", params=["3.9.5", pytest.param("3.4.14", marks=pytest.mark.soak)])
def stood(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stood:
    home = tmp_path_factory.mktemp("ensemble")
    release = ZooKeeperRelease(request.param)
    ensemble = ZooKeeperEnsemble(home / "members", cache_dir(os.environ, Path.home()), release, {"snapCount": "300"})
    with ensemble:
        hosts = [member.client for member in ensemble.voters]
        with Load(hosts, ensemble.password, line=release.line) as load:
            load.wait_for(1000)
        ensemble.next_epoch()
        with kazoo(ensemble.voters[0].client, ensemble.password) as client:
            client.create("/kept", b"here")
            client.create("/ephemeral", b"", ephemeral=True)
            zxid = client.exists("/ephemeral").czxid
            for number in range(_ABANDONED):
                client.create(f"/abandoned-{number}", b"x" * 100)
        ensemble.next_epoch()
        with kazoo(ensemble.voters[0].client, ensemble.password) as client:
            client.create("/abandoned-at-last", b"")
            for number in range(700):
                client.set_async("/kept", b"%d" % number)
            client.set("/kept", b"away")
        wait_for(ensemble.agree, "all members to be at one zxid")
        state = ensemble.voters[0].state()
        assert state is not None
    for member in ensemble.members.values():
        assert max(int(path.name.split(".")[1], 16) for path in snapshots(member.data_dir)) > zxid
    shutil.copytree(home / "members", home / "before")
    view = view_of(list(ensemble.members.values()), "follower", state.zxid)
    return Stood(ensemble, view, zxid, state.zxid, home / "before")


def _wish(members: Sequence[ZooKeeperMember]) -> RestoreWish:
    """A least epoch says that somebody knows of the others."""
    targets = tuple(target_of(member) for member in members)
    return RestoreWish(targets=targets, sessions=Sessions.DROP, ensemble=True, min_epoch=1)


def _refuses(member: ZooKeeperMember, last_zxid_seen: int) -> bool:
    """Whether it sends a client away that has seen a later zxid than it has."""
    name, port = member.client.split(":")
    with socket.create_connection((name, int(port)), timeout=60) as connection:
        connection.sendall(connect_request(last_zxid_seen))
        return not connection.recv(4)


def test_all_members_have_the_tree_and_an_epoch_above_all(stood: Stood) -> None:
    stood.again()
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
            assert not _refuses(member, stood.highest)
            state = member.state()
            assert state is not None
            assert epoch_of(state.zxid) > prepared.planned.epoch - 1


def test_a_forgotten_member_does_not_bring_old_data_back(stood: Stood) -> None:
    """It has later zxids and a later snapshot, and is started first."""
    stood.again()
    members = stood.ensemble.members
    forgotten = stood.ensemble.voters[2]
    prepared = restored(stood.view, _wish([m for m in members.values() if m is not forgotten]), stood.zxid)
    forgotten.launch()
    with stood.ensemble:
        for member in members.values():
            assert compared(member, prepared.replayed.tree) == []
    with stood.ensemble:  # and it stays so
        assert compared(forgotten, prepared.replayed.tree) == []


def test_without_the_epoch_the_old_data_would_come_back(stood: Stood) -> None:
    """The same restore with the epoch and the name that the data had: this is what the numbers are for."""
    stood.again()
    members = stood.ensemble.members
    forgotten = stood.ensemble.voters[2]
    others = [member for member in members.values() if member is not forgotten]
    prepared = restored(stood.view, _wish(others), stood.zxid)
    for member in others:
        live = member.data_dir / "version-2"
        (live / snapshot_name(prepared.planned.named)).rename(live / snapshot_name(stood.zxid))
        for name in EPOCH_FILES:
            (live / name).write_text(str(epoch_of(stood.zxid)))
    forgotten.launch()
    with stood.ensemble:
        found = record(others[0].client, others[0].password).nodes
    assert sum(path.startswith("/abandoned") for path in found) > _ABANDONED
