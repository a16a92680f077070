"""Directories beside a server that is not theirs: what it says must not cut their backup, and its own stays good."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.segments import Proof
from logkeep.model.time import random_token, utc_now
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone, ZooKeeperBackupOptions, back_up
from logkeep.zookeeper.backup.server_files import MemberPlace
from logkeep.zookeeper.bundle.writer import new_bundle
from tests.support.servers.zookeeper_ensemble import ZooKeeperMember
from tests.support.zookeeper.handmade_directories import MadeServer
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.repositories import new_place, newest, zxids
from tests.support.zookeeper.running_servers import CACHE, archive_of, asking, place_of, word

pytestmark = pytest.mark.xdist_group("zookeeper-stranger")


def bundled_of(place: MemberPlace, out: Path) -> ZooKeeperBackupDone:
    with new_bundle(out, "one", clock=utc_now, tokens=random_token) as sink:
        return back_up(ZooKeeperBackupOptions((place,)), sink, asking(patience_s=1.0), word)


def test_a_fresh_server_does_not_empty_the_backup_of_another(tmp_path: Path) -> None:
    other = MadeServer(tmp_path / "other")
    other.snapshot(0)
    other.log(range(1, 901))
    server = EmbeddedZooKeeper(tmp_path / "fresh", CACHE, release=ZooKeeperRelease("3.9.5"))
    with server as fresh:
        place = replace(other.place("zk1"), host=fresh.client)
        told = bundled_of(place, tmp_path / "out")
        repository = new_place()
        archived = archive_of(repository, place, patience_s=1.0)
        own = bundled_of(place_of(fresh), tmp_path / "own")
    for done in (told, archived):
        assert [f.code for f in done.findings] == ["other-server"]
        assert (done.gathered.backup_zxid, done.exit_code) == (900, 2)
    assert zxids(newest(repository)) == [(1, 900)]
    assert (own.exit_code, list(own.findings)) == (0, [])


@contextmanager
def alone_in_its_ensemble(directory: Path) -> Iterator[ZooKeeperMember]:
    """One voter, which is the leader: members of ensembles do not commit all that they log."""
    member = ZooKeeperMember(directory, CACHE, 1, ZooKeeperRelease("3.9.5"), {})
    member.peers = {"server.1": member.line}
    with member:
        yield member


def load(member: ZooKeeperMember, steps: int) -> int:
    """So many batches; where the server is then."""
    with closing(Load([member.client], member.password, line=(3, 9))) as load:
        for _ in range(steps):
            load.step()
    state = member.state()
    assert state is not None
    assert state.mode == "leader"
    return state.zxid


def test_a_member_of_another_ensemble_does_not_cut_a_backup(tmp_path: Path) -> None:
    """What it says lies between the newest snapshot and the end of the log: only that it stays there tells."""
    with alone_in_its_ensemble(tmp_path / "one") as one, alone_in_its_ensemble(tmp_path / "other") as other:
        behind, end = load(other, 2), load(one, 5)
        assert behind < end
        repository = new_place()
        told = archive_of(repository, replace(place_of(one), host=other.client), patience_s=1.0)
        own = archive_of(new_place(), place_of(one))
    (finding,) = told.findings
    assert (finding.code, told.exit_code) == ("server-lags", 2)
    assert f"it is at {hex_zxid(behind)}, their logs were at {hex_zxid(end)}" in finding.what
    assert newest(repository).logs[-1].last == end
    assert newest(repository).logs[-1].proof is Proof.UNPROVEN
    assert (own.exit_code, list(own.findings), own.gathered.backup_zxid) == (0, [], end)
