"""Datasets of Avro and Parquet files: names, cuts, continuing, killed runs, and what a run refuses to continue."""

import io
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.formats.datasets.arrow import SCHEMA
from logkeep.formats.datasets.avro.reader import AvroFile
from logkeep.formats.datasets.parquet import ParquetRecords
from logkeep.kafka.datasets.files import writer as files_writer
from logkeep.kafka.datasets.files.record_files import AVRO, PARQUET, RecordFiles
from logkeep.kafka.datasets.format_table import dataset_format
from logkeep.kafka.datasets.formats import DatasetOptions, WrittenPart
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.store.base import ObjectMetadata
from logkeep.store.local.store import LocalStore
from logkeep.store.memory import MemoryStore
from tests.support.kafka.arrow_samples import rows_of, sample
from tests.support.metered_store import MeteredStore

LOG = DatasetLog("orders", 3)
BOTH = pytest.mark.parametrize("form", [AVRO, PARQUET], ids=lambda form: form.name)


def directory(root: Path) -> DatasetTarget:
    root.mkdir(exist_ok=True)
    return DatasetTarget(LocalStore(root), root)


def written(
    form: RecordFiles, target: DatasetTarget, batch: pa.RecordBatch, size: int = 1000, at_once: int = 7
) -> WrittenPart:
    writer = form.writer(target, LOG, DatasetOptions(size))
    for first in range(0, batch.num_rows, at_once):
        writer.write(batch.slice(first, at_once))
    return writer.finish()


def files(root: Path) -> dict[str, bytes]:
    found = (p for p in root.rglob("*") if p.is_file() and ".partial" not in p.parts)
    return {str(p.relative_to(root)): p.read_bytes() for p in found}


def records(form: RecordFiles, root: Path) -> list[tuple[object, ...]]:
    batches: list[pa.RecordBatch] = []
    for name, data in sorted(files(root).items()):
        if not name.endswith("_empty"):
            batches += (AvroFile if form is AVRO else ParquetRecords)(io.BytesIO(data), name).records()
    return rows_of(batches)


@BOTH
def test_names_cuts_and_counts(form: RecordFiles, tmp_path: Path) -> None:
    batch = sample(60)
    part = written(form, directory(tmp_path), batch)
    offsets = batch.column("offset").to_pylist()
    found = sorted(files(tmp_path))
    assert found[0] == f"topics/orders/partition=3/orders+3-{offsets[0]:020}{form.kind.ending}"
    assert len(found) > 5
    assert (part.records, part.files, part.first, part.last) == (60, len(found), offsets[0], offsets[-1])
    assert part.written_bytes == sum(map(len, files(tmp_path).values()))
    assert records(form, tmp_path) == rows_of([batch])
    assert form.logs(directory(tmp_path)) == {LOG}


@BOTH
def test_the_same_cuts_give_the_same_bytes(form: RecordFiles, tmp_path: Path) -> None:
    """However records arrive, and when a run ends where a file ends."""
    batch = sample(60)
    written(form, directory(tmp_path / "one"), batch)
    written(form, directory(tmp_path / "other"), batch, at_once=60)
    assert files(tmp_path / "one") == files(tmp_path / "other")
    second = int(sorted(files(tmp_path / "one"))[3].rpartition("-")[2].partition(".")[0])
    count = batch.column("offset").to_pylist().index(second)
    written(form, directory(tmp_path / "two"), batch.slice(0, count))
    written(form, directory(tmp_path / "two"), batch.slice(count))
    assert files(tmp_path / "two") == files(tmp_path / "one")


@BOTH
def test_a_file_for_each_record_and_other_cuts(form: RecordFiles, tmp_path: Path) -> None:
    batch = sample(20)
    assert written(form, directory(tmp_path / "a"), batch, size=1).files == 20
    for first in range(0, 20, 3):
        written(form, directory(tmp_path / "b"), batch.slice(first, 3))
    assert records(form, tmp_path / "a") == records(form, tmp_path / "b") == rows_of([batch])


@BOTH
def test_a_killed_run_leaves_nothing_of_its_last_file(form: RecordFiles, tmp_path: Path) -> None:
    batch = sample(60)
    written(form, directory(tmp_path / "one"), batch)
    for stop in range(1, 60, 9):
        target = directory(tmp_path / f"killed-{stop}")
        writer = form.writer(target, LOG, DatasetOptions(1000))
        writer.write(batch.slice(0, stop))
        writer.abort()
        last = form.find_end(target, LOG).last
        offsets = batch.column("offset").to_pylist()
        done = offsets.index(last) + 1 if last is not None else 0
        assert done <= stop
        written(form, target, batch.slice(done))
        assert files(tmp_path / f"killed-{stop}") == files(tmp_path / "one")


@BOTH
def test_the_end_is_found_by_the_last_file_alone(form: RecordFiles, tmp_path: Path) -> None:
    batch = sample(3000)
    written(form, directory(tmp_path), batch, size=1 << 19, at_once=500)
    stored = files(tmp_path)
    store = MeteredStore(LocalStore(tmp_path))
    end = form.find_end(DatasetTarget(store, tmp_path), LOG)
    assert (end.joined, end.last) == (True, batch.column("offset")[-1].as_py())
    assert end.records_bytes == sum(map(len, stored.values()))
    assert store.meter.usage().bytes_down < 2 * len(stored[max(stored)]) + (1 << 20)
    assert len(stored) >= 2


