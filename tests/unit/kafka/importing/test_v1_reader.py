"""kafka-backup-v1 as it is read: golden bytes, damage of each kind, and names that are refused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from logkeep.errors import Damaged, FormatTooNew, UsageError
from logkeep.formats.datasets.kafka_backup_v1.reader import file_name, group_offsets, listed_segments
from logkeep.kafka.importing import v1_segment
from logkeep.kafka.importing.kafka_backup_v1 import V1PartitionReader, open_kafka_backup_v1
from logkeep.kafka.importing.reader import DatasetReader, ReadNotes
from logkeep.store.local.store import LocalStore
from tests.support.datasets.v1_files import (
    HandRecord,
    partition_index_bytes,
    record_bytes,
    segment_files,
    segment_name,
    write_partition,
)

GOLDEN = (
    "01"
    "00000000000001f4 00000000 0000000000000005 ffffffff 00000000 00000000"
    "00000000000001fb fffffffe 00000000 ffffffff 00000002 00000001 61 00000001 78 00000001 61 ffffffff"
)
TEN = [HandRecord(offset, b"k%d" % offset, b"v" * offset, 1000 + offset) for offset in range(10, 20)]


class CountingStore(LocalStore):
    """A directory that notes which parts of files are read."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.reads: list[tuple[str, int, int]] = []

    def get_range(self, name: str, start: int, length: int) -> bytes:
        self.reads.append((name, start, length))
        return super().get_range(name, start, length)


def opened(root: Path) -> DatasetReader:
    store = LocalStore(str(root))
    return open_kafka_backup_v1(store, list(store.list("")))


def read(root: Path, topic: str = "t", partition: int = 0, start: int = 0) -> tuple[list[dict[str, object]], ReadNotes]:
    notes = ReadNotes()
    batches = opened(root).records(topic, partition, start, notes)
    return [row for batch in batches for row in batch.to_pylist()], notes


def offsets(root: Path, start: int = 0) -> tuple[list[object], dict[str, int], list[tuple[int, int]]]:
    rows, notes = read(root, start=start)
    return (
        [row["offset"] for row in rows],
        {d.code: d.count for d in notes.doubts},
        [(gap.start, gap.end) for gap in notes.lost],
    )


def test_the_worked_records_of_the_table_are_read_field_by_field(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, "t", 0, {500: []})
    records = folder / f"{segment_name(0, 500)}_records"
    records.write_bytes(bytes.fromhex(GOLDEN))
    (folder / f"{segment_name(0, 500)}_index").write_bytes(
        bytes.fromhex("01 00000000000001f4 0000000000000001 0000000000000020 00000000000001fb 0000000000000021")
        + (len(records.read_bytes()) - 33).to_bytes(8, "big")
    )
    rows, notes = read(tmp_path)
    plain = [{**row, "timestamp": int(row["timestamp"].timestamp() * 1000)} for row in rows]  # type: ignore[attr-defined]
    assert plain == [
        {"offset": 500, "timestamp": 5, "timestamp_type": 0, "key": None, "value": b"", "headers": []},
        {
            "offset": 507,
            "timestamp": -1,
            "timestamp_type": 0,
            "key": b"",
            "value": None,
            "headers": [{"key": b"a", "value": b"x"}, {"key": b"a", "value": None}],
        },
    ]
    assert (notes.doubts, notes.lost) == ((), [])


def test_the_tool_names_its_first_segment_0_whatever_it_begins_with(tmp_path: Path) -> None:
    write_partition(tmp_path, "t", 0, {0: TEN[:5], 15: TEN[5:]})
    assert offsets(tmp_path) == ([*range(10, 20)], {}, [])
    assert offsets(tmp_path, 15)[0] == [*range(15, 20)]
    assert offsets(tmp_path, 17)[0] == [17, 18, 19]


def test_wide_names_are_sorted_as_numbers(tmp_path: Path) -> None:
    far = 10_000_000_000
    write_partition(tmp_path, "t", 1000, {2_000_000_000: [HandRecord(2_000_000_000)], far: [HandRecord(far)]})
    rows, _ = read(tmp_path, partition=1000)
    assert [row["offset"] for row in rows] == [2_000_000_000, far]


def test_records_after_a_torn_write_are_found_through_the_index(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, "t", 0, {10: TEN})
    data, index = segment_files(TEN, {4: record_bytes(TEN[4])[:17], 9: b"\xff" * 5})
    (folder / f"{segment_name(0, 10)}_records").write_bytes(data)
    (folder / f"{segment_name(0, 10)}_index").write_bytes(index)
    assert offsets(tmp_path) == ([*range(10, 20)], {"torn-bytes": 22}, [])


