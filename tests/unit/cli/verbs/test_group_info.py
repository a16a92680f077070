"""`info` tells the truth about backups that were to be taken together."""

import json
from pathlib import Path

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import Repository, open_repository
from logkeep.store.access import open_store
from tests.support.cli.processes import logkeep
from tests.support.scripted.backup import back_up

ID = BackupId(20261115103000)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    assert logkeep("init", "-r", str(tmp_path / "repo"), home=tmp_path).returncode == 0
    return open_repository(open_store(str(tmp_path / "repo")))


def _back_up(repository: Repository, source: str, group: tuple[str, ...]) -> None:
    back_up(repository.place(source), {0: 3}, InlineEngine(), utc_now, random_token, wanted=ID, group=group)


def _info(home: Path, *flags: str) -> tuple[str, dict[str, str]]:
    ran = logkeep("info", str(ID), "-r", str(home / "repo"), "--json", *flags, home=home)
    report = json.loads(ran.stdout)
    return report["state"], {member["source"]: member["state"] for member in report["members"]}


def test_a_member_that_never_started_is_missed(tmp_path: Path, repository: Repository) -> None:
    _back_up(repository, "kafka", ("kafka", "zookeeper"))
    assert _info(tmp_path) == ("doesNotExist", {"kafka": "completed", "zookeeper": "doesNotExist"})
    assert _info(tmp_path, "--source", "kafka") == ("completed", {"kafka": "completed"})
    _back_up(repository, "zookeeper", ("kafka", "zookeeper"))
    assert _info(tmp_path) == ("completed", {"kafka": "completed", "zookeeper": "completed"})


def test_a_stranger_with_the_same_id_is_no_member(tmp_path: Path, repository: Repository) -> None:
    _back_up(repository, "kafka", ("kafka",))
    _back_up(repository, "other", ())
    assert _info(tmp_path) == ("completed", {"kafka": "completed"})
