"""Archives of OSO kafka-backup as they are read: each codec, headers of the tool, gaps, and hostile bytes."""

import json
import shutil
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from logkeep.errors import Damaged, FormatTooNew, LogkeepError, UsageError
from logkeep.kafka.importing.reader import ReadNotes
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.store.local.store import LocalStore
from tests.support.datasets.oso_files import packed, record_bytes, segment_bytes, with_own_headers, write_archive
from tests.support.datasets.v1_files import HandRecord

GOLDEN = (
    "4b42414b 01 00 0000 0100000000000000 0700000000000000 0700000000000000"
    "22000000 3930000000000000 0700000000000000 ffffffff 00000000 0100 0200 6161 ffffffff"
    "00000000 424b4145"
)
SOME = [HandRecord(o, b"k%d" % o, b"v" * o, 1000 + o, headers=[(b"a", b"1"), (b"a", None)]) for o in range(5, 15)]
LOG = ("t", 0)


def read(root: Path) -> tuple[list[dict[str, object]], ReadNotes]:
    notes = ReadNotes()
    reader = open_dataset(LocalStore(str(root)))
    return [row for batch in reader.records("t", 0, 0, notes) for row in batch.to_pylist()], notes


def plain(rows: list[dict[str, object]]) -> list[HandRecord]:
    return [
        HandRecord(
            int(str(r["offset"])),
            r["key"],  # type: ignore[arg-type]
            r["value"],  # type: ignore[arg-type]
            round(r["timestamp"].timestamp() * 1000),  # type: ignore[attr-defined]
            0,
            [(h["key"], h["value"]) for h in r["headers"]],  # type: ignore[attr-defined]
        )
        for r in rows
    ]


def test_the_bytes_of_the_table_are_read_field_by_field(tmp_path: Path) -> None:
    folder = write_archive(tmp_path, {LOG: [[HandRecord(7)]]}, "none")
    data = bytearray.fromhex(GOLDEN)
    data[-8:-4] = struct.pack("<I", zlib.crc32(data[:-8]))
    (file,) = folder.glob("topics/t/partition=0/*")
    file.write_bytes(data)
    document = json.loads((folder / "manifest.json").read_text())
    document["topics"][0]["partitions"][0]["segments"][0]["uncompressed_size"] = len(data) - 40
    (folder / "manifest.json").write_text(json.dumps(document))
    assert plain(read(tmp_path)[0]) == [HandRecord(7, None, b"", 12345, 0, [(b"aa", None)])]


@pytest.mark.parametrize("codec", ["none", "zstd", "lz4"])
def test_each_codec_and_a_renamed_directory(tmp_path: Path, codec: str) -> None:
    folder = write_archive(tmp_path / "a", {LOG: [SOME[:4], SOME[4:]]}, codec)
    folder.rename(tmp_path / "a" / "renamed")
    rows, notes = read(tmp_path / "a")
    assert plain(rows) == SOME
    assert (notes.doubts, notes.lost) == ((), [])
    assert plain(read(tmp_path / "a" / "renamed")[0]) == SOME


def test_the_header_of_a_segment_is_right_and_its_extension_may_be_wrong(tmp_path: Path) -> None:
    folder = write_archive(tmp_path, {LOG: [SOME]}, "zstd")
    (file,) = folder.glob("topics/t/partition=0/*")
    file.write_bytes(segment_bytes(SOME, "lz4"))
    assert plain(read(tmp_path)[0]) == SOME


def test_only_the_two_headers_that_the_tool_appended_are_removed(tmp_path: Path) -> None:
    restored_once = HandRecord(20, b"k", None, 99, 0, with_own_headers(HandRecord(3, time=99)).headers)
    twice = with_own_headers(restored_once)
    swapped = HandRecord(22, None, None, 1, 0, list(reversed(with_own_headers(HandRecord(22, time=1)).headers)))
    alone = HandRecord(23, None, None, 1, 0, with_own_headers(HandRecord(23, time=1)).headers[:1])
    archived = [*map(with_own_headers, SOME), twice, with_own_headers(HandRecord(21, time=-1)), swapped, alone]
    write_archive(tmp_path, {LOG: [archived]})
    assert plain(read(tmp_path)[0]) == [*SOME, restored_once, HandRecord(21, time=-1), swapped, alone]


def test_markers_and_producer_times_are_counted(tmp_path: Path) -> None:
    records = [
        HandRecord(1, b"\0\0\0\0", b"\0" * 6),
        HandRecord(2, b"\0\0\0\1", b"\0" * 6),
        HandRecord(3, b"\0\0\0\2", b"\0" * 6),
        HandRecord(4, b"\0\0\0\1", b"\0" * 5),
    ]
    configs = {"configurations": {"message.timestamp.type": "LogAppendTime"}}
    write_archive(tmp_path, {LOG: [[*map(with_own_headers, records)]]}, topic_fields={"t": configs})
    rows, notes = read(tmp_path)
    assert plain(rows) == records
    assert {d.code: d.count for d in notes.doubts} == {"markers": 2, "producer-times": 4}


def test_gaps_expired_missing_and_overlapping_segments(tmp_path: Path) -> None:
    folder = write_archive(
        tmp_path, {LOG: [SOME[:2], SOME[2:4], SOME[3:6], SOME[6:8], SOME[8:]]}, gaps={LOG: [(30, 40)]}
    )
    files = sorted(folder.glob("topics/t/partition=0/*"))
    files[0].unlink()
    files[3].unlink()
    rows, notes = read(tmp_path)
    assert plain(rows) == [*SOME[2:6], *SOME[8:]]
    assert {d.code: d.count for d in notes.doubts} == {"segments-expired": 1, "overlapping-records": 1}
    assert [(g.start, g.end) for g in notes.lost] == [(11, 13), (30, 40)]


