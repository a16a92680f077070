"""Salvage after salvage: what is damaged stays a gap, and keeps no later backup from being taken."""

from pathlib import Path

import pytest

from logkeep.kafka.backup.assemble import earlier_results
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.disks.scan_results import ReplicaScan
from logkeep.kafka.salvage.replicas import merge_replicas
from logkeep.model.ids import BackupId
from logkeep.model.ranges import Range
from logkeep.repository.backups.journal import receipts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import read_chain
from tests.support.kafka.broker_disks import add_log, flip, made_disk, run_of
from tests.support.kafka.salvage_steps import codes, salvaged, told
from tests.support.zookeeper.repositories import new_place

LOG = TopicPartition("orders", 0)


def test_a_gap_inside_a_log_is_carried_on_and_told_once(tmp_path: Path) -> None:
    disk = made_disk(tmp_path / "disk", watermarks={LOG: 100})
    log = add_log(disk, "orders-0", [run_of(0, 50), run_of(50, 100)])
    first_file = log / "00000000000000000000.log"
    flip(first_file, first_file.stat().st_size // 10 * 5 + 70)
    where = new_place(source="prod")
    _, first = salvaged(where, [disk])
    (gap,) = first.gaps
    (log / "00000000000000000100.log").write_bytes(b"".join(b.encode() for b in run_of(100, 150)))
    _, second = salvaged(where, [disk])
    assert second.gaps == ()
    newest = read_chain(where).completed[-1]
    kept = read_manifest(where, newest)
    assert [(g.start, g.end, g.reason) for g in kept.gaps] == [(gap.start, gap.end, gap.reason)]
    assert [(c.start, c.end) for c in kept.cut] == [(0, 150)]


def test_a_run_on_the_cluster_takes_nothing_for_copied_that_a_salvage_left(tmp_path: Path) -> None:
    disk = made_disk(tmp_path / "disk", watermarks={LOG: 100})
    add_log(disk, "orders-0", [run_of(0, 100)])
    where = new_place(source="prod")
    _, done = salvaged(where, [disk])
    assert done.entry is not None
    left = list(receipts(where, BackupId(done.entry.id)))
    assert sum(len(receipt.segments) for receipt in left) > 0
    assert earlier_results(left) == []


def test_what_is_unproven_stays_so_until_a_watermark_proves_it(tmp_path: Path) -> None:
    disk = made_disk(tmp_path / "disk", watermarks={LOG: 60})
    add_log(disk, "orders-0", [run_of(0, 100)])
    where = new_place(source="prod")
    for _ in range(2):
        archive, done = salvaged(where, [disk])
        assert done.entry is not None
        (record,) = archive.record(done.entry.id).logs
        assert record.unproven_from == 60
        assert "unproven-tail" in codes(done)


def test_topics_that_are_not_chosen_are_told(tmp_path: Path) -> None:
    disk = made_disk(tmp_path / "disk", watermarks={})
    for topic in ("orders-0", "pay-0"):
        add_log(disk, topic, [run_of(0, 10)])
    where = new_place(source="prod")
    salvaged(where, [disk])
    _, done = salvaged(where, [disk], include=("orders",))
    assert "topic-left-out" in codes(done)


FILES = [run_of(0, 50), run_of(50, 100), run_of(100, 150)]


@pytest.mark.parametrize("lacking", [0, 1])
def test_a_file_that_one_disk_lacks_comes_from_another(tmp_path: Path, lacking: int) -> None:
    disks = []
    for number in range(2):
        disk = made_disk(tmp_path / f"disk-{number}", node=number + 1, watermarks={LOG: 150})
        add_log(disk, "orders-0", FILES if number != lacking else [FILES[0], FILES[2]])
        disks.append(disk)
    archive, done = salvaged(new_place(source="prod"), disks)
    assert done.entry is not None
    assert done.gaps == ()
    expected = [batch.encode() for file in FILES for batch in file]
    assert archive.batches(done.entry.id, "orders") == expected


def test_a_file_that_no_disk_has_is_told(tmp_path: Path) -> None:
    disk = made_disk(tmp_path / "disk", watermarks={LOG: 150})
    add_log(disk, "orders-0", [FILES[0], FILES[2]])
    _, done = salvaged(new_place(source="prod"), [disk])
    (said,) = told(done, "missing-offsets")
    assert "[50, 100)" in said


def test_in_a_topic_that_is_not_compacted_it_is_a_gap() -> None:
    scan = ReplicaScan(directory="d", node=1, start=0, end=150, holes=((50, 100),))
    assert merge_replicas([scan], compacted=False).gaps == (Range(50, 100),)
    assert merge_replicas([scan], compacted=True).gaps == ()
