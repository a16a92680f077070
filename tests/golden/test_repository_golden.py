"""Repositories written by earlier releases are read for ever: listed, verified, read back, continued.

`v1.tar.xz` holds a repository of format 1. It is never written again: a new format adds a file, and this test goes on
reading the old ones. It was made by `python -m tests.golden.make_repository`.
"""

import json
import tarfile
from pathlib import Path

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import open_repository
from logkeep.repository.backups.source import view
from logkeep.repository.backups.states import Completed, Failed
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier
from logkeep.store.local.store import LocalStore
from tests.crash.points import run_backup
from tests.support.scripted.backup import expected, restored

HERE = Path(__file__).parent / "repository"


@pytest.mark.parametrize("version", ["v1"])
def test_a_repository_of_an_earlier_release(version: str, tmp_path: Path) -> None:
    with tarfile.open(HERE / f"{version}.tar.xz") as tar:
        tar.extractall(tmp_path, filter="data")
    story = json.loads((HERE / f"{version}.json").read_text())
    repository = open_repository(LocalStore(tmp_path / version))
    assert repository.document.repository == story["repository"]
    assert repository.sources() == ["prod"]
    place = repository.place("prod")
    states = view(place, utc_now(), this_process("reader")).states()
    assert [s.id for s in states if isinstance(s, Completed)] == [b["id"] for b in story["completed"]]
    assert [(s.id, s.reason) for s in states if isinstance(s, Failed)] == [tuple(f) for f in story["failed"]]
    assert [s.entry.hold for s in states if isinstance(s, Completed)] == [b["hold"] for b in story["completed"]]
    verifier = Verifier(place, InlineEngine(), this_process("v"), utc_now, random_token)
    for backup in story["completed"]:
        ends = {int(p): end for p, end in backup["ends"].items()}
        assert restored(place, backup["id"]) == expected(ends)
        assert verifier.verify(BackupId(backup["id"]), "data").document.verdict == GOOD
    newer = run_backup(place, {0: 300, 1: 9, 2: 7})
    assert restored(place, newer) == expected({0: 300, 1: 9, 2: 7})