def test_a_torn_entry_of_the_index_shifts_the_others_and_they_are_used(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, "t", 0, {10: TEN})
    data, index = segment_files(TEN, {6: b"torn"})
    (folder / f"{segment_name(0, 10)}_records").write_bytes(data)
    for cut in range(1, 24):
        torn = index[: 1 + 24 * 5 + cut] + index[1 + 24 * 6 :]
        (folder / f"{segment_name(0, 10)}_index").write_bytes(torn)
        found, doubts, lost = offsets(tmp_path)
        assert (found, lost) == ([10, 11, 12, 13, 14, *range(16, 20)], []), cut
        assert doubts == {"torn-bytes": 4 + len(record_bytes(TEN[5]))}


def test_every_cut_of_the_record_file_gives_whole_records_and_names_what_is_lost(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, "t", 0, {10: TEN[:4]})
    data, _ = segment_files(TEN[:4])
    ends = [len(segment_files(TEN[:count])[0]) for count in range(5)]
    for cut in range(len(data)):
        (folder / f"{segment_name(0, 10)}_records").write_bytes(data[:cut])
        whole = sum(end <= cut for end in ends[1:])
        found, doubts, lost = offsets(tmp_path)
        assert (found, lost) == ([*range(10, 10 + whole)], [(10 + whole, 14)]), cut
        assert doubts.get("torn-tail", 0) == max(cut - ends[whole], 0), cut


def test_every_cut_of_the_index_gives_all_records(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, "t", 0, {10: TEN[:4]})
    _, index = segment_files(TEN[:4])
    for cut in range(len(index)):
        (folder / f"{segment_name(0, 10)}_index").write_bytes(index[:cut])
        found, doubts, lost = offsets(tmp_path)
        assert (found, lost) == ([10, 11, 12, 13], []), cut
        assert doubts.get("records-not-indexed", 0) == 4 - max(cut - 1, 0) // 24


def test_an_index_of_another_partition_is_not_believed(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, "t", 0, {10: TEN})
    _, other = segment_files([HandRecord(o, b"other", b"x" * 40) for o in range(100, 105)])
    (folder / f"{segment_name(0, 10)}_index").write_bytes(other)
    found, doubts, lost = offsets(tmp_path)
    assert found == [*range(10, 20)]
    assert doubts["index-inconsistent"] >= 1
    assert lost in ([], [(100, 105)])


def test_a_record_that_no_longer_fits_its_entry_is_a_gap_and_the_next_ones_are_read(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, "t", 0, {10: TEN})
    data = bytearray(segment_files(TEN)[0])
    at = len(segment_files(TEN[:3])[0])
    data[at + 8 : at + 12] = b"\x00\x00\x00\x09"
    (folder / f"{segment_name(0, 10)}_records").write_bytes(data)
    found, doubts, lost = offsets(tmp_path)
    assert found == [10, 11, 12, *range(14, 20)]
    assert lost == [(13, 14)]
    assert doubts["torn-bytes"] == len(record_bytes(TEN[3]))


@pytest.mark.parametrize(
    "rest", [b"\xff" * 32, bytes(32), bytes(5000), b"\x00" * 12], ids=["ff", "0", "zeros", "short"]
)
@pytest.mark.parametrize("indexed", [True, False])
def test_records_are_walked_up_to_what_is_none(tmp_path: Path, rest: bytes, indexed: bool) -> None:
    """A file system may end a file with zeros after a crash. 32 of them look like a record of offset 0."""
    folder = write_partition(tmp_path, "t", 0, {10: TEN})
    if not indexed:
        (folder / f"{segment_name(0, 10)}_index").unlink()
    with (folder / f"{segment_name(0, 10)}_records").open("ab") as file:
        file.write(rest)
    assert offsets(tmp_path) == ([*range(10, 20)], {"torn-tail": len(rest)}, [])


@pytest.mark.parametrize("indexed", ["all", "the first ten", "none"])
@pytest.mark.parametrize("falls", [19, 18, 3])
def test_offsets_that_fall_inside_a_segment_are_refused(tmp_path: Path, falls: int, indexed: str) -> None:
    folder = write_partition(tmp_path, "t", 0, {10: [*TEN, *(HandRecord(falls + n, b"again") for n in range(3))]})
    index = folder / f"{segment_name(0, 10)}_index"
    if indexed == "none":
        index.unlink()
    elif indexed == "the first ten":
        index.write_bytes(segment_files(TEN)[1])
    at = len(segment_files(TEN)[0])
    with pytest.raises(Damaged, match=f"the record at byte {at} has offset {falls}, and those before it reach 19"):
        read(tmp_path)


