"""Directories beside a server that is not theirs: what it says must not cut their backup, and its own stays good."""

from dataclasses import replace
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.model.time import random_token, utc_now
from logkeep.zookeeper.backup import Done, Wish, back_up
from logkeep.zookeeper.bundle.writing import new_bundle
from logkeep.zookeeper.collect import MemberPlace
from tests.zookeeper.archives import new_place, newest, zxids
from tests.zookeeper.directories import MadeServer
from tests.zookeeper.online import CACHE, archive_of, asking, place_of, word

pytestmark = pytest.mark.xdist_group("zookeeper-stranger")


def bundled_of(place: MemberPlace, out: Path) -> Done:
    with new_bundle(out, "one", clock=utc_now, tokens=random_token) as sink:
        return back_up(Wish((place,)), sink, asking(patience_s=1.0), word)


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
