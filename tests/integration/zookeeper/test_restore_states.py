"""States of an interrupted restore, and real servers: none starts on one; continued or rolled back, all do.

And why it is a marker that stops them: on a directory with nothing in it all start, on a file in its place some do.
"""

import shutil
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import RELEASES, EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.errors import DataDirUnusable, ServerFailed, UsageError
from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.finish import continue_restore, roll_back
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.target.directories import MARKER
from logkeep.zookeeper.restore.values import ServerTarget, ZooKeeperRestoreOptions
from tests.support.zookeeper.handmade_server import made_backup, old_server
from tests.support.zookeeper.restored_servers import Stopped, names, stopping_when
from tests.support.zookeeper.running_servers import CACHE, bundle_of
from tests.support.zookeeper.tree_recorder import record
from tests.support.zookeeper.versions import versions

pytestmark = pytest.mark.xdist_group("zookeeper-restore")


class Server:
    """Directories with old data, and a restore that can be stopped."""

    def __init__(self, root: Path, *, separate: bool = False) -> None:
        self.root = root
        self.target = ServerTarget(data_dir=root / "data", log_dir=root / "logs" if separate else root / "data")
        self.logs = (self.target.log_dir or root) / "version-2"
        old_server(root / "data", self.target.log_dir)

    def restore(self, disk: Disk) -> None:
        view = made_backup()
        carry_out(prepare(view, view.path(), ZooKeeperRestoreOptions(targets=(self.target,))), replace=True, disk=disk)

    def real(self, root: Path, version: str) -> EmbeddedZooKeeper:
        """Of what this directory holds, or a copy of it."""
        return EmbeddedZooKeeper(
            root / "run",
            CACHE,
            release=ZooKeeperRelease(version),
            data_dir=root / "data",
            log_dir=root / self.logs.parent.name,
        )

    def lying(self) -> tuple[str, ...]:
        """All that a server would look at."""
        return tuple(f"{d.name}/{name}" for d in (self.root / "data", self.logs.parent) for name in self._names(d))

    def _names(self, directory: Path) -> list[str]:
        return names(directory / "version-2")

    def marked(self) -> bool:
        marker = self.logs / MARKER
        return marker.exists() and marker.stat().st_size > 0


@pytest.mark.parametrize("separate", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["together", "separate"])
def test_no_version_starts_in_between(tmp_path: Path, separate: bool) -> None:
    server = Server(tmp_path / "victim", separate=separate)
    states: dict[tuple[str, ...], Path] = {}

    def look() -> bool:
        if server.marked() and server.lying() not in states:
            states[server.lying()] = tmp_path / f"state-{len(states)}"
            shutil.copytree(server.root, states[server.lying()])
        return False

    server.restore(stopping_when(look))
    assert len(states) >= 5
    for number, root in enumerate(states.values()):
        with pytest.raises(ServerFailed, match="exited while starting"):
            server.real(root, RELEASES[number % len(RELEASES)]).start()


@pytest.mark.parametrize("version", versions())
@pytest.mark.parametrize("forward", [True, False], ids=["continue", "rollback"])
def test_a_server_that_tried_to_start_does_no_harm(tmp_path: Path, version: str, forward: bool) -> None:
    """When nothing but the marker is left there it refuses, and both ways out still lead to whole data."""
    server = Server(tmp_path)
    with pytest.raises(Stopped):
        server.restore(stopping_when(lambda: names(server.logs) == [MARKER]))
    real = server.real(tmp_path, version)
    with pytest.raises(ServerFailed, match="exited while starting"):
        real.start()
    (continue_restore if forward else roll_back)(server.target)
    with real:
        found = record(real.client, real.password).nodes
    assert ("/c" in found, "/old40" in found) == (forward, not forward)


def _lone(root: Path, version: str) -> EmbeddedZooKeeper:
    return EmbeddedZooKeeper(root / "run", CACHE, release=ZooKeeperRelease(version), data_dir=root / "data")


def _is_no_backup(server: EmbeddedZooKeeper, out: Path) -> None:
    out.mkdir()
    with pytest.raises(DataDirUnusable):
        bundle_of(server, out, "one")
    assert names(out) == []


@pytest.mark.parametrize("version", versions(everyday=("3.9.5",)))
def test_nothing_at_all_is_an_empty_server_and_no_backup(tmp_path: Path, version: str) -> None:
    server = _lone(tmp_path, version)
    (server.data_dir / "version-2").mkdir(parents=True)
    _is_no_backup(server, tmp_path / "out")
    with server:
        found = record(server.client, server.password).nodes
    assert {path for path in found if not path.startswith("/zookeeper")} == {"/"}


@pytest.mark.parametrize("version", versions(everyday=("3.4.14",)))
def test_a_file_in_place_of_the_directory_stops_not_all_servers(tmp_path: Path, version: str) -> None:
    """Nothing is read from it or restored to it; 3.4 serves clients all the same."""
    server = _lone(tmp_path, version)
    server.data_dir.mkdir()
    (server.data_dir / "version-2").touch()
    _is_no_backup(server, tmp_path / "out")
    view, wish = made_backup(), ZooKeeperRestoreOptions(targets=(ServerTarget(data_dir=server.data_dir),))
    with pytest.raises(UsageError, match="it is not a directory"):
        prepare(view, view.path(), wish)
    if server.release.line < (3, 5):
        with server:
            assert server.serves()
    else:
        with pytest.raises(ServerFailed, match="exited while starting"):
            server.start()