def unindexed(root: Path, records: Sequence[HandRecord], listed: int | None) -> Path:
    """A partition whose only segment has these records, and an index of the first ones (None: no index)."""
    folder = write_partition(root, "t", 0, {records[0].offset: records})
    index = folder / f"{segment_name(0, records[0].offset)}_index"
    if listed is None:
        index.unlink()
    else:
        index.write_bytes(index.read_bytes()[: 1 + 24 * listed])
    return folder / f"{segment_name(0, records[0].offset)}_records"


@pytest.mark.parametrize(
    ("tail", "listed", "again"),
    [
        ([19], 9, 1),
        ([19, 19], 9, 2),
        ([17, 18, 19], 7, 3),
        ([17, 18, 17, 18, 19], 7, 5),
        ([19], None, 1),
        ([17, 18, 19], None, 3),
        ([*range(10, 20)], None, 10),
        ([19], 10, 1),
        ([12, 14], 10, 2),
    ],
)
@pytest.mark.parametrize("more", [0, 3])
def test_records_that_come_again_after_a_kill_are_counted(
    tmp_path: Path, tail: list[int], listed: int | None, again: int, more: int
) -> None:
    """The tool was killed between a record and its entry, or lost entries. The whole dataset was refused."""
    later = [HandRecord(20 + n, b"new") for n in range(more)]
    repeats = [*(TEN[offset - 10] for offset in tail), *later, *later]
    unindexed(tmp_path, [*TEN, *repeats], listed)
    found, doubts, lost = offsets(tmp_path)
    assert (found, lost) == ([*range(10, 20 + more)], [])
    expected = {"overlapping-records": again + more}
    if listed is not None and listed < 10 + more:
        expected["records-not-indexed"] = 10 + more - listed
    assert doubts == expected


@pytest.mark.parametrize("window", [40, 100, 1000])
def test_records_that_come_again_are_found_whatever_is_read_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(v1_segment, "WINDOW_BYTES", window)
    random = Random(window)
    for _ in range(60):
        records, last = TEN[:1], 10
        for _ in range(random.randrange(1, 6)):
            begin = random.randrange(10, last + 2)
            end = random.randrange(begin + 1, 21) if begin < 20 else begin
            records = [*records, *TEN[begin - 10 : end - 10]]
            last = max(last, end - 1)
        rising = next((n for n in range(1, len(records)) if records[n].offset <= records[n - 1].offset), len(records))
        unindexed(tmp_path, records, random.choice([None, random.randrange(rising + 1)]))
        found, doubts, lost = offsets(tmp_path)
        assert (found, lost) == ([*range(10, last + 1)], [])
        assert doubts.get("overlapping-records", 0) == len(records) - len(found)
        assert not doubts.keys() - {"overlapping-records", "records-not-indexed"}


@pytest.mark.parametrize("listed", [7, 10, None])
def test_a_record_that_comes_again_with_other_content_is_refused(tmp_path: Path, listed: int | None) -> None:
    unindexed(tmp_path, [*TEN, TEN[7], HandRecord(18, b"other"), TEN[9]], listed)
    at = len(segment_files([*TEN, TEN[7]])[0])
    with pytest.raises(Damaged, match=f"the record at byte {at} has offset 18, and those before it reach 19"):
        read(tmp_path)


def test_a_tail_that_begins_again_and_again_is_refused(tmp_path: Path) -> None:
    """Each time costs reads, and no tool is killed so often."""
    unindexed(tmp_path, TEN + TEN[-1:] * 100, 9)
    assert offsets(tmp_path)[1]["overlapping-records"] == 100
    unindexed(tmp_path, [*TEN, *TEN[-1:] * 101, HandRecord(20)], 9)
    with pytest.raises(Damaged):
        read(tmp_path)


@pytest.mark.parametrize("zeros", [0, 12, 40, 500])
@pytest.mark.parametrize("listed", [7, 10, None])
def test_a_record_that_was_torn_the_second_time_is_a_torn_tail(tmp_path: Path, listed: int | None, zeros: int) -> None:
    """A file system may fill what was not written with zeros."""
    place = unindexed(tmp_path, TEN, listed)
    whole = place.read_bytes()
    for again, rest in ((0, TEN[9]), (1, TEN[9])):
        before = whole + record_bytes(TEN[8]) * again
        for cut in range(1, len(record_bytes(rest)) - 4):  # the number of headers is 0
            place.write_bytes(before + record_bytes(rest)[:cut] + bytes(zeros))
            found, doubts, lost = offsets(tmp_path)
            assert (found, lost) == ([*range(10, 20)], []), cut
            assert doubts.get("overlapping-records", 0) == again, cut
            assert doubts["torn-tail"] == cut + zeros, cut


