"""A repository with two backups of a real server, and what an independent client saw of the server at both."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from tests.support.cli.in_process import Here
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.running_servers import CACHE
from tests.support.zookeeper.tree_recorder import Recording, record

STEPS = 4


@dataclass(frozen=True)
class Archived:
    here: Here
    data_dir: Path
    """As the server left it when it was stopped."""
    early: Recording
    late: Recording
    backups: tuple[int, int]

    def copied(self, directory: Path) -> "Archived":
        """The same, to be changed: a repository and a data directory of its own."""
        shutil.copytree(self.here.root / "repo", directory / "repo")
        shutil.copytree(self.data_dir, directory / "data")
        return Archived(Here(directory), directory / "data", self.early, self.late, self.backups)

    @property
    def target(self) -> tuple[str, str]:
        return "--data-dir", str(self.data_dir)


def server_on(directory: Path, data_dir: Path) -> EmbeddedZooKeeper:
    """Its logs are not padded by much, since tests copy them."""
    return EmbeddedZooKeeper(directory, CACHE, settings={"preAllocSize": "1024"}, data_dir=data_dir)


def written(server: EmbeddedZooKeeper, seed: int) -> Recording:
    """A load that ends, with all its sessions, and the tree that it left."""
    load = Load([server.client], server.password, line=(3, 9), seed=seed)
    for _ in range(STEPS):
        load.step()
    load.stop()
    return record(server.client, server.password)


def archived(directory: Path) -> Archived:
    here, data_dir = Here(directory), directory / "data"
    (directory / "repo").mkdir()
    here.run("init")
    with server_on(directory / "server", data_dir) as server:
        asked = ("zookeeper", "backup", "--data-dir", str(data_dir), "--zk-host", server.client)
        early = written(server, 1)
        before = here.tree()
        foreseen = here.json(*asked, "--dry-run")
        assert here.tree() == before
        first = here.json(*asked, "--tag", "night")
        assert (foreseen["new_snapshots"], foreseen["new_logs"]) == (first["new_snapshots"], first["new_logs"])
        assert foreseen["id"] is None
        assert foreseen["new_bytes"] >= first["new_bytes"]
        late = written(server, 2)
        second = here.json(*asked, "--compression", "zstd")
    assert (second["new_snapshots"], second["history"], second["findings"]) == (0, "1", [])
    return Archived(here, data_dir, early, late, (first["id"], second["id"]))
