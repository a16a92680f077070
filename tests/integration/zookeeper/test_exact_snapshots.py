"""Snapshots of ours as the only file that a real server finds, with and without digests."""

import os
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.errors import ServerFailed
from logkeep.formats.zookeeper.names import snapshot_name
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Acl, Create, Transaction
from logkeep.model.cache import cache_dir
from logkeep.zookeeper.model.tree import Tree, new_tree, rows_of
from tests.support.zookeeper.tree_judge import visible
from tests.support.zookeeper.tree_recorder import record

pytestmark = pytest.mark.xdist_group("exact-snapshots")
ZXID = 0x30
OFF = "-Dzookeeper.digest.enabled=false"


def _tree() -> Tree:
    tree = new_tree(with_config=True)
    for zxid in range(1, ZXID + 1):
        acls = OPEN_ACL if zxid % 2 else (Acl(31, b"digest", b"u:%d" % zxid), Acl(1, b"world", b"anyone"))
        path, data = f"/ключ-{zxid}".encode(), bytes(zxid)
        change = Create(path, data, acls, ephemeral=False, parent_cversion=zxid)
        tree.apply(Transaction(1, zxid, zxid, 1_700_000_000_000 + zxid, 1, change, None))
    return tree


def _started(directory: Path, tree: Tree, *, with_digest: bool, options: list[str]) -> EmbeddedZooKeeper:
    target = directory / "data" / "version-2"
    target.mkdir(parents=True)
    acls, rows = rows_of(tree)
    pieces = exact_snapshot({}, acls, rows, zxid=ZXID, digest=tree.digest if with_digest else None)
    (target / snapshot_name(ZXID)).write_bytes(b"".join(pieces))
    return EmbeddedZooKeeper(directory, cache_dir(os.environ, Path.home()), java_options=["-Xmx128m", *options])


@pytest.mark.parametrize(("with_digest", "options"), [(False, [OFF]), (False, []), (True, [])])
def test_the_server_has_our_tree(tmp_path: Path, with_digest: bool, options: list[str]) -> None:
    tree = _tree()
    with _started(tmp_path, tree, with_digest=with_digest, options=options) as server:
        live = record(server.client, server.password).nodes
    ours = visible(tree)
    assert live.keys() == ours.keys()
    assert {p: n for p, n in live.items() if p.startswith("/ключ")} == {
        p: n for p, n in ours.items() if p.startswith("/ключ")
    }


def test_a_server_without_digests_does_not_load_the_longer_form(tmp_path: Path) -> None:
    """Why a snapshot for a server that is not known ends with its first seal."""
    with pytest.raises(ServerFailed):
        _started(tmp_path, _tree(), with_digest=True, options=[OFF]).start()
