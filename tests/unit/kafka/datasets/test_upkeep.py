"""Datasets in kafka-backup-v1 that exist: verify names what is wrong, reindex writes the same bytes, prune by age."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from logkeep.kafka.dataset_upkeep.dataset import open_existing
from logkeep.kafka.dataset_upkeep.prune import (
    DatasetSegment,
    PrunedPartition,
    TopicPolicy,
    delete_segments,
    plan_prune,
    topic_policy,
)
from logkeep.kafka.dataset_upkeep.reindex import IndexResult, reindex_partition
from logkeep.kafka.dataset_upkeep.segments import latest_time, segments_of
from logkeep.kafka.dataset_upkeep.verify import CheckedPartition, check_v1, exit_code
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.importing.kafka_backup_v1 import v1_files
from logkeep.kafka.record.documents import TopicRecord
from logkeep.store.local.store import LocalStore
from tests.support.datasets.v1_files import (
    HandRecord,
    partition_index_bytes,
    record_bytes,
    segment_name,
    write_partition,
)

TEN = [HandRecord(offset, b"k%d" % offset, b"v" * offset, 1000 + offset) for offset in range(10, 20)]
PARTITION_INDEX = "t/index_partition_000"
SEGMENT_INDEX = f"t/{segment_name(0, 14)}_index"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_partition(tmp_path / "d", "t", 0, {10: TEN[:4], 14: TEN[4:8], 18: TEN[8:]})
    write_partition(tmp_path / "d", "t", 1, {10: TEN[:2]})
    for number in (0, 1):
        (tmp_path / "d" / "t" / f"consumer_offsets_partition_{number:03d}").write_bytes(b'{"g":11}')
    return tmp_path / "d"


def checked(root: Path, partition: int = 0) -> CheckedPartition:
    store = LocalStore(root)
    return check_v1(store, "t", partition, v1_files(store.list(""))["t", partition])


def codes(root: Path, partition: int = 0) -> list[str]:
    return [each.code for each in checked(root, partition).findings]


def reindexed(root: Path, *, dry_run: bool = False) -> list[IndexResult]:
    target = DatasetTarget(LocalStore(root), root)
    files = v1_files(target.names(""))
    return [
        each
        for (topic, number), some in files.items()
        for each in reindex_partition(target, topic, number, some, dry_run=dry_run)
    ]


def content(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*_*") if p.is_file()}


def test_a_good_dataset_has_no_finding_and_reindex_changes_nothing(root: Path) -> None:
    found = checked(root)
    assert (found.records, found.first, found.last, found.findings) == (10, 10, 19, ())
    assert exit_code(found.findings) == 0
    assert not any(each.written for each in reindexed(root))


@pytest.mark.parametrize("name", [PARTITION_INDEX, SEGMENT_INDEX])
def test_an_index_that_is_missing_or_cut_anywhere_is_found_and_written_again(root: Path, name: str) -> None:
    good, before = (root / name).read_bytes(), content(root)
    (root / name).unlink()
    for size in (None, *range(len(good))):
        if size is not None:
            (root / name).write_bytes(good[:size])
        found = checked(root)
        assert found.findings, size
        assert (found.records, exit_code(found.findings)) == (10, 2)
        assert [each.name for each in reindexed(root, dry_run=True) if each.written] == [name]
        reindexed(root)
        assert content(root) == before, size


def test_indexes_of_another_partition(root: Path) -> None:
    before = content(root)
    for name, other in ((PARTITION_INDEX, "t/index_partition_001"), (SEGMENT_INDEX, f"t/{segment_name(1, 10)}_index")):
        shutil.copy(root / other, root / name)
        assert checked(root).records == 10
        assert exit_code(checked(root).findings) == 2
        reindexed(root)
        assert content(root) == before, name


@pytest.mark.parametrize(
    ("starts", "wrong"),
    [([(10, 10), (14, 15), (18, 18)], (14, "entry has")), ([(10, 0), (14, 17), (18, 18)], (10, "2 entries have"))],
)
def test_first_offsets_in_the_partition_index(
    root: Path, starts: list[tuple[int, int]], wrong: tuple[int, str]
) -> None:
    """The tool selects segments by them."""
    before = content(root)
    (root / PARTITION_INDEX).write_bytes(partition_index_bytes(0, starts))
    (found,) = checked(root).findings
    assert (found.code, found.where) == (
        "segment-start-wrong",
        f"{PARTITION_INDEX}, the entry of {segment_name(0, wrong[0])}",
    )
    assert wrong[1] in found.what
    assert exit_code([found]) == 2
    reindexed(root)
    assert (content(root), codes(root)) == (before, [])


def test_the_first_segment_may_begin_at_0_in_name_and_index(root: Path) -> None:
    write_partition(root, "t", 2, {0: TEN[:4], 14: TEN[4:]}, {})
    assert codes(root, 2) == []


def test_other_bytes_in_place_of_an_index(root: Path) -> None:
    before = content(root)
    for name in (PARTITION_INDEX, SEGMENT_INDEX):
        (root / name).write_bytes(b"hello")
        assert len(codes(root)) == 1
        reindexed(root)
        assert content(root) == before


def test_records_that_the_index_lists_and_that_are_gone_are_damage_and_the_index_stays(root: Path) -> None:
    records = root / f"t/{segment_name(0, 14)}_records"
    records.write_bytes(records.read_bytes()[:-3])
    found = checked(root)
    assert exit_code(found.findings) == 10
    lost = next(f for f in found.findings if f.code == "records-lost")
    assert "offsets 17 to 17" in lost.what
    before = content(root)
    kept = [each for each in reindexed(root) if each.kept]
    assert [each.name for each in kept] == [SEGMENT_INDEX]
    assert content(root) == before


@pytest.mark.parametrize("start", [10, 14, 18])
def test_every_cut_of_a_record_file_is_damage_down_to_no_byte(root: Path, start: int) -> None:
    """A file of 0 bytes was good as the first one, and a segment without a record as another one."""
    records = root / f"t/{segment_name(0, start)}_records"
    good = records.read_bytes()
    for size in range(len(good)):
        records.write_bytes(good[:size])
        found = checked(root)
        assert exit_code(found.findings) == 10, size
        assert [(f.where, f.code) for f in found.findings if f.code in {"records-lost", "segment-empty"}] == [
            (f"t/{records.name}", "records-lost")
        ], size


def test_an_empty_partition_as_the_tool_writes_it(root: Path) -> None:
    """An index with one entry, and a segment without a record."""
    write_partition(root, "t", 2, {0: []})
    assert codes(root, 2) == []
    (root / f"t/{segment_name(2, 0)}_records").write_bytes(b"")
    assert codes(root, 2) == []
    assert not any(each.written for each in reindexed(root))


def test_segments_that_are_gone_leading_ones_expired_others_a_gap(root: Path) -> None:
    for ending in ("records", "index"):
        (root / f"t/{segment_name(0, 10)}_{ending}").unlink()
    assert (codes(root), exit_code(checked(root).findings)) == (["segments-expired"], 2)
    assert [each.name for each in reindexed(root) if each.written] == [PARTITION_INDEX]
    assert codes(root) == []
    shutil.rmtree(root)
    write_partition(root, "t", 0, {10: TEN[:4], 14: TEN[4:8], 18: TEN[8:]})
    (root / "t/consumer_offsets_partition_000").write_bytes(b"{}")
    for ending in ("records", "index"):
        (root / f"t/{segment_name(0, 14)}_{ending}").unlink()
    assert (codes(root), exit_code(checked(root).findings)) == (["gap"], 21)
    (kept,) = (each.kept for each in reindexed(root) if each.kept)
    assert kept is not None
    assert codes(root) == ["gap"], "the partition index still shows it"


def test_torn_bytes_between_records_are_reported_and_records_after_them_stay_indexed(root: Path) -> None:
    records, index = root / f"t/{segment_name(0, 18)}_records", root / f"t/{segment_name(0, 18)}_index"
    data, entries = records.read_bytes(), bytearray(index.read_bytes())
    second = int.from_bytes(entries[33:41], "big")
    records.write_bytes(data[:second] + b"\0\1\2" + data[second:])
    entries[33:41] = (second + 3).to_bytes(8, "big")
    index.write_bytes(entries)
    found = checked(root)
    assert ([f.code for f in found.findings], found.records) == (["torn-bytes"], 10)
    assert not any(each.written for each in reindexed(root))


@pytest.mark.parametrize(
    ("positions", "found"),
    [
        (b'{"g":20}', []),
        (b'{"g":21}', ["group-above-end"]),
        (b"", ["group-file-missing"]),
        (b"[]", ["group-file-unreadable"]),
    ],
)
def test_files_of_groups(root: Path, positions: bytes, found: list[str]) -> None:
    (root / "t/consumer_offsets_partition_000").write_bytes(positions)
    assert codes(root) == found


def test_a_second_file_without_a_record(root: Path) -> None:
    before = content(root)
    write_partition(root, "t", 0, {10: TEN[:4], 14: TEN[4:8], 18: TEN[8:], 20: []})
    assert codes(root) == ["segment-empty"]
    assert [each.name for each in reindexed(root) if each.written] == [PARTITION_INDEX]
    assert content(root)[PARTITION_INDEX] == before[PARTITION_INDEX]


@pytest.mark.parametrize("start", [10, 14, 18])
@pytest.mark.parametrize("indexed", [True, False])
def test_a_segment_whose_records_cannot_be_read_stays_listed(root: Path, start: int, indexed: bool) -> None:
    """It went out of the partition index with exit 0, and no tool saw it any more."""
    records, index = (root / f"t/{segment_name(0, start)}_{end}" for end in ("records", "index"))
    good = records.read_bytes()
    if not indexed:
        index.unlink()
    for data in (b"", b"\x01", b"\x01" + good[1:9], b"\x01" + b"\xff" * (len(good) - 1)):
        if not indexed and len(data) < 2:
            continue  # nothing shows that it had records
        records.write_bytes(data)
        before = content(root)
        done = reindexed(root)
        assert [(each.name, each.kept.code) for each in done if each.kept] == [
            (f"t/{index.name}", "records-lost" if indexed else "segment-unreadable")
        ]
        assert exit_code([each.kept for each in done if each.kept]) == 10
        assert content(root) == before, data
        if indexed:
            (root / PARTITION_INDEX).unlink()
            reindexed(root)
            assert content(root) == before, data


def test_a_segment_with_falling_offsets_stays_listed(root: Path) -> None:
    with (root / f"t/{segment_name(0, 14)}_records").open("ab") as file:
        file.write(record_bytes(HandRecord(16)))
    assert (codes(root), exit_code(checked(root).findings)) == (["damaged"], 10)
    before = content(root)
    assert [each.kept.code for each in reindexed(root) if each.kept] == ["damaged"]
    assert content(root) == before


def test_what_a_killed_run_left_is_not_listed(root: Path) -> None:
    before = content(root)
    (root / f"t/{segment_name(0, 20)}_records").write_bytes(b"\x01torn")
    assert not any(each.written or each.kept for each in reindexed(root))
    assert content(root)[PARTITION_INDEX] == before[PARTITION_INDEX]


@pytest.mark.parametrize(
    "left", [b"", b"\x01", b"\x01torn", b"\x01" + b"\xff" * 50], ids=["none", "magic", "torn", "ff"]
)
@pytest.mark.parametrize("index", [None, b"", b"\x01", b"\x01" + b"\xff" * 24], ids=["absent", "empty", "magic", "ff"])
@pytest.mark.parametrize("start", [12, 20])
def test_a_file_without_a_whole_record_is_not_the_last_segment(
    root: Path, left: bytes, index: bytes | None, start: int
) -> None:
    """The true last one was deleted, or prune ended with an exception."""
    (root / f"t/{segment_name(0, start)}_records").write_bytes(left)
    if index is not None:
        (root / f"t/{segment_name(0, start)}_index").write_bytes(index)
    dataset = open_existing(DatasetTarget(LocalStore(root), root))
    gone, reason = plan_prune(segments_of(dataset)["t", 0], 10**15, latest_time(dataset, ("t", 0)))
    if start == 20 or len(left) < 25:
        assert ([each.first for each in gone], reason) == ([10, 14], "the last segment of a partition stays")
    else:
        assert ([each.first for each in gone], reason[:28]) == ([10], "no record of the segment fro")


def test_a_last_segment_that_lost_its_records_is_none(root: Path) -> None:
    records = root / f"t/{segment_name(0, 18)}_records"
    good = records.read_bytes()
    for size in range(len(good)):
        records.write_bytes(good[:size])
        segments = segments_of(open_existing(DatasetTarget(LocalStore(root), root)))["t", 0]
        whole = size >= 1 + len(record_bytes(TEN[8]))
        assert [each.first for each in segments] == [10, 14, *([18] if whole else [])], size


SEGMENTS = tuple(DatasetSegment(first, (f"{first}",), 100) for first in (0, 10, 20, 30))


@pytest.mark.parametrize(
    ("latest", "gone"),
    [
        ((1, 2, 3, 4), (0, 10, 20)),  # the last one stays, however old
        ((1, 99, 3, 4), (0,)),  # what follows a young one stays: it would leave a hole
        ((100, 2, 3, 4), ()),
        ((-1, 2, 3, 4), ()),  # no times
        ((99, 100, 3, 4), (0,)),
    ],
)
def test_which_segments_go(latest: tuple[int, ...], gone: tuple[int, ...]) -> None:
    times = dict(zip((s.first for s in SEGMENTS), latest, strict=True))
    limit = 50 if 99 in latest and latest[0] == 1 else 100
    found, _ = plan_prune(SEGMENTS, limit, lambda segment: times[segment.first])
    assert tuple(each.first for each in found) == gone


@pytest.mark.parametrize(
    ("configs", "known", "by_source", "named", "keep"),
    [
        ({}, True, False, False, 7),
        ({"cleanup.policy": "compact"}, True, False, True, None),
        ({"cleanup.policy": "delete,compact"}, True, True, True, None),
        (None, False, False, False, None),
        (None, False, False, True, 7),
        (None, False, True, True, None),
        ({"retention.ms": "5"}, True, True, False, 5),
        ({"retention.ms": "-1"}, True, True, False, None),
        ({}, True, True, False, 604800000),
        # the brokers may compact every topic, or keep it for longer
        ({}, False, False, False, None),
        ({}, False, False, True, 7),
        ({}, False, True, False, None),
        ({}, False, True, True, None),
        ({"retention.ms": "5"}, False, True, False, None),
        ({"retention.ms": "5"}, False, True, True, 5),
        ({"retention.ms": "5", "cleanup.policy": "delete"}, False, True, False, 5),
        ({"cleanup.policy": "delete"}, False, False, False, 7),
        ({"cleanup.policy": "delete"}, False, True, False, None),
        ({"cleanup.policy": "compact"}, False, False, True, None),
    ],
)
def test_what_a_topic_may_lose(
    configs: dict[str, str] | None, known: bool, by_source: bool, named: bool, keep: int | None
) -> None:
    topic = None if configs is None else TopicRecord("t", "id", False, 1, 1, configs)
    found: TopicPolicy = topic_policy(topic, 7, configs_known=known, by_source=by_source, named=named)
    assert found.keep_ms == keep
    assert bool(found.reason) == (keep is None)


class Killed(Exception):
    pass


def test_a_prune_that_is_killed_after_any_step_is_completed_by_the_next(root: Path, tmp_path: Path) -> None:
    def pruned(at: Path, stop: Callable[[], None] = lambda: None) -> None:
        target = DatasetTarget(LocalStore(at), at)
        segments = tuple(
            DatasetSegment(start, tuple(f"t/{segment_name(0, start)}_{end}" for end in ("index", "records")), 1)
            for start in (10, 14)
            if any(info.name.startswith(f"t/{segment_name(0, start)}") for info in target.names(""))
        )
        for _ in delete_segments(target, None, [PrunedPartition("t", 0, segments, 1, "")]):
            stop()

    for step in range(4):
        copy = tmp_path / f"c{step}"
        shutil.copytree(root, copy)
        left = step

        def stop() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed

        with pytest.raises(Killed):
            pruned(copy, stop)
        assert checked(copy).last == 19
        assert exit_code(checked(copy).findings) in {0, 2}
        pruned(copy)
        assert codes(copy) == []
        assert sorted(content(copy)) == sorted(
            name for name in content(root) if segment_name(0, 10) not in name and segment_name(0, 14) not in name
        )


def test_a_partition_index_that_lists_only_what_is_gone_stays(root: Path) -> None:
    """Nothing else shows that there were records."""
    for path in (root / "t").glob("segment_partition_000*"):
        path.unlink()
    assert codes(root) == ["segments-expired", "group-above-end"]
    (kept,) = (each.kept for each in reindexed(root) if each.kept)
    assert kept is not None
    assert codes(root) == ["segments-expired", "group-above-end"]
