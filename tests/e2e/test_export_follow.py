"""`kafka export --follow`: backups of a repository as they come, also after a SIGKILL."""

import signal
from pathlib import Path

import pytest

from tests.support.cli.filled_repository import Filled
from tests.support.cli.processes import logkeep
from tests.support.kafka.compacted_backups import CompactedSource
from tests.support.kafka.follow_process import Following, following


@pytest.fixture
def source(repo: Filled) -> CompactedSource:
    """A source whose backups are made by hand."""
    found = CompactedSource(repo.place("by-hand"), partitions=2, groups={"g": 2})
    found.write([(b"a", b"1"), (b"b", b"2")])
    found.back_up()
    return found


def _more(source: CompactedSource, run: Following, offsets: int) -> int:
    seen = run.new_offsets()
    source.write([(b"k%d" % n, b"v") for n in range(offsets)])
    backup = source.back_up()
    run.wait_for_offsets(seen + offsets)
    return backup


def test_each_new_backup_is_exported(source: CompactedSource, repo: Filled, tmp_path: Path) -> None:
    words = ("kafka", "export", "--source", "by-hand", "--format", "kafka-backup-v1", "--engine", "inline")
    followed, once = tmp_path / "followed", tmp_path / "once"
    forever = (*words, "--to", str(followed), "--interval", "50ms")
    with following(repo, forever) as run:
        run.wait_for_offsets(2)
        _more(source, run, 3)
        run.wait_for_rounds(2, new_offsets=0)
        assert run.ended(signal.SIGKILL) == -signal.SIGKILL
    with following(repo, forever, "again.json") as run:
        run.wait_for_rounds(1)
        newest = _more(source, run, 4)
        assert run.ended(signal.SIGTERM) == 0
        assert run.documents()[-1]["id"] == newest
    assert logkeep(*words, "--to", str(once), "--repo", repo.url, home=repo.home).returncode == 0
    assert _files(followed) == _files(once)
    for wrong, said in ((("1", *forever[2:]), "newest backup"), ((*forever[2:], "--rewrite", "state"), "single one")):
        refused = logkeep(*forever[:2], *wrong, "--follow", "--repo", repo.url, home=repo.home)
        assert (refused.returncode, said in refused.stderr) == (40, True), refused.stderr


def _files(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / "state").iterdir()}
