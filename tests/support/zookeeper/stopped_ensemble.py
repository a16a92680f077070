"""An ensemble with a past, stopped: what restores of ensembles are tried with."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from logkeep.embedded.zookeeper import ZooKeeperRelease
from logkeep.zookeeper.verify.directory_view import DirectoryView
from tests.support.processes import wait_for
from tests.support.servers.zookeeper_ensemble import ZooKeeperEnsemble
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.recorded_moments import JAVA
from tests.support.zookeeper.restored_servers import view_of
from tests.support.zookeeper.running_servers import CACHE
from tests.support.zookeeper.server_files import snapshots
from tests.support.zookeeper.tree_recorder import kazoo

ABANDONED = 50


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


def stood_up(home: Path, version: str) -> Stood:
    """Three epochs; `/kept` and an ephemeral are of the second one."""
    release = ZooKeeperRelease(version)
    ensemble = ZooKeeperEnsemble(home / "members", CACHE, release, {"snapCount": "300", "preAllocSize": "1024"}, JAVA)
    with ensemble:
        hosts = [member.client for member in ensemble.voters]
        with Load(hosts, ensemble.password, line=release.line) as load:
            load.wait_for(1000)
        ensemble.next_epoch()
        with kazoo(ensemble.voters[0].client, ensemble.password) as client:
            client.create("/kept", b"here")
            client.create("/ephemeral", b"", ephemeral=True)
            zxid = client.exists("/ephemeral").czxid
            for number in range(ABANDONED):
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
