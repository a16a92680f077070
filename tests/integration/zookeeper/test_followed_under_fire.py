"""A server that is followed while it is killed, started again and purged: every moment that was seen comes back.

The follower is a process of its own that nobody helps. It has to live with torn tails, snapshots that were never
finished, a server that is gone for a while, and files that are purged between two rounds.
"""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from tests.crash.seeds import seeded
from tests.support.cli.forker import ForkedProcess
from tests.support.cli.in_process import Here
from tests.support.cli.processes import REAL, clean_environment
from tests.support.processes import wait_for
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.recorded_moments import JAVA, SESSION_MS, SETTINGS, Moments, Told, looked_at, scratch
from tests.support.zookeeper.running_servers import CACHE
from tests.support.zookeeper.tree_recorder import record, zxid_of
from tests.support.zookeeper.unstartable_snapshots import make_startable
from tests.support.zookeeper.versions import MATRIX

pytestmark = pytest.mark.xdist_group("zookeeper-matrix")


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", MATRIX)
def test_every_moment_comes_back(version: str, tmp_path: Path) -> None:
    judge(version, tmp_path, lives=6, moments=2)


def judge(version: str, directory: Path, *, lives: int, moments: int) -> None:
    told, taken = Told(version), Moments(seeded(f"fire on {version}"))
    here = Here(directory)
    (directory / "repo").mkdir()
    here.run("init")
    server = server_of(directory / "server", version)
    line = server.release.line
    with server:
        record(server.client, server.password)  # before 3.5 there is no file before the first transaction, a session's
        with following(here, server, directory / "told.jsonl") as rounds:
            for life in range(lives):
                load = Load(
                    [server.client], server.password, line=line, seed=life, session_ms=SESSION_MS, most_per_s=1_500
                )
                with told.load(load):
                    for _ in range(moments):
                        taken.take(load, lambda: record(server.client, server.password))
                        purge(server)
                    load.wait_for(200)
                    server.kill()
                    make_startable(server)
                    server.start()
                    load.wait_for(200)
            wait_until_committed(rounds, zxid_of(server.client))
    assert here.json("verify", "--level", "replay")["verdict"] == "good"
    for number, moment in enumerate(taken.taken):
        with scratch(directory / f"moment-{number}") as home:
            target = server_of(home / "server", version)
            target.data_dir.mkdir(parents=True)
            asked = ("--to-zxid", hex(moment.zxid), "--data-dir", str(target.data_dir), "--zk-version", version)
            here.json("zookeeper", "restore", "latest", *asked, "--yes")
            with target:
                looked_at(target, moment, told)
        told.restores += 1
    print(
        f"{version}: followed while it was killed {lives} times: {told.restores} restores looked at through real "
        f"servers, {told.nodes:,} nodes compared, {told.differences} differences"
    )


def server_of(directory: Path, version: str) -> EmbeddedZooKeeper:
    release = ZooKeeperRelease(version)
    return EmbeddedZooKeeper(directory, CACHE, release=release, settings=SETTINGS, java_options=JAVA)


def purge(server: EmbeddedZooKeeper) -> None:
    """All but some ten seconds: what goes before a round has seen it is lost, and told as that."""
    arguments = [str(server.log_dir), str(server.data_dir), "-n", "30"]
    server.java_tool("org.apache.zookeeper.server.PurgeTxnLog", arguments)


@contextmanager
def following(here: Here, server: EmbeddedZooKeeper, told: Path) -> Iterator[Path]:
    """Where it tells its rounds. It ends in good order, and nothing was wrong but that no server answered at times."""
    asked = ("--data-dir", str(server.data_dir), "--zk-host", server.client, "--follow", "--interval", "500ms")
    command = [*REAL, "zookeeper", "backup", *asked, "--json"]
    environment = {**clean_environment(here.root), **here.environ}
    with told.open("w") as out, told.with_suffix(".err").open("w") as err:
        follower = ForkedProcess(command, env=environment, cwd=here.root, stdout=out, stderr=err)
        try:
            yield told
            follower.send_signal(signal.SIGTERM)
            follower.wait(120)
        finally:
            follower.kill()
            follower.wait()
    summary = json.loads(told.read_text().splitlines()[-1])
    serious = {finding["code"] for finding in summary["findings"] if finding["severity"] != "note"}
    assert (follower.returncode, serious) == (2, {"server-unreachable"}), told.with_suffix(".err").read_text()[-2000:]


def wait_until_committed(told: Path, zxid: int) -> None:
    def committed() -> bool:
        lines = told.read_text().splitlines(keepends=True)
        rounds = [json.loads(line) for line in lines if line.endswith("\n")]
        return any(one.get("id") is not None and int(one["backup_zxid"], 16) >= zxid for one in rounds)

    wait_for(committed, f"a backup up to 0x{zxid:x}")