def test_groups_counts_configs_and_what_the_manifest_does_not_list(tmp_path: Path) -> None:
    fields = {"original_partition_count": 6, "source_replication_factor": 3, "configurations": {"retention.ms": "5"}}
    folder = write_archive(
        tmp_path,
        {LOG: [SOME]},
        groups={"g": {"t": {"0": 9}}},
        topic_fields={"t": fields},
        source_cluster_id="abc",
        isolation_level="read_committed",
    )
    (file,) = folder.glob("topics/t/partition=0/*")
    shutil.copy(file, file.with_name("segment-00000000000000000099.bin"))
    reader = open_dataset(LocalStore(str(tmp_path)))
    (topic,) = reader.topics
    assert (topic.partitions, topic.replication_factor, topic.configs) == (6, 3, {"retention.ms": "5"})
    assert reader.groups == {"g": {("t", 0): 9}}
    assert reader.cluster_id == "abc"
    assert [f.code for f in reader.findings] == ["segment-not-in-manifest"]


@pytest.mark.parametrize(
    "key",
    [
        "/etc/passwd",
        "a/../topics/t/partition=0/segment-00000000000000000005.bin",
        "x",
        "topics/u/partition=0/segment-00000000000000000005.bin",
    ],
)
def test_keys_that_lead_elsewhere_are_refused(tmp_path: Path, key: str) -> None:
    folder = write_archive(tmp_path, {LOG: [SOME]})
    document = json.loads((folder / "manifest.json").read_text())
    document["topics"][0]["partitions"][0]["segments"][0]["key"] = key
    (folder / "manifest.json").write_text(json.dumps(document))
    with pytest.raises(Damaged, match="is not one of a segment"):
        read(tmp_path)


def exchange(one: Path, other: Path) -> None:
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)


def test_a_segment_in_the_place_of_another_is_damage(tmp_path: Path) -> None:
    """Each of them is whole: no segment says its topic and partition."""
    folder = write_archive(tmp_path / "a", {LOG: [SOME[:2], SOME[2:4], SOME[4:]]})
    first, second, third = sorted(folder.glob("topics/t/partition=0/*"))
    for other in (second, third):
        exchange(first, other)
        with pytest.raises(Damaged, match="the manifest lists 2 records from offset 5 to 6, and the file has"):
            read(tmp_path / "a")
        exchange(first, other)
    assert plain(read(tmp_path / "a")[0]) == SOME
    others = [HandRecord(each.offset, b"other", each.value, each.time) for each in SOME]
    folder = write_archive(tmp_path / "b", {LOG: [SOME], ("t", 1): [others]}, hashed=True)
    assert plain(read(tmp_path / "b")[0]) == SOME
    exchange(*folder.glob("topics/t/*/*"))
    with pytest.raises(Damaged, match="SHA-256 of the manifest"):
        read(tmp_path / "b")


def _spoiled(tmp_path: Path, data: bytes, records: Sequence[HandRecord] = SOME) -> LogkeepError:
    folder = write_archive(tmp_path, {LOG: [records]}, "zstd")
    (file,) = folder.glob(f"topics/t/partition=0/segment-{records[0].offset:020}.bin.zst")
    file.write_bytes(data)
    with pytest.raises(LogkeepError) as raised:
        read(tmp_path)
    return raised.value


def test_damage_and_bombs_are_refused(tmp_path: Path) -> None:
    good = segment_bytes(SOME, "zstd")
    assert isinstance(_spoiled(tmp_path, segment_bytes(SOME, "zstd", version=2)), FormatTooNew)
    assert isinstance(_spoiled(tmp_path, b"text"), UsageError)
    assert "cut off" in str(_spoiled(tmp_path, good[:-1]))
    assert "checksum" in str(_spoiled(tmp_path, good[:40] + bytes([good[40] ^ 1]) + good[41:]))
    body = b"".join(map(record_bytes, SOME))
    for codec in ("zstd", "lz4"):
        bomb = packed(codec, body + record_bytes(HandRecord(99, value=b"\0" * (64 << 20))))
        assert "unpack" in str(_spoiled(tmp_path, segment_bytes(SOME, codec, bomb)))
    assert "unpack" in str(_spoiled(tmp_path, segment_bytes(SOME, "lz4", b"\xff\xff\xff\xff" + body)))
    short = segment_bytes(SOME[:3], "none", b"".join(map(record_bytes, SOME[:2])))
    assert "claims" in str(_spoiled(tmp_path, short, SOME[:3]))
    wrong = struct.pack("<I", 2**31) + body[4:]
    assert "cut off" in str(_spoiled(tmp_path, segment_bytes(SOME, "none", wrong)))
    falling = b"".join(map(record_bytes, reversed(SOME)))
    assert "no record follows" in str(_spoiled(tmp_path, segment_bytes(SOME, "none", falling)))


def test_several_archives_are_named(tmp_path: Path) -> None:
    write_archive(tmp_path, {LOG: [SOME]}, name="a")
    write_archive(tmp_path, {LOG: [SOME]}, name="b")
    with pytest.raises(UsageError, match="several archives: a, b"):
        read(tmp_path)
    (tmp_path / "a" / "manifest.json").write_text('{"version": 3}')
    with pytest.raises(UsageError, match="not a document"):
        open_dataset(LocalStore(str(tmp_path / "a")))
