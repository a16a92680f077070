"""Snapshots that took a server long, under load: more than a thousand transactions are in them in part."""

import os
from pathlib import Path
from random import Random

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.formats.zookeeper.snapshot import Ending
from logkeep.spark.cache import cache_dir
from logkeep.zookeeper.tree import Tree
from tests.zookeeper import raw
from tests.zookeeper.files import bodies, loaded, snapshots
from tests.zookeeper.judged import differences
from tests.zookeeper.load import Load
from tests.zookeeper.recording import Recording, record
from tests.zookeeper.replaying import Replay, fuzzy_end

pytestmark = pytest.mark.xdist_group("zookeeper")
SETTINGS = {"snapCount": "1000", "snapshot.compression.method": "gz", "forceSync": "no"}
WIDE = 1_000
MOST_ROUNDS = 30


def test_a_wide_fuzzy_snapshot_becomes_the_exact_tree(tmp_path: Path) -> None:
    cache = cache_dir(os.environ, Path.home())
    with EmbeddedZooKeeper(tmp_path, cache, release=ZooKeeperRelease("3.9.5"), settings=SETTINGS) as server:
        fill(server)
        with Load([server.client], server.password, line=(3, 9), seed=9) as load:
            last = run(server, load)
    tree, ending = next(found for path in snapshots(server.data_dir) if width(*(found := loaded(path))) >= WIDE)
    end = fuzzy_end(tree, ending)
    assert end is not None
    assert ending.digest is not None
    assert tree.digest != ending.digest, "it was exact by chance: then this shows nothing"
    replay = Replay()
    replay.run(tree, bodies(server.log_dir), until=last.zxid, exact_from=end)
    assert replay.wrong == []
    assert replay.compared > 0
    assert differences(last, tree) == []


def fill(server: EmbeddedZooKeeper) -> None:
    """What takes long to pack lies among what is changed all the time."""
    random = Random(9)
    with raw.RawSession(server.client) as client:
        client.must(raw.create("/load9", b""), *(raw.create(f"/load9/d{number:02}", None) for number in range(24)))
        for number in range(24):
            client.must(*(raw.create(f"/load9/d{number:02}/big{copy}", random.randbytes(900_000)) for copy in (1, 2)))


def run(server: EmbeddedZooKeeper, load: Load) -> Recording:
    """Until there is one that is wide enough, and the log has gone on behind it."""
    for _ in range(MOST_ROUNDS):
        load.wait_for(3 * WIDE)
        whole = snapshots(server.data_dir)[:-1]  # the newest one is being written perhaps
        if any(width(*loaded(path)) >= WIDE for path in whole):
            break
    else:
        raise AssertionError("no snapshot is wide enough")
    with load.paused():
        return record(server.client, server.password)


def width(tree: Tree, ending: Ending) -> int:
    return (fuzzy_end(tree, ending) or 0) - tree.zxid