@pytest.mark.parametrize("listed", [3, None])
def test_a_record_that_was_torn_inside_of_its_offset_is_a_torn_tail(tmp_path: Path, listed: int | None) -> None:
    """517 is 02 05 in hex: without its last byte, and with zeros, it is a record of offset 512."""
    some = [HandRecord(offset, b"k", b"v") for offset in (514, 515, 516)]
    place = unindexed(tmp_path, some, listed)
    whole = place.read_bytes()
    for cut in range(1, 8):
        place.write_bytes(whole + (517).to_bytes(8, "big")[:cut] + bytes(60))
        assert offsets(tmp_path) == ([514, 515, 516], {"torn-tail": cut + 60}, []), cut
    place.write_bytes(whole + (512).to_bytes(8, "big") + bytes(24) + record_bytes(HandRecord(517, b"k")))
    with pytest.raises(Damaged, match="has offset 512"):
        read(tmp_path)


def test_records_that_several_segments_have_are_taken_from_the_first(tmp_path: Path) -> None:
    """All of the second segment was left out, as a torn tail."""
    write_partition(tmp_path, "t", 0, {10: TEN[:6], 13: [HandRecord(13, b"other"), *TEN[4:]]})
    assert offsets(tmp_path) == ([*range(10, 20)], {"overlapping-records": 3}, [])
    assert [row["key"] for row in read(tmp_path)[0]][3] == b"k13"
    assert offsets(tmp_path, 17)[0] == [17, 18, 19]
    (tmp_path / "t" / f"{segment_name(0, 13)}_index").unlink()
    assert offsets(tmp_path) == ([*range(10, 20)], {"overlapping-records": 3}, [])


def test_a_segment_inside_another_one_hides_no_record_of_it(tmp_path: Path) -> None:
    write_partition(tmp_path, "t", 0, {10: TEN[:8], 12: TEN[2:5], 18: TEN[8:]})
    for start in range(21):
        assert offsets(tmp_path, start)[0] == [*range(max(start, 10), 20)], start


def test_a_chain_of_segments_that_overlap_is_followed_back(tmp_path: Path) -> None:
    write_partition(tmp_path, "t", 0, {10: TEN[:8], 11: TEN[1:3], 12: TEN[2:5], 18: TEN[8:]})
    for start in range(21):
        assert offsets(tmp_path, start)[0] == [*range(max(start, 10), 20)], start


@pytest.mark.parametrize(("disjoint", "requests"), [(False, 5), (True, 4)])
def test_one_record_costs_the_same_requests_however_many_segments_are_before_it(
    tmp_path: Path, disjoint: bool, requests: int
) -> None:
    """Each earlier segment cost one: 401 for the last one of 400. Logkeep itself writes none that overlap."""
    write_partition(tmp_path, "t", 0, {offset: [HandRecord(offset)] for offset in range(1, 60)})
    store = CountingStore(str(tmp_path))
    (partition,) = open_kafka_backup_v1(store, list(store.list(""))).partitions
    assert isinstance(partition, V1PartitionReader)
    for offset in (3, 30, 58):
        store.reads.clear()
        first = next(replace(partition, disjoint=disjoint).records(ReadNotes(), offset))
        assert (first["offset"].to_pylist(), len(store.reads)) == ([offset], requests), store.reads


def test_a_record_that_is_damaged_in_one_segment_and_was_read_from_another_is_not_lost(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, "t", 0, {10: TEN[:6], 13: TEN[3:]})
    place = folder / f"{segment_name(0, 13)}_records"
    good = place.read_bytes()
    for broken, lost in ((1, []), (4, [(17, 18)])):
        at = len(segment_files(TEN[3 : 3 + broken])[0])
        place.write_bytes(good[: at + 8] + b"\0\0\0\x09" + good[at + 12 :])
        found, doubts, gaps = offsets(tmp_path)
        assert (found, gaps) == ([o for o in range(10, 20) if (o, o + 1) not in lost], lost), broken
        assert doubts["overlapping-records"] == (2 if broken == 1 else 3)


