"""A real server started on backups: large nodes are no damage, and nor is a machine that cannot start one."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from logkeep.embedded import zookeeper
from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.errors import JarsUnavailable
from tests.support.cli.filled_repository import document_of
from tests.support.cli.in_process import Here
from tests.support.cli.processes import logkeep
from tests.support.core_limits import NONE, watched_core_limits
from tests.support.zookeeper import raw_client as raw
from tests.support.zookeeper.running_servers import CACHE

pytestmark = pytest.mark.xdist_group("zookeeper-boot")
LARGE = 3 << 20


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Here:
    """A backup of a server that takes more than usual."""
    root = tmp_path_factory.mktemp("large")
    made, data_dir = Here(root), root / "data"
    (root / "repo").mkdir()
    made.run("init")
    options = [f"-Djute.maxbuffer={2 * LARGE}"]
    with EmbeddedZooKeeper(root / "server", CACHE, data_dir=data_dir, java_options=options) as server:
        with raw.RawSession(server.client) as client:
            client.must(raw.create("/large", bytes(LARGE)))
        made.run("zookeeper", "backup", "--data-dir", str(data_dir), "--zk-host", server.client)
    return made


def test_a_node_larger_than_usual_is_no_damage(here: Here) -> None:
    """And the server that is started for a look can leave no core dump: it holds what was backed up."""
    with watched_core_limits(os.getpid()) as limits:
        words = ("verify", "--level", "boot", "--json")
        done = logkeep(*words, home=here.root, env=here.environ, true_start=True)
    assert done.returncode == 0, done.stderr
    told = document_of(done.stdout)
    assert (told["verdict"], told["findings"]) == ("good", [])
    assert limits == {"ZooKeeper": {NONE}}
    assert here.json("drill")["verdict"] == "proven"


def _verdicts(here: Here) -> list[tuple[object, ...]]:
    return [(row["id"], row["state"], row["health"], row["verified_at"]) for row in here.json("list")["backups"]]


def test_jars_that_are_not_there_are_an_error_and_stay_with_nothing(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unresolved(_coordinates: Sequence[str], _cache: Path) -> list[Path]:
        raise JarsUnavailable("jars could not be resolved: no registry")

    before = _verdicts(here)
    with monkeypatch.context() as patched:
        patched.setattr(zookeeper, "spark_home", lambda: Path("/nowhere"))
        patched.setattr(zookeeper, "resolve_jars", unresolved)
        assert here.error("verify", "--level", "boot", code=51)["error"] == "jars-unavailable"
        assert here.error("drill", code=51)["error"] == "jars-unavailable"
    assert _verdicts(here) == before
    assert here.json("receipts", "list")["restores"][-1]["state"] == "aborted"
