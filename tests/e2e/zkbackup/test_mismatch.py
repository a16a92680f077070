"""A bundle whose tree the server's own digest disproves: refused, and restored only for a reason that is kept."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copytree

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.formats.zookeeper.snapshot import SnapshotReader
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.zookeeper.model.tree import rows_of, tree_of
from tests.support.cli.zkbackup_server import Served
from tests.support.zookeeper.running_servers import CACHE
from tests.support.zookeeper.tree_recorder import record

pytestmark = pytest.mark.xdist_group("zookeeper-e2e")
REASON = "a znode was lost with a disk, the owner knows"
LOST = b"/shop/order-0000000007"


@dataclass(frozen=True)
class Disproven:
    """A backup of the shop's files, whose only snapshot lacks an order that its digest still counts."""

    shop: Served
    bundle: Path
    nodes: frozenset[str]
    """Of the live server."""

    @property
    def target(self) -> Path:
        return self.shop.home / "target"

    @property
    def asked(self) -> tuple[str, ...]:
        places = (f"--zk-data-dir={self.target}", f"--zk-log-dir={self.target}")
        return "restore", f"--backup-dir={self.bundle}", *places, "--zk-version=3.9.5"


@pytest.fixture(scope="module")
def rotten(running: Served, tmp_path_factory: pytest.TempPathFactory) -> Disproven:
    shop = replace(running, home=tmp_path_factory.mktemp("rotten"))
    nodes = frozenset(shop.tree())
    for _ in range(2):  # what it starts with is a snapshot that nobody disturbs
        shop.server.stop()
        copytree(shop.server.data_dir, shop.home / "data", dirs_exist_ok=True)
        copytree(shop.server.log_dir, shop.home / "datalog", dirs_exist_ok=True)
        shop.server.start()
    _without(shop.home / "data" / "version-2")
    places = (f"--zk-data-dir={shop.home / 'data'}", f"--zk-log-dir={shop.home / 'datalog'}")
    taken = shop.json("backup", *places, "--zk-host=127.0.0.1:1", code=2)
    return Disproven(shop, Path(taken["backup_dir"]), nodes)


@pytest.fixture
def disproven(rotten: Disproven, tmp_path: Path) -> Disproven:
    """With a target of its own."""
    (tmp_path / "target").mkdir()
    return replace(rotten, shop=replace(rotten.shop, home=tmp_path))


def _without(directory: Path) -> None:
    """The newest snapshot alone, written anew without a node and with the digest that it had."""
    *older, newest = sorted(directory.glob("snapshot.*"), key=lambda path: int(path.suffix[1:], 16))
    for path in older:
        path.unlink()
    with newest.open("rb") as file:
        reader = SnapshotReader(file)
        tree = tree_of(reader.sessions(), reader.acls(), reader.nodes())
        ending = reader.ending()
    del tree.nodes[LOST]
    content = exact_snapshot(tree.sessions, *rows_of(tree), zxid=ending.digest_zxid, digest=ending.digest)
    newest.write_bytes(b"".join(content))


def test_it_is_refused_without_a_reason(disproven: Disproven) -> None:
    said = disproven.shop.run(*disproven.asked, "--force", "--format=json", code=30).stderr
    told = json.loads(said.splitlines()[-1])
    assert "differs from the tree that the server had" in told["message"]
    assert "--accept-mismatch" in told["remedy"]
    disproven.shop.run(*disproven.asked, "--accept-mismatch=", "--force", code=40)
    assert not any(disproven.target.iterdir())


def test_it_is_restored_for_a_reason_that_is_kept(disproven: Disproven) -> None:
    shop, asked = disproven.shop, (*disproven.asked, f"--accept-mismatch={REASON}")
    planned = shop.json(*asked, "--dry-run")
    assert REASON in json.dumps(planned)
    assert not any(disproven.target.iterdir())
    shop.run(*asked, code=3)
    called = shop.run(*asked, "--force", "--format=json", code=2)
    assert "THIS TREE IS NOT THE ONE THAT THE SERVER HAD" in called.stderr
    receipt = json.loads(Path(json.loads(called.stdout)["receipt"]).read_text())
    (told,) = (finding for finding in receipt["findings"] if finding["code"] == "digest-mismatch")
    assert told["what"].endswith(f"this was accepted: {REASON}")
    with EmbeddedZooKeeper(shop.home / "second", CACHE, data_dir=disproven.target) as server:
        found = set(record(server.client, server.password).nodes) - {"/zookeeper/config"}
    assert found == disproven.nodes - {LOST.decode()}
