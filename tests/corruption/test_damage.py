"""Write, break, prove broken, fix, prove whole, use again: every object of a repository, damaged in every way.

`verify` names the object; nothing is read back from it as if it were whole.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import Damaged, LogkeepError, ObjectMissing, UnsafeName
from logkeep.model.findings import Severity
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.backups.verdicts import DAMAGED, GOOD, verdicts
from logkeep.repository.backups.verification import stored_verifications
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.format import StoreFacts, open_format
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier, VerifyResult
from logkeep.store.local.store import LocalStore
from tests.crash.points import run_backup
from tests.support.scripted.backup import expected, restored

ENDS = [{0: 6, 1: 3}, {0: 9, 1: 8}]


class Repo:
    """A directory repository with two backups; the second stands on the first."""

    def __init__(self, root: Path) -> None:
        self.root = root
        store = LocalStore(root)
        store.create()
        document = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token).document
        self.place = SourceRef(store, document.repository, "prod")
        self.ids = [run_backup(self.place, e) for e in ENDS]

    def file(self, pattern: str) -> Path:
        """The first object of this shape that the first backup needs."""
        manifest = read_manifest(self.place, read_chain(self.place).completed[0])
        parts = {layout.part("prod", ref.token) for ref in manifest.parts}
        found = [p for p in sorted(self.root.glob(pattern)) if "/parts/" not in str(p) or self.name(p) in parts]
        assert found, f"nothing is called {pattern}"
        return found[0]

    def name(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def verify(self, backup_id: int, level: str = "data") -> VerifyResult:
        verifier = Verifier(self.place, InlineEngine(), this_process("v"), utc_now, random_token)
        return verifier.verify(BackupId(backup_id), level)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def link_outside(path: Path) -> None:
    outside = path.parent.parent / "outside"
    shutil.copy(path, outside)
    path.unlink()
    path.symlink_to(outside)


DATA = "sources/prod/topics/scripted/history-1/partition=0/*.log"
PART = "sources/prod/parts/*.parquet"
MANIFEST = "sources/prod/backups/*/manifest.*.json"
COMMIT = "sources/prod/commits/*1.json"
WAYS = (flip, truncate, empty, remove, link_outside)


@pytest.mark.parametrize("damage", WAYS, ids=lambda w: w.__name__)
@pytest.mark.parametrize("pattern", [DATA, PART, MANIFEST, COMMIT], ids=["data", "part", "manifest", "commit"])
def test_every_kind_of_object_damaged_in_every_way(repo: Repo, damage: Callable[[Path], None], pattern: str) -> None:
    assert repo.verify(repo.ids[0]).document.verdict == GOOD
    path = repo.file(pattern)
    whole = path.read_bytes()
    damage(path)
    broken = repo.verify(repo.ids[0])
    assert broken.document.verdict == DAMAGED
    named = [f.where for f in broken.findings if f.severity is Severity.DAMAGE]
    assert any(repo.name(path) in where or where.startswith("sources/prod/commits/") for where in named), named
    if pattern != COMMIT:
        assert repo.name(path) in named
    with pytest.raises((LogkeepError, AssertionError)):
        restored(repo.place, repo.ids[0])
    path.unlink(missing_ok=True)
    path.write_bytes(whole)
    assert repo.verify(repo.ids[0]).document.verdict == GOOD
    assert restored(repo.place, repo.ids[0]) == expected(ENDS[0])
    run_backup(repo.place, {0: 20, 1: 9})


def test_two_segments_that_changed_places(repo: Repo) -> None:
    a, b = sorted(repo.root.glob(DATA))[:2]
    first, second = a.read_bytes(), b.read_bytes()
    a.write_bytes(second)
    b.write_bytes(first)
    named = {f.where for f in repo.verify(repo.ids[1]).findings}
    assert {repo.name(a), repo.name(b)} <= named


def test_two_commits_that_changed_places(repo: Repo) -> None:
    a, b = sorted(repo.root.glob("sources/prod/commits/*.json"))[:2]
    first, second = a.read_bytes(), b.read_bytes()
    a.write_bytes(second)
    b.write_bytes(first)
    with pytest.raises(Damaged, match="another name"):
        read_chain(repo.place)


def test_an_old_manifest_replayed_under_a_new_name(repo: Repo) -> None:
    old, new = sorted(repo.root.glob(MANIFEST))
    new.write_bytes(old.read_bytes())
    broken = repo.verify(repo.ids[1])
    assert [f.where for f in broken.findings] == [repo.name(new)]


def test_a_document_of_another_repository_does_not_fit(repo: Repo, tmp_path: Path) -> None:
    other = Repo(tmp_path / "other")
    shutil.copy(other.file("sources/prod/commits/*1.json"), repo.file("sources/prod/commits/*1.json"))
    with pytest.raises(Damaged, match="another repository"):
        read_chain(repo.place)


def test_a_store_never_follows_a_forged_name(repo: Repo) -> None:
    for name in ("../outside", "/etc/passwd", "sources/../../outside", "a//b", "sources/prod/./x"):
        with pytest.raises(UnsafeName):
            repo.place.store.get(name, 10)
        with pytest.raises(UnsafeName):
            repo.place.store.put_new(name, b"x")
        with pytest.raises(UnsafeName):
            repo.place.store.delete(name)


def test_damage_is_known_of_every_backup_that_shares_the_object(repo: Repo) -> None:
    flip(repo.file(DATA))
    assert repo.verify(repo.ids[0]).also_damaged == (repo.ids[1],)


def test_a_shallow_look_does_not_unsay_deep_damage(repo: Repo) -> None:
    path = repo.file(DATA)
    flip(path)
    repo.verify(repo.ids[0], "data")
    assert repo.verify(repo.ids[0], "files").document.verdict == GOOD
    standing = verdicts(said for said, _ in stored_verifications(repo.place))
    assert standing[BackupId(repo.ids[0])].damaged


def test_a_new_backup_on_damaged_ground_does_not_pass_for_good(repo: Repo) -> None:
    flip(repo.file(DATA))
    repo.verify(repo.ids[0], "data")
    newer = run_backup(repo.place, {0: 20, 1: 9})
    assert verdicts(said for said, _ in stored_verifications(repo.place))[BackupId(newer)].damaged


def test_the_format_object_has_a_copy(repo: Repo) -> None:
    flip(repo.root / layout.FORMAT)
    assert open_format(repo.place.store).warnings
    flip(repo.root / layout.FORMAT_COPY)
    with pytest.raises(Damaged):
        open_format(repo.place.store)
    (repo.root / layout.FORMAT).unlink()
    with pytest.raises((Damaged, ObjectMissing)):
        open_format(repo.place.store)
