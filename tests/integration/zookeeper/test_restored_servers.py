"""Servers that stand alone, restored: what a client sees of them is exactly the tree of the replay."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.errors import TargetUnsafe
from logkeep.model.cache import cache_dir
from logkeep.zookeeper.restore.finish import roll_back
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.values import Form, Sessions, ZooKeeperRestoreOptions
from logkeep.zookeeper.server.four_letter import four_letter, parse_srvr
from logkeep.zookeeper.verify.directory_view import DirectoryView
from tests.crash.seeds import seeded
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.recorded_moments import DELETES_NOTHING
from tests.support.zookeeper.restored_servers import compared, path_to, restored, target_of, view_of
from tests.support.zookeeper.tree_recorder import Recording, record
from tests.support.zookeeper.versions import MATRIX, versions

pytestmark = pytest.mark.xdist_group("zookeeper-restore")
_TRANSACTIONS = 1500
_SESSION_MS = 120_000
"""A server goes on with the sessions that are restored: none may run out before it has been looked at."""
of_the_newest = pytest.mark.parametrize("source", ["3.9.5"], indirect=True)


@dataclass(frozen=True)
class Source:
    """A server that was loaded, looked at in between, loaded again, and stopped."""

    version: str
    server: EmbeddedZooKeeper
    view: DirectoryView
    seen: Recording


def _server(directory: Path, version: str, options: tuple[str, ...] = (), **settings: str) -> EmbeddedZooKeeper:
    return EmbeddedZooKeeper(
        directory,
        cache_dir(os.environ, Path.home()),
        release=ZooKeeperRelease(version),
        settings={"preAllocSize": "1024", "maxSessionTimeout": str(_SESSION_MS), **settings},
        java_options=(DELETES_NOTHING, *options),
    )


@pytest.fixture(scope="module", params=versions(MATRIX))
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Source:
    version: str = request.param
    server = _server(tmp_path_factory.mktemp("source"), version, snapCount="800")
    load = Load([server.client], server.password, line=server.release.line, session_ms=_SESSION_MS)
    with server, load:
        load.wait_for(_TRANSACTIONS)
        with load.paused():
            seen = record(server.client, server.password)
        load.wait_for(_TRANSACTIONS)
    return Source(version, server, view_of([server], "standalone"), seen)


@pytest.mark.parametrize("form", list(Form))
def test_the_whole_backup(source: Source, tmp_path: Path, form: Form) -> None:
    server = _server(tmp_path, source.version)
    sessions = Sessions.DROP if form is Form.EXACT else Sessions.KEEP
    prepared = restored(
        source.view, ZooKeeperRestoreOptions(targets=(target_of(server),), sessions=sessions, form=form)
    )
    with server:
        assert compared(server, prepared.replayed.tree) == []


def test_a_moment_that_was_seen(source: Source, tmp_path: Path) -> None:
    """An independent client looked at the tree then: sessions and their nodes are back too; no zxid comes again."""
    server = _server(tmp_path, source.version)
    prepared = restored(source.view, ZooKeeperRestoreOptions(targets=(target_of(server),)), source.seen.zxid)
    assert prepared.replayed.tree.sessions
    with server:
        state = parse_srvr(four_letter(server.client, "srvr", 10))
        assert state is not None
        assert state.zxid == prepared.planned.named > path_to(source.view).until > source.seen.zxid
        found = record(server.client, server.password).nodes
    config = "/zookeeper/config"
    assert {p: n for p, n in found.items() if p != config} == {
        p: n for p, n in source.seen.nodes.items() if p != config
    }


def test_any_moment_over_data_that_went_on(source: Source, tmp_path: Path) -> None:
    """Into the directories of a server with later zxids: none is given out again; rolled back, all is as it was."""
    path = path_to(source.view)
    wanted = seeded("restore").randint(path.until - 1000, path.until)
    server = _server(tmp_path, source.version)
    wish = ZooKeeperRestoreOptions(targets=(target_of(server),), sessions=Sessions.DROP)
    ahead = restored(source.view, wish)
    with server:
        before = record(server.client, server.password)
    prepared = restored(source.view, wish, wanted)
    assert prepared.planned.named > before.zxid >= ahead.planned.named
    with server:
        assert compared(server, prepared.replayed.tree) == []
    roll_back(wish.targets[0])
    with server:
        after = record(server.client, server.password)
    assert after.nodes == before.nodes


@of_the_newest
@pytest.mark.parametrize("digests", [True, False], ids=["digests", "no-digests"])
def test_servers_with_and_without_digests(source: Source, tmp_path: Path, digests: bool) -> None:
    """3.9 without digests cannot load a snapshot that holds one; unless it is known that they are on, none is told."""
    server = _server(tmp_path, source.version, options=() if digests else ("-Dzookeeper.digest.enabled=false",))
    wish = ZooKeeperRestoreOptions(targets=(target_of(server),), sessions=Sessions.DROP, digests=digests)
    prepared = restored(source.view, wish)
    with server:
        assert compared(server, prepared.replayed.tree) == []


@of_the_newest
def test_a_server_that_runs(source: Source, tmp_path: Path) -> None:
    server = _server(tmp_path, source.version)
    wish = ZooKeeperRestoreOptions(targets=(target_of(server),))
    with server:
        prepared = prepare(source.view, path_to(source.view), wish)
        found = [error.what for error in prepared.planned.obstacles]
        with pytest.raises(TargetUnsafe):
            carry_out(prepared, replace=True)
    assert any("configured for these directories" in what for what in found)
    assert any("a server answers" in what for what in found)


@of_the_newest
def test_nodes_with_a_time_to_live_on_a_server_that_does_not_know_them(source: Source, tmp_path: Path) -> None:
    """What the plan warns of: such a server removes them without a word."""
    server = _server(tmp_path, source.version, extendedTypesEnabled="false")
    wish = ZooKeeperRestoreOptions(targets=(target_of(server),), sessions=Sessions.DROP, version=source.version)
    prepared = restored(source.view, wish)
    assert "ttl-nodes" in [finding.code for finding in prepared.planned.findings]
    with server:
        assert any("is too much" in line for line in compared(server, prepared.replayed.tree))
