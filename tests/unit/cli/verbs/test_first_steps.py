"""What a new user meets before the first backup."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.status import status_code, status_text
from logkeep.reports.status import SourceStatus, StatusReport
from logkeep.reports.stored_size import StoredSize
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


@pytest.mark.parametrize(
    ("found", "state", "code"),
    (
        ({"newest_good": 7}, "OK", 0),
        ({"newest_good": None}, "WARN", 2),
        ({"newest_good": None, "running": "the first backup"}, "OK", 0),
    ),
)
def test_a_source_without_a_good_backup_needs_attention(found: dict[str, object], state: str, code: int) -> None:
    """Its first backup failed: nothing there can be restored. While the first one runs, nothing is wrong yet."""
    names = ("newest_good_committed", "age_seconds", "objective_seconds", "running", "last_verified")
    empty: dict[str, Any] = dict.fromkeys(names)
    empty |= {"source": "prod", "breached": False, "backups": 0, "damaged": (), "interrupted": (), "warnings": ()}
    one = msgspec.convert({**empty, **found}, SourceStatus)
    size = StoredSize(objects=0, stored_bytes=0, complete=True, garbage_objects=0, garbage_bytes=0)
    report = StatusReport(url="file:///repo", sources=(one,), breached=False, size=size)
    assert status_text(report, TerminalStyle()).startswith(f"{state}  prod\n")
    assert status_code(report) == code
