"""`logkeep zookeeper backup --follow` as a process of its own, and backups and restores of several members."""

import json
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from logkeep.cli.verbs.zookeeper.backup import ASK_S
from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from tests.support.cli.forker import ForkedProcess
from tests.support.cli.in_process import Here
from tests.support.cli.processes import REAL, clean_environment
from tests.support.cli.zookeeper_repository import archived, server_on, written
from tests.support.zookeeper.handmade_directories import MadeServer
from tests.support.zookeeper.tree_recorder import kazoo, zxid_of

pytestmark = pytest.mark.xdist_group("zookeeper-verbs")


def test_following_commits_what_is_new_until_a_signal_comes(tmp_path: Path) -> None:
    here, data_dir = Here(tmp_path), tmp_path / "data"
    (tmp_path / "repo").mkdir()
    here.run("init")
    with server_on(tmp_path / "server", data_dir) as server:
        written(server, 1)
        asked = ("zookeeper", "backup", "--data-dir", str(data_dir), "--zk-host", server.client)
        command = [*REAL, *asked, "--follow", "--interval", "500ms", "--json"]
        environment = {**clean_environment(tmp_path), **here.environ}
        with ForkedProcess(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as followed:
            try:
                first = _line(followed)
                with kazoo(server.client, server.password) as client:
                    client.create("/after", b"the first round")
                wanted = zxid_of(server.client)
                while True:
                    one = _line(followed)
                    if one["id"] is not None and int(one["backup_zxid"], 16) >= wanted:
                        break
                followed.send_signal(signal.SIGTERM)
                left = followed.communicate(timeout=120)[0].splitlines()
            finally:
                followed.kill()
        summary = json.loads(left[-1])
        committed = len(here.json("list")["backups"])
        _small_backups_are_merged(here, asked, server)
    assert followed.returncode == 0
    assert (first["round"], summary["follow"]["failed"], summary["follow"]["ended"]) == (1, 0, True)
    assert summary["follow"]["committed"] == committed >= 2
    assert summary["follow"]["merged_objects"] == 0, "so few are left for later"
    assert here.json("verify", "--level", "replay")["verdict"] == "good"


def test_the_second_signal_aborts_a_round_at_once(tmp_path: Path) -> None:
    """Also between units of work: here the round waits for a server that accepts connections and never answers."""
    here = Here(tmp_path)
    (tmp_path / "repo").mkdir()
    here.run("init")
    made = MadeServer(tmp_path / "server", zxid=4)
    made.snapshot(2)
    made.log([1, 2, 3, 4])
    files = ("--data-dir", str(made.place("zk1").data_dir))
    environment = {**clean_environment(tmp_path), **here.environ}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        asked = ("zookeeper", "backup", *files, "--zk-host", host, "--follow", "--json")
        with subprocess.Popen([*REAL, *asked], env=environment, cwd=tmp_path, stdout=subprocess.PIPE) as followed:
            try:
                silent.settimeout(120)
                with silent.accept()[0]:
                    began_s = time.monotonic()
                    followed.send_signal(signal.SIGINT)
                    time.sleep(0.5)
                    assert followed.poll() is None, "the first signal aborts nothing"
                    followed.send_signal(signal.SIGTERM)
                    out = followed.communicate(timeout=60)[0]
            finally:
                followed.kill()
    assert (followed.returncode, out) == (143, b"")
    assert time.monotonic() - began_s < ASK_S / 2
    assert [backup["state"] for backup in here.json("list")["backups"]] == ["failed"]
    assert here.json("zookeeper", "backup", *files, code=2)["new_snapshots"] == 1, "no lease is left"


def _small_backups_are_merged(here: Here, asked: tuple[str, ...], server: EmbeddedZooKeeper) -> None:
    with kazoo(server.client, server.password) as client:
        for number in range(3):
            client.set("/after", b"%d" % number)
            here.json(*asked)
    before = here.tree()
    foreseen = here.json("zookeeper", "optimize", "--dry-run")
    assert here.tree() == before
    done = here.json("zookeeper", "optimize")
    assert done["objects_before"] == foreseen["objects_before"] >= 3
    assert (done["objects_after"], done["findings"], done["dry_run"]) == (foreseen["objects_after"], [], False)
    assert "nothing to merge" in here.run("zookeeper", "optimize").stdout
    for backup in here.json("list")["backups"]:
        assert here.json("verify", str(backup["id"]), "--level", "replay")["verdict"] == "good"


def _line(followed: "subprocess.Popen[str]") -> dict[str, Any]:
    assert followed.stdout is not None
    told: dict[str, Any] = json.loads(followed.stdout.readline())
    return told


def test_members_of_an_ensemble_get_one_epoch_above_all(tmp_path: Path) -> None:
    """Two directories with the same past, nobody to ask: the tail is kept, and labelled."""
    (tmp_path / "one").mkdir()
    source = archived(tmp_path / "one")
    here = source.here
    other = shutil.copytree(source.data_dir, tmp_path / "copy")
    members = ("--data-dir", f"zk1={source.data_dir}", "--data-dir", f"zk2={other}", "--source", "pair")
    told = here.json("zookeeper", "backup", *members, code=2)
    assert {finding["code"] for finding in told["findings"]} == {"server-unreachable"}
    assert {member["name"] for member in told["members"]} == {"zk1", "zk2"}
    targets = [tmp_path / name for name in ("a", "b")]
    for target in targets:
        target.mkdir()
    named = [word for target in targets for word in ("--data-dir", str(target))]
    done = here.json("zookeeper", "restore", "latest", "--source", "pair", *named, "--min-epoch", "6", "--yes")
    epochs = {(target / "version-2" / name).read_text() for target in targets for name in _EPOCHS}
    assert (done["tree"]["epoch"], epochs) == (7, {"7"})
    assert done["tree"]["named_zxid"] == "0x700000000"
    assert [target["kept"] for target in done["targets"]] == [[], []]


_EPOCHS = ("currentEpoch", "acceptedEpoch")
