"""Avro and Parquet files as datasets: both layouts of Trivadis, headers that Java serialised, files of others."""

import struct
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from logkeep.errors import Damaged, LogkeepError
from logkeep.formats.datasets.arrow import SCHEMA as SCHEMA_OF_RECORDS
from logkeep.formats.datasets.avro.container import AvroCodec
from logkeep.formats.datasets.avro.reader import AvroFile
from logkeep.formats.datasets.avro.schemas import AvroSchema
from logkeep.formats.datasets.avro.writer import AvroFileWriter, AvroOptions
from logkeep.formats.datasets.java_values import decoded
from logkeep.formats.datasets.parquet import ParquetFileWriter
from logkeep.kafka.importing.reader import ReadNotes
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.store.local.store import LocalStore
from tests.support.datasets.trivadis_files import (
    SCHEMA,
    java_array,
    java_box,
    java_string,
    java_true,
    write_bucket,
    write_file,
)
from tests.support.datasets.v1_files import HandRecord
from tests.support.kafka.arrow_samples import PARTITION, TOPIC, sample
from tests.unit.kafka.importing.test_oso_reader import plain

JAVA = [
    (java_string(b"abc"), b"abc"),
    (java_string(b""), b""),
    (java_string(b"a\xc0\x80b"), b"a\0b"),
    (java_string(b"\xed\xa0\xbd\xed\xb8\x80"), "\N{GRINNING FACE}".encode()),
    (java_string("ü".encode()), "ü".encode()),
    (java_array(b"\0\1\2"), b"\0\1\2"),
    (java_true(), b"true"),
    (java_box("java.lang.Boolean", "cd207280d59cfaee", b"Z", b"\0", b"\x78\x70"), b"false"),
    (java_box("java.lang.Byte", "9c4e6084ee50f51c", b"B", struct.pack(">b", -12)), b"-12"),
    (java_box("java.lang.Short", "684d37133460da52", b"S", struct.pack(">h", 300)), b"300"),
    (java_box("java.lang.Integer", "12e2a0a4f7818738", b"I", struct.pack(">i", 70000)), b"70000"),
    (java_box("java.lang.Long", "3b8be490cc8f23df", b"J", struct.pack(">q", 2**40)), b"1099511627776"),
    (java_box("java.lang.Float", "daedc9a2db3cf0ec", b"F", struct.pack(">f", 1.5)), b"1.5"),
    (java_box("java.lang.Double", "80b3c24a296bfb04", b"D", struct.pack(">d", 2.25)), b"2.25"),
]
UNKNOWN = [
    b"",
    b"abc",
    java_string(b"abc")[:-1],
    java_string(b"abc") + b"x",
    b"\xac\xed\0\5sr\0\1x",
    java_array(b"ab")[:-1],
]
LOG = ("t-1", 0)
SOME = [HandRecord(o, b"k%d" % o, b"v" * o, 1000 + o) for o in range(5, 15)]


def read(root: Path, topic: str = "t-1") -> tuple[list[HandRecord], dict[str, int]]:
    notes = ReadNotes()
    reader = open_dataset(LocalStore(str(root)))
    rows = [row for batch in reader.records(topic, 0, 0, notes) for row in batch.to_pylist()]
    return plain(rows), {d.code: d.count for d in notes.doubts}


@pytest.mark.parametrize(("value", "meant"), JAVA)
def test_values_of_java_become_what_they_were(value: bytes, meant: bytes) -> None:
    assert decoded(value) == (meant, True)


@pytest.mark.parametrize("value", UNKNOWN)
def test_other_values_are_kept(value: bytes) -> None:
    assert decoded(value) == (value, False)


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy"])
def test_a_bucket_of_the_tool(tmp_path: Path, codec: str) -> None:
    headers = [(b"h%d" % n, value) for n, (value, _) in enumerate(JAVA)]
    archived = [*SOME[:4], HandRecord(20, None, b"v", 7, 0, headers), HandRecord(21, b"", None, 8, 0, [(b"x", b"raw")])]
    write_bucket(tmp_path, {LOG: [archived[:3], archived[3:]]}, codec)
    found, doubts = read(tmp_path)
    assert found[:4] == SOME[:4]
    meant = sorted((b"h%d" % n, text) for n, (_, text) in enumerate(JAVA))
    assert sorted(found[4].headers) == meant
    assert found[5] == HandRecord(21, b"", b"", 8, 0, [(b"x", b"raw")])
    assert doubts == {"java-headers": len(JAVA), "java-headers-raw": 1, "null-or-empty": 3, "headers-unordered": 1}
    assert open_dataset(LocalStore(str(tmp_path))).label.format == "trivadis"


def test_of_two_copies_of_a_compacted_topic_the_further_one_is_read(tmp_path: Path) -> None:
    write_bucket(tmp_path, {LOG: [SOME[:5]]}, connector="a")
    write_bucket(tmp_path, {LOG: [SOME[:5], SOME[5:]]}, connector="b")
    assert read(tmp_path)[0] == SOME
    (finding,) = open_dataset(LocalStore(str(tmp_path))).findings
    assert (finding.code, "connector a" in finding.what) == ("other-copy", True)


