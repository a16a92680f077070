"""Parquet files as they are written and read: by pyarrow, DuckDB and pyiceberg, cut, damaged, with other columns."""

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from logkeep.errors import Damaged, UsageError
from logkeep.formats.datasets import parquet
from logkeep.formats.datasets.parquet import FILE_SCHEMA, ParquetFileWriter, ParquetRecords
from logkeep.formats.datasets.record_sizes import record_sizes, rows_until
from tests.support.kafka.arrow_samples import PARTITION, TOPIC, rows_of, sample


def written(*batches: pa.RecordBatch, partition: int = PARTITION) -> bytes:
    writer = ParquetFileWriter(TOPIC, partition)
    return b"".join([writer.begin(), *map(writer.add, batches), writer.end()])


def read(data: bytes) -> list[pa.RecordBatch]:
    return list(ParquetRecords(io.BytesIO(data), "a.parquet").records())


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_BYTES", 20_000)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 60)


@pytest.mark.usefixtures("small_groups")
def test_records_come_back_and_bytes_do_not_depend_on_how_they_arrive() -> None:
    batch = sample(500)
    whole = written(batch)
    file = ParquetRecords(io.BytesIO(whole))
    assert rows_of(list(file.records())) == rows_of([batch])
    assert (file.topic, file.partition) == (TOPIC, PARTITION)
    cuts = [0, 0, 1, 70, 71, 300, 500]
    assert written(*(batch.slice(a, b - a) for a, b in pairwise(cuts))) == whole
    assert pq.ParquetFile(io.BytesIO(whole)).num_row_groups > 8


def test_pyarrow_finds_the_columns_sorted_and_indexed() -> None:
    batch = sample(200)
    file = pq.ParquetFile(io.BytesIO(written(batch)))
    assert file.schema_arrow.equals(FILE_SCHEMA)
    assert file.read().column("value").to_pylist() == batch.column("value").to_pylist()
    group: Any = file.metadata.row_group(0)
    assert [column.column_index for column in group.sorting_columns] == [FILE_SCHEMA.get_field_index("offset")]
    chunks = {(c := group.column(i)).path_in_schema: c for i in range(group.num_columns)}
    assert {c.compression for c in chunks.values()} == {"ZSTD"}
    assert chunks["offset"].has_column_index
    assert chunks["offset"].has_offset_index
    assert (chunks["offset"].statistics.min, chunks["offset"].statistics.max) == (
        batch.column("offset")[0].as_py(),
        batch.column("offset")[-1].as_py(),
    )


def test_duckdb_reads_it_in_its_directories(tmp_path: Path) -> None:
    for partition in (0, 1):
        place = tmp_path / "topics" / TOPIC / f"partition={partition}"
        place.mkdir(parents=True)
        (place / f"{TOPIC}+{partition}-{0:020}.parquet").write_bytes(written(sample(50), partition=partition))
    with duckdb.connect() as database:
        rows = database.read_parquet(f"{tmp_path}/**/*.parquet")
        found = rows.aggregate('partition, count(*), min("offset")').order("partition").fetchall()
    assert found == [(0, 50, 10**10), (1, 50, 10**10)]


def test_pyiceberg_takes_the_files(tmp_path: Path) -> None:
    files = []
    for partition in (0, 1):
        file = tmp_path / f"{partition}.parquet"
        file.write_bytes(written(sample(50), partition=partition))
        files.append(str(file))
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("kafka")
    table = catalog.create_table("kafka.orders", schema=FILE_SCHEMA)
    table.add_files(files)
    found = table.scan(row_filter="partition == 1 and offset < 10000000010").to_arrow()
    assert found.column("partition").to_pylist() == [1] * len(found)
    offsets = sample(50).column("offset").to_pylist()
    assert found.column("offset").to_pylist() == [offset for offset in offsets if offset < 10**10 + 10]


def test_no_records_are_a_file_too() -> None:
    assert read(written()) == []
    assert pq.read_table(io.BytesIO(written())).schema.equals(FILE_SCHEMA)


def test_a_file_cut_at_any_byte() -> None:
    data = written(sample(5))
    for size in range(len(data)):
        with pytest.raises(UsageError if size < 4 else Damaged):
            read(data[:size])


def test_other_files() -> None:
    for data in (b"", b"Obj\x01", b"PAR2" + bytes(40)):
        with pytest.raises(UsageError, match="not a Parquet file"):
            read(data)
    out = io.BytesIO()
    pq.write_table(pa.table({name: [1] for name in "abcdefghi"}), out, compression="zstd")
    with pytest.raises(UsageError, match="columns are not those of records"):
        read(out.getvalue())
    out = io.BytesIO()
    pq.write_table(pa.table({name: [1] for name in "abcdefghi"}), out, compression="snappy")
    with pytest.raises(Damaged, match="not compressed with zstd"):
        read(out.getvalue())


def test_rows_that_contradict_each_other() -> None:
    table = pq.read_table(io.BytesIO(written(sample(4))))
    for column, values, said in (
        ("offset", [1, 2, 2, 3], "offsets do not rise"),
        ("offset", [-1, 2, 3, 4], "offsets do not rise"),
        ("partition", [0, 0, 1, 0], "another topic or partition"),
        ("topic", ["a", "a", "a", "b"], "another topic or partition"),
        ("timestampType", [0, 1, 2, 0], "timestampType"),
    ):
        field = FILE_SCHEMA.field(column)
        wrong = table.set_column(FILE_SCHEMA.get_field_index(column), field, pa.array(values, field.type))
        out = io.BytesIO()
        pq.write_table(wrong.cast(FILE_SCHEMA), out, compression="zstd", use_dictionary=["topic"], store_schema=False)
        with pytest.raises(Damaged, match=said):
            read(out.getvalue())


def test_sizes_and_cuts_of_files() -> None:
    batch = sample(100)
    sizes = record_sizes(batch)
    expected = [
        32 + len(r[2] or b"") + len(r[3] or b"") + sum(8 + len(k) + len(v or b"") for k, v in r[5])
        for r in rows_of([batch])
    ]
    assert sizes.tolist() == expected
    assert record_sizes(batch.slice(40, 9)).tolist() == expected[40:49]
    assert rows_until(sizes, 0, 1) == 1
    assert rows_until(sizes, 0, expected[0]) == 1
    assert rows_until(sizes, 0, expected[0] + 1) == 2
    assert rows_until(sizes, 10**9, 1) == 1
    assert rows_until(sizes, 0, 1 << 40) == 100
