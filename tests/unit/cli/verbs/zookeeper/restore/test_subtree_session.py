"""`zookeeper restore-subtree --resume` and `--undo` name their journal before they begin, on stderr."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logkeep.cli.verbs.zookeeper.restore import subtree_finish
from logkeep.errors import ClusterUnreachable
from logkeep.zookeeper.subtree.journal import Heading, new_journal
from tests.support.cli.in_process import Here


@contextmanager
def _no_session(*_: object) -> Iterator[None]:
    yield None


def _dies(*_: object) -> None:
    raise ClusterUnreachable("nobody knows whether it was done")


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(subtree_finish, "opened_session", _no_session)
    for way in ("resume", "undo"):
        monkeypatch.setattr(subtree_finish, way, _dies)
    path = tmp_path / "first"
    new_journal(path, Heading(hosts="h:1", top="/t", what="backup 1"), ()).close()
    return path


def test_it_is_named_before_anything_can_go_wrong(journal: Path, tmp_path: Path) -> None:
    here, asked = Here(tmp_path), ("zookeeper", "restore-subtree", "--yes")
    resumed = here.run(*asked, "--resume", str(journal), code=51)
    assert resumed.stderr.splitlines()[0] == f"its journal is {journal}"
    undone = here.run(*asked, "--undo", str(journal), "--journal", str(tmp_path / "second"), code=51)
    assert undone.stderr.splitlines()[0] == f"its journal is {tmp_path / 'second'}"


def test_quiet_is_quiet(journal: Path, tmp_path: Path) -> None:
    told = Here(tmp_path).run("zookeeper", "restore-subtree", "--yes", "-q", "--resume", str(journal), code=51)
    assert "its journal is" not in told.stderr
