"""The same zxids twice: a real server that was put back to an earlier moment gives them out again, for other things.

Only original files do that; an exact snapshot is named above all of them.
"""

from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.errors import HistoryUnproven
from logkeep.repository.chain.commits import read_chain
from logkeep.zookeeper.model.tree import Tree
from logkeep.zookeeper.repo.view import ArchiveView
from logkeep.zookeeper.repo.view import view_of as archived_view
from logkeep.zookeeper.restore.values import Form, ZooKeeperRestoreOptions
from logkeep.zookeeper.timeline.plan import ToZxid
from logkeep.zookeeper.timeline.verified_path import choose
from tests.support.zookeeper import raw_client as raw
from tests.support.zookeeper.repositories import new_place
from tests.support.zookeeper.restored_servers import restored, target_of, view_of
from tests.support.zookeeper.running_servers import CACHE, archive_of, place_of
from tests.support.zookeeper.tree_judge import differences
from tests.support.zookeeper.tree_recorder import record, zxid_of
from tests.support.zookeeper.versions import versions

pytestmark = pytest.mark.xdist_group("zookeeper-restore")


def write(server: EmbeddedZooKeeper, name: str, count: int) -> int:
    """So many nodes, and where the server is then."""
    with raw.RawSession(server.client, password=server.password) as client:
        client.must(*(raw.create(f"/{name}-{number}", b"") for number in range(count)))
    return zxid_of(server.client)


def tree_at(view: ArchiveView, zxid: int) -> Tree:
    return choose(view, ToZxid(zxid)).replayed.tree


@pytest.mark.parametrize("version", versions(everyday=("3.9.5",)))
def test_transactions_with_the_same_zxids_are_kept_apart(tmp_path: Path, version: str) -> None:
    place, release = new_place(), ZooKeeperRelease(version)
    server = EmbeddedZooKeeper(tmp_path / "server", CACHE, release=release, settings={"preAllocSize": "64"})
    member = place_of(server, "zk1")
    with server:
        back = write(server, "kept", 5)
        write(server, "first", 60)
        first = record(server.client, server.password)
        assert archive_of(place, member).exit_code == 0
    wish = ZooKeeperRestoreOptions(targets=(target_of(server),), form=Form.ORIGINAL)
    prepared = restored(view_of([server], "standalone"), wish, back)
    assert "zxids-reused" in {finding.code for finding in prepared.planned.findings}
    with server:
        write(server, "second", 10)
        second = record(server.client, server.password)
        assert back < second.zxid < first.zxid
        with pytest.raises(HistoryUnproven, match="do not hold the last archived transaction"):
            archive_of(place, member)
        write(server, "second-later", 100)
        with pytest.raises(HistoryUnproven, match="another transaction has the zxid of the last archived one"):
            archive_of(place, member)
        assert archive_of(place, member, new_history=True).exit_code == 0
    before, after = (archived_view(place, each) for each in read_chain(place).completed)
    assert differences(first, tree_at(before, first.zxid)) == []
    assert differences(second, tree_at(after, second.zxid)) == []
    early, late = (tree_at(view, second.zxid).nodes for view in (before, after))
    assert (b"/first-0" in early, b"/second-0" in early) == (True, False)
    assert (b"/first-0" in late, b"/second-0" in late) == (False, True)