@BOTH
def test_an_empty_partition_joins(form: RecordFiles, tmp_path: Path) -> None:
    target = directory(tmp_path)
    assert not form.find_end(target, LOG).joined
    written(form, target, sample(0))
    assert files(tmp_path) == {"topics/orders/partition=3/_empty": b""}
    assert form.find_end(target, LOG).joined
    assert form.logs(target) == {LOG}
    batch = sample(5)
    written(form, target, batch)
    assert form.find_end(target, LOG).last == batch.column("offset")[-1].as_py()


@BOTH
def test_what_no_run_left_is_refused(form: RecordFiles, tmp_path: Path) -> None:
    target = directory(tmp_path)
    written(form, target, sample(5), size=1 << 20)
    (name,) = files(tmp_path)
    good = (tmp_path / name).read_bytes()
    for wrong in (good[:-1], good[:40], b"", b"text", good[:-30] + bytes(30)):
        (tmp_path / name).write_bytes(wrong)
        with pytest.raises(TargetUnsafe):
            form.find_end(target, LOG)
    (tmp_path / name).rename(tmp_path / name.replace(f"{10**10:020}", f"{7:020}"))
    (tmp_path / name.replace(f"{10**10:020}", f"{7:020}")).write_bytes(good)
    with pytest.raises(TargetUnsafe, match="another topic"):
        form.find_end(target, LOG)
    (tmp_path / "topics/orders/partition=3/notes.txt").write_text("mine")
    with pytest.raises(TargetUnsafe, match="not a file of the dataset"):
        form.find_end(target, LOG)


class _Bucket(MemoryStore):
    """Keeps metadata, as buckets do."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, ObjectMetadata | None] = {}

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        self.kept[name] = metadata
        super().put_new(name, data, metadata)


@BOTH
def test_objects_have_metadata_and_are_not_larger_than_memory(
    form: RecordFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_writer, "LARGEST_OBJECT", 1000)
    store, batch = _Bucket(), sample(60)
    part = written(form, DatasetTarget(store), batch, size=1 << 30)
    times = batch.column("timestamp").cast(pa.int64()).to_pylist()
    offsets = batch.column("offset").to_pylist()
    kept = [dict(metadata or {}) for _, metadata in sorted(store.kept.items())]
    assert len(kept) == part.files > 5
    at = 0
    for one in kept:
        after = at + int(one["records"])
        assert one == {
            "first-offset": str(offsets[at]),
            "last-offset": str(offsets[after - 1]),
            "last-timestamp": str(times[after - 1]),
            "max-timestamp": str(max(times[at:after])),
            "records": str(after - at),
        }
        at = after
    assert at == 60
    assert form.find_end(DatasetTarget(store), LOG).last == offsets[-1]


@BOTH
def test_blocks_of_several_batches_in_a_bucket(form: RecordFiles, tmp_path: Path) -> None:
    """A file is held in memory there until it is complete; its writer uses its memory again for each batch."""
    rows = [{"offset": i, "timestamp": 1, "timestamp_type": 0, "key": b"k", "headers": []} for i in range(6)]
    batch = pa.RecordBatch.from_pylist([row | {"value": bytes([i]) * 200_000} for i, row in enumerate(rows)], SCHEMA)
    for codec in ("null", "deflate") if form is AVRO else ("",):
        store = _Bucket()
        for target in (DatasetTarget(store), directory(tmp_path / codec)):
            writer = form.writer(target, LOG, DatasetOptions(1 << 30, codec=codec))
            for first in range(0, 6, 3):
                writer.write(batch.slice(first, 3))
            writer.finish()
        assert {name: store.get(name, 1 << 30) for name in store.kept} == files(tmp_path / codec)
        assert records(form, tmp_path / codec) == rows_of([batch])


def test_pandas_is_not_loaded() -> None:
    """It takes 40 MB; pyarrow loads it when the first array is made from Python's values."""
    code = "import sys, logkeep.kafka.datasets.files.record_files; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_formats_by_name() -> None:
    assert (dataset_format("avro"), dataset_format("parquet")) == (AVRO, PARQUET)
    assert pickle.dumps(AVRO) != pickle.dumps(PARQUET)
    assert AVRO.schema(DatasetOptions(1)) == "faithful"
    assert AVRO.schema(DatasetOptions(1, "seed001")) == "seed001"
    assert PARQUET.schema(DatasetOptions(1)) == ""
    with pytest.raises(UsageError):
        AVRO.schema(DatasetOptions(1, "other"))


def test_losses_of_all_files_are_counted(tmp_path: Path) -> None:
    batch = sample(60)
    writer = AVRO.writer(directory(tmp_path), LOG, DatasetOptions(1000, "seed001", "null"))
    writer.write(batch)
    part = writer.finish()
    assert part.files > 5
    assert part.not_held["null-values"] == batch.column("value").null_count
    assert part.not_held["append-times"] == sum(batch.column("timestamp_type").to_pylist())
