"""Backups that a real Zeebe stored, imported into a repository and exported again; every store call may be the last."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from logkeep.checkpoint.zeebe.inventory import find_backup
from logkeep.checkpoint.zeebe.repo.export_run import StoreLayout, ZeebeExport, ZeebeExported
from logkeep.checkpoint.zeebe.repo.import_run import ZeebeImport, ZeebeImported, ZeebeImportOptions, record_of
from logkeep.checkpoint.zeebe.verify import verify_backup
from logkeep.engine.inline import InlineEngine
from logkeep.errors import BackupFailed, IllegalTransition, SourceDamaged, TargetUnsafe
from logkeep.formats.zeebe.manifest_text import write_manifest
from logkeep.formats.zeebe.manifests import read_manifest
from logkeep.formats.zeebe.segment_descriptor import DESCRIPTOR_BYTES
from logkeep.model.findings import Severity
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import collect
from logkeep.repository.verify.run import Verifier
from logkeep.store.base import Store
from logkeep.store.local import LocalStore
from tests.crash.points import AT_ONCE, DONE, KILLED, in_child
from tests.crash.seeds import seeded_part
from tests.support.faults.plan import KillAfter, no_faults
from tests.support.faults.store import FaultyStore
from tests.support.kafka.whole_backups import new_place
from tests.support.zeebe.golden import unpacked_store

TTL = timedelta(minutes=5)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked_store(tmp_path_factory.mktemp("golden") / "store")


@pytest.fixture(scope="module")
def archived(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> SourceRef:
    """A repository with both backups."""
    place = new_place(tmp_path_factory.mktemp("archived") / "repo", "zeebe")
    for number in (10, 20):
        imported(place, golden, number)
    return place


def imported(place: SourceRef, root: Path, number: int, wanted: int | None = None) -> ZeebeImported:
    store = LocalStore(root)
    task = ZeebeImport(place, store, find_backup(store, str(number)), utc_now, random_token)
    return task.run(ZeebeImportOptions(number, wanted, (), TTL), InlineEngine())


def exported(place: SourceRef, number: int, store: Store, layout: StoreLayout) -> ZeebeExported:
    folded = read_chain(place)
    entry = folded.entry(number)
    assert entry is not None
    record = record_of(place, entry)
    assert record is not None
    return ZeebeExport(place, folded, entry, record).run(store, layout, InlineEngine())


def empty(root: Path) -> LocalStore:
    shutil.rmtree(root, ignore_errors=True)
    store = LocalStore(root)
    store.create()
    return store


def is_good(root: Path, number: int) -> bool:
    store = LocalStore(root)
    found = verify_backup(store, find_backup(store, str(number)), InlineEngine())
    return not [each for each in found.findings if each.severity is not Severity.NOTE]


def test_only_what_is_new_is_stored(golden: Path, tmp_path: Path) -> None:
    place = new_place(tmp_path / "repo", "zeebe")
    first, second = imported(place, golden, 10), imported(place, golden, 20)
    assert (first.record.history, second.record.history) == ("h10", "h10")
    assert first.entry.summary.stored_bytes < 30_000, "of 12 MiB that Zeebe stores"
    logs = [s for p in second.record.partitions for s in p.segments]
    assert [s.first for s in logs] == [1, 1, 1]
    assert second.entry.summary.stored_bytes - second.entry.summary.new_bytes == first.entry.summary.stored_bytes
    assert not imported(place, golden, 20).changed


@pytest.mark.parametrize("layout", StoreLayout)
def test_an_export_is_the_log_up_to_the_checkpoint_and_every_file(
    golden: Path, archived: SourceRef, layout: StoreLayout, tmp_path: Path
) -> None:
    for number in (10, 20):
        exported(archived, number, LocalStore(tmp_path), layout)
        assert is_good(tmp_path, number)
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
    imported(place, golden, 20, wanted=5)
    again = imported(place, golden, 10)
    assert (again.record.history, again.new_history) == ("h10", True)
    exported(place, 10, empty(tmp_path / "out"), StoreLayout.S3)
    assert is_good(tmp_path / "out", 10)


def test_ids_only_grow(archived: SourceRef, golden: Path) -> None:
    with pytest.raises(IllegalTransition):
        imported(archived, golden, 20, wanted=15)


def test_a_damaged_or_incomplete_backup_is_refused(golden: Path, tmp_path: Path) -> None:
    root = tmp_path / "store"
    shutil.copytree(golden, root)
    place = new_place(tmp_path / "repo", "zeebe")
    segment = root / "2" / "20" / "0" / "segments" / "raft-partition-partition-2-1.log"
    data = bytearray(segment.read_bytes())
    data[3000] ^= 4
    segment.write_bytes(data)
    with pytest.raises(SourceDamaged, match="CRC-32C"):
        imported(place, root, 20)
    segment.unlink()
    with pytest.raises(SourceDamaged, match="missing"):
        imported(place, root, 20)
    shutil.rmtree(root / "3" / "20")
    shutil.rmtree(root / "2" / "20")
    with pytest.raises(BackupFailed, match="no copy of partition 2 is completed"):
        imported(place, root, 20)
    shutil.rmtree(root)
    shutil.copytree(golden, root)
    assert imported(place, root, 20).changed, "the id of an interrupted import can be used again"


def _check(place: SourceRef, number: int, tmp: Path) -> None:
    verifier = Verifier(place, InlineEngine(), this_process("verify"), utc_now, random_token)
    assert verifier.verify(BackupId(number), "data").document.verdict == GOOD
    exported(place, number, empty(tmp), StoreLayout.S3)
    assert is_good(tmp, number)


def test_an_import_killed_after_every_store_call_is_continued(golden: Path, tmp_path: Path) -> None:
    place = new_place(tmp_path / "prepared", "zeebe")
    imported(place, golden, 10)
    shutil.copytree(tmp_path / "prepared", tmp_path / "counted")
    counted = FaultyStore(LocalStore(tmp_path / "counted"), no_faults)
    imported(SourceRef(counted, place.repository, "zeebe"), golden, 20)
    for call in seeded_part("zeebe-import", list(range(1, len(counted.calls))), 24):
        root = tmp_path / "victim"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(tmp_path / "prepared", root)
        dying = SourceRef(FaultyStore(LocalStore(root), KillAfter(call)), place.repository, "zeebe")
        assert in_child(lambda place=dying: imported(place, golden, 20)) == KILLED  # type: ignore[misc]  # bound now
        left = SourceRef(LocalStore(root), place.repository, "zeebe")
        imported(left, golden, 20)
        with writing(left, "prune", utc_now, random_token) as session:
            collect(session, AT_ONCE)
        _check(left, 10, tmp_path / "out")
        _check(left, 20, tmp_path / "out")


@pytest.mark.parametrize("layout", StoreLayout)
def test_an_export_killed_after_every_store_call_is_completed(
    archived: SourceRef, layout: StoreLayout, tmp_path: Path
) -> None:
    counted = FaultyStore(empty(tmp_path / "counted"), no_faults)
    exported(archived, 20, counted, layout)
    for call in seeded_part(f"zeebe-export-{layout}", list(range(1, len(counted.calls))), 24):
        root = tmp_path / "victim"
        dying = FaultyStore(empty(root), KillAfter(call))
        ended = in_child(lambda store=dying: exported(archived, 20, store, layout))  # type: ignore[misc]  # bound now
        assert ended in {KILLED, DONE}
        exported(archived, 20, LocalStore(root), layout)
        assert is_good(root, 20)
