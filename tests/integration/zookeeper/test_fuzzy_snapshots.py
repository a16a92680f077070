"""Snapshots that took a server long, under load: more than a thousand transactions are in them in part."""

from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.replayed_files import Replay, fuzzy_end
from tests.support.zookeeper.running_servers import CACHE
from tests.support.zookeeper.server_files import bodies, loaded
from tests.support.zookeeper.tree_judge import differences
from tests.support.zookeeper.tree_recorder import record
from tests.support.zookeeper.wide_snapshots import fill, widen

pytestmark = pytest.mark.xdist_group("zookeeper-replay")
SETTINGS = {"snapCount": "1000", "snapshot.compression.method": "gz", "forceSync": "no"}


def test_a_wide_fuzzy_snapshot_becomes_the_exact_tree(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path, CACHE, release=ZooKeeperRelease("3.9.5"), settings=SETTINGS) as server:
        fill(server, "/load9")
        with Load([server.client], server.password, line=(3, 9), seed=9) as load:
            wide = widen(server, load, "/load9")
            with load.paused():
                last = record(server.client, server.password)
    tree, ending = loaded(server.data_dir / "version-2" / wide)
    end = fuzzy_end(tree, ending)
    assert end is not None
    assert ending.digest is not None
    assert tree.digest != ending.digest, "it was exact by chance: then this shows nothing"
    replay = Replay()
    replay.run(tree, bodies(server.log_dir), until=last.zxid, exact_from=end)
    assert replay.wrong == []
    assert replay.compared > 0
    assert differences(last, tree) == []
