"""`logkeep zookeeper restore` that somebody stops with Ctrl-C: the command it names works, and receipts know."""

import shlex
from functools import partial
from pathlib import Path

import pytest

from logkeep.cli.verbs.zookeeper.restore import verb
from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.target.directories import MARKER
from tests.support.cli.zookeeper_repository import archived

pytestmark = pytest.mark.xdist_group("zookeeper-verbs")


def test_the_remedy_of_ctrl_c_is_a_command_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = archived(tmp_path)

    def pressed(_step: str) -> None:
        if any(own.data_dir.rglob(MARKER)):
            raise KeyboardInterrupt

    monkeypatch.setattr(verb, "carry_out", partial(carry_out, disk=Disk(pressed)))
    error = own.here.error("zookeeper", "restore", "latest", *own.target, "--yes", code=130)
    monkeypatch.undo()
    assert "--resume" not in error["remedy"]
    command = next(part for part in error["remedy"].split("`") if "--continue" in part)
    done = own.here.json(*shlex.split(command)[1:], "--yes")
    assert done["verdict"] == "continued"
    assert [row["state"] for row in own.here.json("receipts", "list")["restores"]] == ["proven"]
