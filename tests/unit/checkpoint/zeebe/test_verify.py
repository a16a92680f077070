"""What a verification of a Zeebe store finds: nothing in a whole one, and every damage by its object."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from logkeep.checkpoint.zeebe.cut import CutResult, UncheckedPair
from logkeep.checkpoint.zeebe.inventory import find_backup, read_inventory
from logkeep.checkpoint.zeebe.states import BackupState
from logkeep.checkpoint.zeebe.verify import VerifiedBackup, verify_backup
from logkeep.engine.inline import InlineEngine
from logkeep.errors import UnknownBackup
from logkeep.model.findings import Finding, Severity
from logkeep.store.local.store import LocalStore
from tests.support.zeebe.handmade import (
    COMMAND,
    MadeCopy,
    MadeRecord,
    copy_of,
    create,
    frames,
    name_of,
    segment,
    write_store,
)
from tests.support.zeebe.made_backups import ID, POSITIONS, batches, key, made_backup

SEGMENT = "1/20/0/segments/raft-partition-partition-1-1.log"


def verified(root: Path, number: int = ID) -> VerifiedBackup:
    store = LocalStore(root)
    return verify_backup(store, find_backup(store, str(number)), InlineEngine())


def found(result: VerifiedBackup) -> list[tuple[str, str]]:
    """Codes and places, without notes."""
    return [(each.code, each.where) for each in result.findings if each.severity is not Severity.NOTE]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return write_store(tmp_path / "store", made_backup())


@pytest.mark.parametrize("layout", ["s3", "s3-8.9", "files"])
def test_a_whole_backup_in_every_layout(tmp_path: Path, layout: str) -> None:
    result = verified(write_store(tmp_path, made_backup(), layout))
    assert found(result) == []
    assert result.backup.state is BackupState.COMPLETED
    unchecked = (UncheckedPair(value_type=0, intent=3, commands=1),)
    assert result.cut == CutResult(proven=5, unchecked=unchecked)
    assert {each.code for each in result.findings} == {"cut-unchecked", "log-untrimmed"}
    assert [each.manifest.checkpoint_position for each in result.copies] == list(POSITIONS.values())


def test_bytes_of_an_older_manifest_are_no_damage(tmp_path: Path) -> None:
    root = write_store(tmp_path, made_backup(), "files")
    manifest = root / "manifests/1/20/0/manifest.json"
    manifest.write_bytes(manifest.read_bytes() + b'ESS"}')
    result = verified(root)
    assert found(result) == []
    assert "manifest-not-cut" in {each.code for each in result.findings}


def test_a_missing_object_is_named(store: Path) -> None:
    (store / SEGMENT).unlink()
    assert ("object-missing", SEGMENT) in found(verified(store))


def test_a_cut_object_is_named(store: Path) -> None:
    data = (store / SEGMENT).read_bytes()
    (store / SEGMENT).write_bytes(data[:600])
    assert ("segment-damaged", SEGMENT) in found(verified(store))
    used = next(each for each in verified(write_store(store, made_backup())).copies[0].segments).used_bytes
    (store / SEGMENT).write_bytes(data[: used + 10])
    notes = [each for each in verified(store).findings if each.code == "segment-short"]
    assert [each.where for each in notes] == [SEGMENT]


def test_a_trimmed_copy_is_whole(tmp_path: Path) -> None:
    copies = [
        replace(
            each,
            segments={name_of(each.partition): segment(frames(made[: 1 + _create(made)]))},
            snapshot_id="",
            snapshot={},
        )
        for each, made in zip(made_backup(), batches().values(), strict=True)
    ]
    result = verified(write_store(tmp_path, copies))
    assert found(result) == []
    assert {each.code for each in result.findings} == {"cut-unchecked", "log-untrimmed"}, "one frame has more records"


def _create(made: list[list[MadeRecord]]) -> int:
    return next(i for i, batch in enumerate(made) if any(each.value_type == 254 for each in batch))


def test_segments_of_a_log_must_follow_each_other(store: Path) -> None:
    where = "3/20/0/segments/raft-partition-partition-3-2.log"
    (store / where).write_bytes(segment(frames(batches()[3][2:], first_index=4), 2, 4, 4096))
    assert ("index-gap", where) in found(verified(store))
    other = [[MadeRecord(5)], [create(6, ID)]]
    (store / where).write_bytes(segment(frames(other, first_index=3), 2, 3, 4096))
    assert ("position-gap", where) in found(verified(store))


def test_a_closed_segment_must_reach_its_end(store: Path) -> None:
    where = "3/20/0/segments/raft-partition-partition-3-1.log"
    whole = bytearray((store / where).read_bytes())
    at = 57 + len(frames(batches()[3][:1])[0])
    whole[at] = 0
    (store / where).write_bytes(whole)
    assert {("segment-end", where), ("frame-cut-off", where)} <= set(found(verified(store)))


@pytest.mark.parametrize("moved", [-1, 1])
@pytest.mark.parametrize("partition", [1, 2, 3])
def test_a_moved_checkpoint_position_is_found(tmp_path: Path, partition: int, moved: int) -> None:
    copies = [
        replace(each, position=each.position + (moved if each.partition == partition else 0)) for each in made_backup()
    ]
    assert "checkpoint-missing" in {code for code, _ in found(verified(write_store(tmp_path, copies)))}


def test_a_checkpoint_of_another_id_does_not_count(tmp_path: Path) -> None:
    made = batches()[2]
    made[3] = [create(4, ID + 1), MadeRecord(5)]
    copies = [each for each in made_backup() if each.partition != 2] + [copy_of(2, made, 4, partitions=3)]
    assert "checkpoint-missing" in {code for code, _ in found(verified(write_store(tmp_path, copies)))}


def test_flags_of_a_restored_log_with_old_bytes_are_damage(tmp_path: Path) -> None:
    made = batches()[2]
    made[1] = [replace(made[1][0], flags=115)]
    copies = [each for each in made_backup() if each.partition != 2] + [copy_of(2, made, 4, partitions=3)]
    assert [code for code, _ in found(verified(write_store(tmp_path, copies)))] == ["skipped-records"]


class TestSnapshot:
    def test_a_flipped_byte_of_a_file_is_found(self, store: Path) -> None:
        where = "3/20/0/snapshot/000012.sst"
        (store / where).write_bytes(b"tablf" * 100)
        assert found(verified(store)) == [("checksum-mismatch", where)]

    def test_a_snapshot_must_be_before_the_checkpoint(self, tmp_path: Path) -> None:
        third = made_backup()[2]
        metadata = json.loads(third.snapshot["zeebe.metadata"]) | {"lastFollowupEventPosition": 3}
        inside = {"zeebe.metadata": json.dumps(metadata).encode()}
        copies = [*made_backup()[:2], replace(third, snapshot=third.snapshot | inside)]
        codes = {code for code, _ in found(verified(write_store(tmp_path, copies)))}
        assert codes == {"snapshot-too-new", "checksum-mismatch"}

    def test_the_log_must_begin_where_the_snapshot_ends(self, store: Path) -> None:
        document = json.loads((store / "3/20/0/manifest.json").read_text())
        del document["segmentFiles"]["files"]["raft-partition-partition-3-1.log"]
        (store / "3/20/0/manifest.json").write_text(json.dumps(document))
        assert found(verified(store)) == []
        data = segment(frames(batches()[3][3:], first_index=4), 2, 4, 4096)
        (store / "3/20/0/segments/raft-partition-partition-3-2.log").write_bytes(data)
        assert "log-start" in {code for code, _ in found(verified(store))}


class TestStates:
    def test_copies_that_are_not_completed(self, tmp_path: Path) -> None:
        copies = made_backup()
        copies[1] = replace(copies[1], status="failed", reason="no snapshot")
        result = verified(write_store(tmp_path, copies))
        assert result.backup.state is BackupState.FAILED
        assert found(result) == [("copy-not-completed", "2/20/0/manifest.json")]
        assert "no snapshot" in result.findings[0].what

    def test_a_completed_copy_beside_a_failed_one_counts(self, tmp_path: Path) -> None:
        other = replace(made_backup()[1], node=7, status="failed", reason="died")
        result = verified(write_store(tmp_path, [*made_backup(), other]))
        assert result.backup.state is BackupState.COMPLETED
        assert found(result) == []

    def test_two_completed_copies_must_agree(self, tmp_path: Path) -> None:
        other = replace(made_backup()[1], node=7, position=3)
        result = verified(write_store(tmp_path, [*made_backup(), other]))
        codes = {code for code, _ in found(result)}
        assert {"copies-differ", "checkpoint-missing"} <= codes
        assert (best := result.best(2)) is not None
        assert best.copy.place.node == 0

    def test_a_partition_without_a_copy(self, tmp_path: Path) -> None:
        result = verified(write_store(tmp_path, made_backup()[:2]))
        assert result.backup.state is BackupState.INCOMPLETE
        assert ("copy-missing", "backup 20") in found(result)

    def test_a_manifest_under_another_name(self, store: Path) -> None:
        (store / "2/20/0/manifest.json").write_bytes((store / "1/20/0/manifest.json").read_bytes())
        assert ("manifest-unusable", "2/20/0/manifest.json") in found(verified(store))

    def test_a_manifest_that_cannot_be_read(self, store: Path) -> None:
        (store / "2/20/0/manifest.json").write_bytes(b"{")
        result = verified(store)
        assert result.backup.state is BackupState.UNREADABLE
        assert ("manifest-unusable", "2/20/0/manifest.json") in found(result)

    def test_ids(self, store: Path) -> None:
        write_store(store, [replace(each, checkpoint=30, status="in_progress") for each in made_backup()])
        listed = [(each.checkpoint_id, each.state) for each in read_inventory(LocalStore(store))]
        assert listed == [(20, BackupState.COMPLETED), (30, BackupState.IN_PROGRESS)]
        assert find_backup(LocalStore(store), "latest").checkpoint_id == 20
        for wrong in ("25", "x", "-1", "9" * 30):
            with pytest.raises(UnknownBackup):
                find_backup(LocalStore(store), wrong)


class TestCut:
    def orphans(self, tmp_path: Path, copies: list[MadeCopy]) -> list[Finding]:
        return [each for each in verified(write_store(tmp_path, copies)).findings if each.code == "cut-orphan"]

    def test_a_command_before_its_cause(self, tmp_path: Path) -> None:
        """Partition 1 is cut before it creates the subscription that partition 2 has received."""
        made = batches()[1]
        made = [*made[:3], [create(4, ID)], [replace(made[3][0], position=5)]]
        orphans = self.orphans(tmp_path, [copy_of(1, made, 4, partitions=3), *made_backup()[1:]])
        assert [each.where for each in orphans] == ["partition 2"]
        assert "position 2 (value type 11, intent 0)" in orphans[0].what
        assert "position 5 of partition 1" in orphans[0].what

    def test_a_cause_behind_a_trimmed_log(self, tmp_path: Path) -> None:
        made = [*batches()[1][:3], [create(4, ID)]]
        orphans = self.orphans(tmp_path, [copy_of(1, made, 4, partitions=3), *made_backup()[1:]])
        assert len(orphans) == 1
        assert "after the end of the log" in orphans[0].what

    def test_an_acknowledgement_before_the_distributed_command(self, tmp_path: Path) -> None:
        made = [[], [create(1, ID)], [MadeRecord(2, COMMAND, 4, 0, key=key(1, 5))]]
        orphans = self.orphans(tmp_path, [made_backup()[0], copy_of(2, made, 1, partitions=3), made_backup()[2]])
        assert {each.where for each in orphans} == {"partition 1"}
        assert len(orphans) == 2, "the subscription too"

    def test_a_compacted_source_is_inconclusive(self, tmp_path: Path) -> None:
        """The log of partition 1 begins behind the records that caused commands."""
        first = made_backup()[0]
        data = segment(frames(batches()[1][5:], first_index=6), 1, 6, 4096)
        first = replace(first, segments={name_of(1): data}, snapshot_id="5-1-5-5-0")
        result = verified(write_store(tmp_path, [first, *made_backup()[1:]]))
        assert (result.cut.orphans, result.cut.inconclusive, result.cut.proven) == (0, 3, 1)
        assert "cut-inconclusive" in {each.code for each in result.findings}


@pytest.mark.parametrize(("algorithm", "pack"), [("gz", gzip.compress), ("snow", bytes)])
def test_compressed_segments(store: Path, algorithm: str, pack: object) -> None:
    assert callable(pack)
    (store / SEGMENT).write_bytes(pack((store / SEGMENT).read_bytes()))
    document = json.loads((store / "1/20/0/manifest.json").read_text())
    document["segmentFiles"]["files"][name_of(1)] = {"compressionAlgorithm": algorithm}
    (store / "1/20/0/manifest.json").write_text(json.dumps(document))
    codes = {code for code, _ in found(verified(store))}
    assert codes == set() if algorithm == "gz" else "segment-damaged" in codes
