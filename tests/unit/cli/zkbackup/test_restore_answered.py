"""Somebody answers where the server of the directories might be: who was asked, why, and what to do about it."""

import json
from pathlib import Path

import pytest

from logkeep.errors import ClusterUnreachable
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.target import running_server
from logkeep.zookeeper.restore.target.directories import JOURNAL
from logkeep.zookeeper.restore.values import ServerTarget, ZooKeeperRestoreOptions
from tests.support.cli.bundle_documents import zkbackup
from tests.support.zookeeper.handmade_server import files, made_backup, old_server


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Restored, and to be rolled back; whoever listens at port 2181 of any host answers."""
    old_server(tmp_path / "zk")
    view, target = made_backup(), ServerTarget(data_dir=tmp_path / "zk", log_dir=tmp_path / "zk")
    carry_out(prepare(view, view.path(), ZooKeeperRestoreOptions(targets=(target,))), replace=True)

    def answer(host: str, _word: str, _timeout_s: float) -> str:
        if not host.endswith(":2181"):
            raise ClusterUnreachable("nobody is there", subject=host)
        return "Zookeeper version: 3.9.5\nZxid: 0x5\nMode: standalone\n"

    monkeypatch.setattr(running_server, "four_letter", answer)
    return tmp_path / "zk"


def _rolled_back(server: Path, *flags: str) -> tuple[int, dict[str, str]]:
    given = (f"--zk-data-dir={server}", "--force", "--format=json", *flags)
    called = zkbackup("restore", "--rollback", *given, home=server.parent)
    return called.returncode, json.loads(called.stderr.splitlines()[-1]) if called.stderr else {}


def test_one_that_was_asked_by_default(server: Path) -> None:
    before = files(server)
    code, error = _rolled_back(server)
    assert (code, files(server) == before) == (31, True)
    assert error["message"] == "a server answers at localhost:2181, the default of --zk-host"
    assert "stop the server" in error["remedy"]
    assert "--zk-host HOST:PORT" in error["remedy"]


def test_one_that_the_configuration_names(server: Path) -> None:
    (server.parent / "zkbackup.yaml").write_text("zookeeper:\n  host: zk7:2181\n")
    code, error = _rolled_back(server)
    assert (code, error["message"].startswith("a server answers at zk7:2181, set by ")) == (31, True)
    assert "zkbackup.yaml" in error["message"]


def test_one_that_was_named_is_refused_all_the_same(server: Path) -> None:
    code, error = _rolled_back(server, "--zk-host=zk8:2181")
    assert (code, error["message"]) == (31, "a server answers at zk8:2181")
    assert "--zk-host" in error["remedy"]


def test_the_address_of_the_right_one_helps(server: Path) -> None:
    assert _rolled_back(server, "--zk-host=localhost:2182")[0] == 0
    assert not (server / JOURNAL).exists()