@pytest.mark.parametrize("field", [b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff\xff\xff\xfe"])
@pytest.mark.parametrize("place", [20, 24, 28, 32])
def test_impossible_lengths_and_counts_end_the_walk(tmp_path: Path, place: int, field: bytes) -> None:
    folder = write_partition(tmp_path, "t", 0, {0: []})
    data = bytearray(record_bytes(HandRecord(1, b"", b"", headers=[(b"", None)])))
    data[place : place + 4] = field
    (folder / f"{segment_name(0, 0)}_records").write_bytes(b"\x01" + record_bytes(HandRecord(0)) + data)
    assert offsets(tmp_path)[0] == [0]


def test_expired_segments_are_leading_ones_and_others_are_gaps(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, "t", 0, {10: TEN[:2], 12: TEN[2:5], 15: TEN[5:7], 17: TEN[7:]})

    def remove(start: int) -> None:
        for end in ("records", "index"):
            (folder / f"{segment_name(0, start)}_{end}").unlink()

    remove(10)
    assert offsets(tmp_path) == ([*range(12, 20)], {"segments-expired": 1}, [])
    remove(15)
    assert offsets(tmp_path) == ([12, 13, 14, 17, 18, 19], {"segments-expired": 1}, [(15, 17)])
    remove(17)
    assert offsets(tmp_path) == ([12, 13, 14], {"segments-expired": 1}, [(15, 18)])


def test_a_record_file_that_no_index_lists_is_read(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, "t", 0, {10: TEN[:5], 15: TEN[5:]})
    listing = folder / "index_partition_000"
    listing.write_bytes(partition_index_bytes(0, [(10, 10)]))
    assert offsets(tmp_path) == ([*range(10, 20)], {"segment-not-listed": 1}, [])
    listing.write_bytes(partition_index_bytes(0, [(10, 10), (15, 15)])[:-3])
    torn = 4 + len(segment_name(0, 15)) + 8 - 3
    assert offsets(tmp_path)[1] == {"segment-not-listed": 1, "partition-index-torn": torn}


def test_group_files_are_any_map(tmp_path: Path) -> None:
    write_partition(tmp_path, "t", 0, {10: TEN}, {"b": 12, "a": 0})
    write_partition(tmp_path, "t", 1, {})
    (tmp_path / "t/consumer_offsets_partition_001").write_bytes(b"")
    reader = opened(tmp_path)
    assert reader.groups == {"a": {("t", 0): 0}, "b": {("t", 0): 12}}
    (tmp_path / "t/consumer_offsets_partition_001").write_bytes(b"[1]")
    assert [f.code for f in opened(tmp_path).findings] == ["group-file-unreadable"]
    with pytest.raises(Damaged):
        group_offsets(b'{"g": -1}', "x")


@pytest.mark.parametrize(
    ("name", "first"),
    [(b"../../etc/passwd", 0), (b"/etc/passwd", 0), (b"segment_partition_001_from_offset_0000000000", 0)],
)
def test_a_listing_that_names_anything_else_is_refused(name: bytes, first: int) -> None:
    entry = len(name).to_bytes(4, "big") + name + first.to_bytes(8, "big")
    with pytest.raises(Damaged, match="names no segment"):
        listed_segments(b"\x01" + entry, 0, "x")


@pytest.mark.parametrize("size", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00"])
def test_hostile_sizes_of_names_are_refused(size: bytes) -> None:
    with pytest.raises(Damaged):
        listed_segments(b"\x01" + size + b"x" * 40, 0, "x")


@pytest.mark.parametrize(("magic", "error"), [(b"\x02", FormatTooNew), (b"{", UsageError), (b"\x00", UsageError)])
def test_other_first_bytes(tmp_path: Path, magic: bytes, error: type[Exception]) -> None:
    folder = write_partition(tmp_path, "t", 0, {10: TEN})
    for name in (f"{segment_name(0, 10)}_records", f"{segment_name(0, 10)}_index", "index_partition_000"):
        good = (folder / name).read_bytes()
        (folder / name).write_bytes(magic + good[1:])
        with pytest.raises(error):
            read(tmp_path)
        (folder / name).write_bytes(good)


def test_names_of_files() -> None:
    assert file_name("segment_partition_000_from_offset_0000000000") is None
    assert file_name("segment_partition_99999999999_from_offset_0000000000_records") is None
    assert file_name("restore.offsets") is None


def test_a_partition_whose_segments_are_all_gone(tmp_path: Path) -> None:
    """An import of it said nothing."""
    folder = write_partition(tmp_path, "t", 0, {10: TEN[:5], 15: TEN[5:]})
    for path in folder.glob("segment_*"):
        path.unlink()
    assert offsets(tmp_path) == ([], {"segments-expired": 2}, [])
