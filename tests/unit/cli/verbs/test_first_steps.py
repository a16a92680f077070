"""What a new user meets before the first backup."""

import json
from pathlib import Path

import pytest

from tests.support.cli.processes import logkeep


@pytest.fixture
def repo(tmp_path: Path) -> dict[str, str]:
    env = {"LOGKEEP_REPO": str(tmp_path / "repo")}
    assert logkeep("init", home=tmp_path, env=env).returncode == 0
    return env


def test_an_objective_is_breached_while_there_is_no_source(tmp_path: Path, repo: dict[str, str]) -> None:
    assert logkeep("status", home=tmp_path, env=repo).returncode == 0
    ran = logkeep("status", "--max-age", "1d", "--json", home=tmp_path, env=repo)
    assert ran.returncode == 60
    assert json.loads(ran.stdout)["breached"] is True


def test_a_second_init_says_that_there_is_a_repository(tmp_path: Path, repo: dict[str, str]) -> None:
    ran = logkeep("init", home=tmp_path, env=repo)
    assert ran.returncode == 40
    assert "there is already a repository" in ran.stderr


def test_an_init_beside_strangers_names_one(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir(mode=0o700)
    (tmp_path / "photos" / "cat.jpg").touch()
    ran = logkeep("init", "-r", str(tmp_path / "photos"), home=tmp_path)
    assert ran.returncode == 40
    assert "holds cat.jpg" in ran.stderr
