"""Backups that a real Zeebe 8.6.0 stored: read to the last byte, consistent, and every change of them is found."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from logkeep.checkpoint.zeebe.cut import LogInCut, check_cut, rows_of
from logkeep.checkpoint.zeebe.inventory import read_inventory
from logkeep.checkpoint.zeebe.log_check import from_first_entry
from logkeep.checkpoint.zeebe.states import BackupState
from logkeep.checkpoint.zeebe.verify import VerifiedBackup, verify_backup
from logkeep.engine.inline import InlineEngine
from logkeep.errors import Damaged
from logkeep.formats.jit import compile_from_now_on
from logkeep.formats.zeebe.snapshots import read_checksums
from logkeep.model.findings import Finding, Severity
from logkeep.store.base import Store
from logkeep.store.memory import MemoryStore
from tests.support.zeebe.golden import unpacked_store

FLIPS = 1_000
COUNTED = (Severity.DAMAGE, Severity.WARNING)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    root = unpacked_store(tmp_path_factory.mktemp("zeebe"))
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def stored(files: dict[str, bytes]) -> Store:
    store = MemoryStore()
    for name, data in files.items():
        store.put_new(name, data)
    return store


def verified(files: dict[str, bytes]) -> Iterator[VerifiedBackup]:
    store = stored(files)
    for backup in read_inventory(store):
        yield verify_backup(store, backup, InlineEngine())


def counted(files: dict[str, bytes]) -> list[Finding]:
    return [each for result in verified(files) for each in result.findings if each.severity in COUNTED]


def short(files: dict[str, bytes]) -> dict[str, bytes]:
    """The same without most of the zeros behind the logs, which takes less time to read."""
    return {name: data.rstrip(b"\0") + bytes(64) if name.endswith(".log") else data for name, data in files.items()}


def of_backup(files: dict[str, bytes], number: int) -> dict[str, bytes]:
    return {name: data for name, data in short(files).items() if name.split("/")[1] == str(number)}


def test_both_backups_are_whole_and_consistent(files: dict[str, bytes]) -> None:
    first, second = verified(files)
    assert [each.backup.state for each in (first, second)] == [BackupState.COMPLETED] * 2
    assert counted(files) == []
    assert [each.copy.manifest.snapshot_id != "" for each in second.copies if each.copy.manifest] == [True] * 3
    for result in (first, second):
        assert result.cut.proven > 20
        assert (result.cut.orphans, result.cut.inconclusive, result.cut.unchecked) == (0, 0, ())


def used_places(files: dict[str, bytes]) -> list[tuple[str, int]]:
    """Every byte that a restore uses: segments up to their last frame, and all other files but the manifests."""
    (result,) = verified(files)
    ends = {each.name: each.used_bytes for copy in result.copies for each in copy.segments}
    return [(name, ends.get(name, len(data))) for name, data in files.items() if not name.endswith("manifest.json")]


def same_checksums(changed: bytes, before: bytes) -> bool:
    """A comment was changed, or a digit from lower to upper case: Zeebe and we read the same."""
    try:
        return read_checksums(changed) == read_checksums(before)
    except Damaged:
        return False


def test_no_flipped_bit_of_a_real_backup_is_missed(files: dict[str, bytes]) -> None:
    compile_from_now_on()
    chosen, chance = of_backup(files, 20), random.Random(20)
    places = used_places(chosen)
    missed = []
    tried = 0
    while tried < FLIPS:
        name, end = places[tried % len(places)]
        at, bit = chance.randrange(end), chance.randrange(8)
        data = bytearray(chosen[name])
        data[at] ^= 1 << bit
        if name.endswith(".checksum") and same_checksums(bytes(data), chosen[name]):
            continue
        partition = name.split("/")[0]
        near = {each: value for each, value in chosen.items() if each.split("/")[0] == partition}
        tried += 1
        found = counted({**near, name: bytes(data)})
        # The other partitions are left out, which is a finding of its own.
        if not any(each.code not in {"copy-missing", "cut-orphan"} for each in found):
            missed.append((name, at, bit))
    assert missed == []


def test_every_flipped_byte_of_a_frame_head_and_descriptor_is_found(files: dict[str, bytes]) -> None:
    chosen = of_backup(files, 10)
    name = "1/10/0/segments/raft-partition-partition-1-1.log"
    near = {each: value for each, value in chosen.items() if each.startswith("1/")}
    for at in range(57 + 21):
        data = bytearray(near[name])
        data[at] ^= 1 << at % 8
        found = {each.code for each in counted({**near, name: bytes(data)})}
        assert found - {"copy-missing", "cut-orphan"}, at


@pytest.mark.parametrize("partition", [1, 2, 3])
def test_a_cut_moved_to_the_other_checkpoint_is_found(files: dict[str, bytes], partition: int) -> None:
    """One partition of backup 20 as of backup 10: its manifest and log say so, only the records can disagree."""
    older, newer = of_backup(files, 10), of_backup(files, 20)
    forged = {name: data for name, data in newer.items() if not name.startswith(f"{partition}/")}
    for name, data in older.items():
        if name.startswith(f"{partition}/"):
            forged[name.replace("/10/", "/20/")] = data.replace(b'"checkpointId":10', b'"checkpointId":20')
    codes = {each.code for each in counted(forged)}
    assert "checkpoint-missing" in codes


def test_missing_and_swapped_files_are_named(files: dict[str, bytes]) -> None:
    chosen = of_backup(files, 20)
    for name in chosen:
        left = {each: data for each, data in chosen.items() if each != name}
        assert any(name in {each.where, *each.what.split()} or "manifest" in name for each in counted(left)), name
        assert counted(left), name
    first = next(name for name in chosen if name.endswith("-1-1.log"))
    other = next(name for name in chosen if name.endswith("-2-1.log"))
    assert counted({**chosen, first: chosen[other]})


def test_a_changed_manifest_is_found(files: dict[str, bytes]) -> None:
    chosen = of_backup(files, 20)
    name = "2/20/0/manifest.json"
    for key, value in (("checkpointPosition", 5), ("numberOfPartitions", 4), ("snapshotId", None)):
        document = json.loads(chosen[name])
        document["descriptor"][key] = value
        assert counted({**chosen, name: json.dumps(document).encode()}), key


@pytest.mark.parametrize("number", [10, 20])
def test_falsified_cuts_of_a_real_cluster_have_orphans(files: dict[str, bytes], number: int) -> None:
    """The positions of one partition are moved back: what it sent in between is outside, and was received inside."""
    (result,) = verified(of_backup(files, number))
    logs = {
        each.copy.place.partition: LogInCut(
            each.manifest.checkpoint_position,
            from_first_entry(each.segments),
            rows_of([segment.cut for segment in each.segments]),
        )
        for each in result.copies
    }
    assert check_cut(logs).orphans == 0
    for partition, log in logs.items():
        moved = check_cut({**logs, partition: replace(log, checkpoint_position=log.checkpoint_position // 4)})
        assert moved.orphans > 0, partition
        assert moved.named[0].cause_partition == partition