def test_the_documented_layout_is_sorted_by_number(tmp_path: Path) -> None:
    for number, part in ((10, SOME[5:]), (9, SOME[:5])):
        write_file(tmp_path / f"topics/t-1/partition=0/t-1+0-{number}.data", "t-1", 0, part)
    found, doubts = read(tmp_path)
    assert (found, doubts) == (SOME, {})
    assert open_dataset(LocalStore(str(tmp_path))).label.format == "avro"


def test_a_file_of_another_partition_or_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "topics/t-1/partition=0/t-1+0-5.data"
    write_file(path, "other", 0, SOME)
    with pytest.raises(Damaged, match="records of 'other'"):
        read(tmp_path)
    path.rename(path.with_name("u+0-5.data"))
    with pytest.raises(Damaged, match="not one of its directory"):
        read(tmp_path)


def _outcome(root: Path) -> int:
    try:
        return len(read(root)[0])
    except LogkeepError as error:
        return error.exit_code


def test_torn_and_foreign_files_are_refused(tmp_path: Path) -> None:
    write_bucket(tmp_path, {LOG: [SOME]})
    (file,) = tmp_path.rglob("*.avro")
    data = file.read_bytes()
    for cut in range(0, len(data) - 1, 7):
        file.write_bytes(data[:cut])
        assert _outcome(tmp_path) in {0, 10, 40}, "a file that ends before its first block is complete for Avro"
    file.write_bytes(b"text")
    with pytest.raises(LogkeepError):
        read(tmp_path)


def test_a_damaged_file_is_to_be_copied_again(tmp_path: Path) -> None:
    write_bucket(tmp_path / "of-avro", {LOG: [SOME]})
    (torn,) = tmp_path.rglob("*.avro")
    torn.write_bytes(torn.read_bytes()[:-1])
    other = tmp_path / "of-parquet" / "topics" / "t-1" / "partition=0" / f"t-1+0-{0:020}.parquet"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"PAR1 and no footer PAR1")
    for root, file in ((tmp_path / "of-avro", torn), (tmp_path / "of-parquet", other)):
        with pytest.raises(Damaged) as caught:
            read(root)
        assert caught.value.subject == str(file.relative_to(root))
        assert "copy the file again" in caught.value.remedy, "`logkeep verify` is for repositories"
        file.write_bytes(b"")
        with pytest.raises(LogkeepError, match=r"this is not an? (Avro|Parquet) file") as empty:
            read(root)
        assert "copy the file again" in empty.value.remedy


def test_overlapping_files_are_read_once(tmp_path: Path) -> None:
    write_bucket(tmp_path, {LOG: [SOME[:6], SOME[4:]]})
    assert read(tmp_path) == (SOME, {"overlapping-records": 2})


def test_the_reader_agrees_with_fastavro(tmp_path: Path) -> None:
    write_bucket(tmp_path, {LOG: [SOME]})
    (file,) = tmp_path.rglob("*.avro")
    ours = [row["offset"] for batch in AvroFile(BytesIO(file.read_bytes())).records() for row in batch.to_pylist()]
    theirs: list[Any] = list(fastavro.reader(BytesIO(file.read_bytes()), SCHEMA))
    assert ours == [row["offset"] for row in theirs]


@pytest.mark.parametrize("ending", ["data", "parquet"])
def test_files_that_logkeep_wrote_come_back_whole(tmp_path: Path, ending: str) -> None:
    """Null and empty, repeated headers, names that are no text, append times."""
    parts = [sample(40, 1), sample(40, 2, first=2 * 10**10)]
    folder = tmp_path / "topics" / TOPIC / f"partition={PARTITION}"
    folder.mkdir(parents=True)
    for part in parts:
        first, options = part.column("offset")[0].as_py(), AvroOptions(AvroSchema.FAITHFUL, AvroCodec.DEFLATE)
        avro, columns = AvroFileWriter(TOPIC, PARTITION, first, options), ParquetFileWriter(TOPIC, PARTITION)
        writer = columns if ending == "parquet" else avro
        data = writer.begin() + writer.add(part) + writer.end()
        (folder / f"{TOPIC}+{PARTITION}-{first:020d}.{ending}").write_bytes(data)
    notes = ReadNotes()
    reader = open_dataset(LocalStore(str(tmp_path)))
    found = pa.Table.from_batches(list(reader.records(TOPIC, PARTITION, 0, notes)), SCHEMA_OF_RECORDS)
    assert found.combine_chunks().equals(pa.Table.from_batches(parts, SCHEMA_OF_RECORDS).combine_chunks())
    assert (notes.doubts, notes.lost, reader.label.format) == ((), [], "parquet" if ending == "parquet" else "avro")
