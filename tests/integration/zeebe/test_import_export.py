"""Backups that a real Zeebe stored, imported into a repository and exported again."""

import shutil
from pathlib import Path

import pytest

from logkeep.checkpoint.zeebe.repo.export_run import StoreLayout
from logkeep.errors import BackupFailed, IllegalTransition, SourceDamaged, TargetUnsafe
from logkeep.formats.zeebe.manifest_text import write_manifest
from logkeep.formats.zeebe.manifests import read_manifest
from logkeep.formats.zeebe.segment_descriptor import DESCRIPTOR_BYTES
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.local.store import LocalStore
from logkeep.store.memory import MemoryStore
from tests.support.kafka.whole_backups import new_place
from tests.support.zeebe.archived import exported, imported, is_good
from tests.support.zeebe.golden import unpacked_store


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked_store(tmp_path_factory.mktemp("golden") / "store")


@pytest.fixture(scope="module")
def archived(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> SourceRef:
    """A repository with both backups."""
    place = new_place(tmp_path_factory.mktemp("archived") / "repo", "zeebe")
    for number in (10, 20):
        imported(place, LocalStore(golden), number)
    return place


def test_only_what_is_new_is_stored(golden: Path, tmp_path: Path) -> None:
    place = new_place(tmp_path / "repo", "zeebe")
    first, second = imported(place, LocalStore(golden), 10), imported(place, LocalStore(golden), 20)
    assert (first.record.history, second.record.history) == ("h10", "h10")
    assert first.entry.summary.stored_bytes < 30_000, "of 12 MiB that Zeebe stores"
    logs = [s for p in second.record.partitions for s in p.segments]
    assert [s.first for s in logs] == [1, 1, 1]
    assert second.entry.summary.stored_bytes - second.entry.summary.new_bytes == first.entry.summary.stored_bytes
    assert not imported(place, LocalStore(golden), 20).changed


@pytest.mark.parametrize("layout", StoreLayout)
def test_an_export_is_the_log_up_to_the_checkpoint_and_every_file(
    golden: Path, archived: SourceRef, layout: StoreLayout, tmp_path: Path
) -> None:
    for number in (10, 20):
        exported(archived, number, LocalStore(tmp_path), layout)
        assert is_good(LocalStore(tmp_path), number)
    content = tmp_path if layout is StoreLayout.S3 else tmp_path / "contents"
    for path in sorted(p for p in content.rglob("*") if p.is_file() and p.name != "manifest.json"):
        original = (golden / path.relative_to(content)).read_bytes()
        if path.suffix == ".log":
            assert original[DESCRIPTOR_BYTES:].startswith(path.read_bytes()[DESCRIPTOR_BYTES:])
            assert path.stat().st_size < len(original)
        else:
            assert path.read_bytes() == original
    for path in tmp_path.rglob("manifest.json"):
        found = read_manifest(path.read_bytes())
        assert write_manifest(found) == path.read_bytes()


def test_a_target_with_other_objects_is_refused(archived: SourceRef, golden: Path, tmp_path: Path) -> None:
    shutil.copytree(golden / "1", tmp_path / "1")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TargetUnsafe, match="another backup 20 of partition 1"):
        exported(archived, 20, LocalStore(tmp_path), StoreLayout.S3)
    with pytest.raises(TargetUnsafe, match="would not write"):
        exported(archived, 20, LocalStore(tmp_path), StoreLayout.FILES)
    assert [p for p in sorted(tmp_path.rglob("*")) if ".partial" not in str(p)] == before


def test_a_log_that_does_not_continue_begins_a_history(golden: Path, tmp_path: Path) -> None:
    """As after a restore: the segment has other frames below the end of the archived backup."""
    place = new_place(tmp_path / "repo", "zeebe")
    imported(place, LocalStore(golden), 20, wanted=5)
    again = imported(place, LocalStore(golden), 10)
    assert (again.record.history, again.new_history) == ("h10", True)
    out = MemoryStore()
    exported(place, 10, out, StoreLayout.S3)
    assert is_good(out, 10)


def test_ids_only_grow(archived: SourceRef, golden: Path) -> None:
    with pytest.raises(IllegalTransition) as refused:
        imported(archived, LocalStore(golden), 20, wanted=15)
    assert "--id" in refused.value.remedy


def test_a_damaged_or_incomplete_backup_is_refused(golden: Path, tmp_path: Path) -> None:
    root = tmp_path / "store"
    shutil.copytree(golden, root)
    place = new_place(tmp_path / "repo", "zeebe")
    segment = root / "2" / "20" / "0" / "segments" / "raft-partition-partition-2-1.log"
    data = bytearray(segment.read_bytes())
    data[3000] ^= 4
    segment.write_bytes(data)
    with pytest.raises(SourceDamaged, match="CRC-32C"):
        imported(place, LocalStore(root), 20)
    segment.unlink()
    with pytest.raises(SourceDamaged, match="missing"):
        imported(place, LocalStore(root), 20)
    shutil.rmtree(root / "3" / "20")
    shutil.rmtree(root / "2" / "20")
    with pytest.raises(BackupFailed, match="no copy of partition 2 is completed"):
        imported(place, LocalStore(root), 20)
    shutil.rmtree(root)
    shutil.copytree(golden, root)
    assert imported(place, LocalStore(root), 20).changed, "the id of an interrupted import can be used again"
