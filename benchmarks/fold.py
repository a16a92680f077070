"""How fast is a fold? One log of many small records, against Spark's own latest record per key, in turns.

    python -m benchmarks.fold [--records 20000000] [--keys 1000000] [--rounds 1] [--spark] [--directory DIR]

A log of records of 100 bytes with random keys, stored as plain segments of 256 MiB in a directory, page cache warm, one
kept backup. `fold` is the task of `kafka fold` in one process: transactions, rows, decision, rewriting, and reading
everything back. With --spark the same batches are decoded into Parquet by Spark's workers, and Spark takes
`max_by(offset)` per key and writes the result: decode, maximum by key, write. Seconds, records per second, the ratio,
and the peak memory of this process.
"""

import argparse
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from logkeep.formats.compaction.barriers import Barrier, Barriers
from logkeep.formats.kafka.batches import BatchStretch, walk
from logkeep.formats.kafka.record_kernels import KEY_AT, KEY_SIZE, VALUE_AT, VALUE_SIZE
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.records import RecordColumns
from logkeep.formats.warm import warm
from logkeep.kafka.fold.fold_input import FoldInput
from logkeep.kafka.fold.fold_task import fold_log
from logkeep.kafka.fold.units import FoldUnit
from logkeep.model.segments import Collection, LogName, Segment
from logkeep.model.time import random_token
from logkeep.repository.backups.segment_writer import SegmentLimits, SegmentWriter
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.local import LocalStore

LOG = LogName(Collection.TOPICS, "state", "a" * 32, 0)
_BATCH = 150
_RECORD_BYTES = 100
_SEGMENT_BYTES = 256 << 20


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--records", type=int, default=20_000_000)
    arguments.add_argument("--keys", type=int, default=1_000_000)
    arguments.add_argument("--rounds", type=int, default=1)
    arguments.add_argument("--spark", action="store_true")
    arguments.add_argument("--directory", type=Path)
    chosen = arguments.parse_args()
    directory = Path(tempfile.mkdtemp(dir=chosen.directory))
    try:
        place = SourceRef(LocalStore(directory / "store"), "0" * 32, "prod")
        place.store.create()  # type: ignore[attr-defined]  # a directory is made
        rows = _written(place, chosen.records, chosen.keys)
        warm()
        for _ in range(chosen.rounds):
            ours = _fold(place, rows, chosen.records)
            if chosen.spark:
                theirs = _spark(place, rows, directory, chosen.records)
                print(f"ratio {theirs / ours:.2f}")
    finally:
        shutil.rmtree(directory)


def _fold(place: SourceRef, rows: tuple[Segment, ...], records: int) -> float:
    unit = FoldUnit(place, LOG, rows, Barriers((Barrier(1, 0, records),)), seeds=(11, 12, 13, 14, 15, 16))
    began = time.perf_counter()
    done = fold_log(unit, lambda _: None)
    took = time.perf_counter() - began
    assert done.before is not None and done.after is not None, done  # noqa: PT018 - a benchmark of nothing
    assert done.before.latest == done.after.latest
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    kept = f"{done.before.records:,} records became {done.after.records:,}"
    print(f"fold   {took:7.1f} s  {records / took / 1e6:6.2f} M records/s  peak {peak_mb:.0f} MiB  {kept}")
    return took


def _written(place: SourceRef, records: int, keys: int) -> tuple[Segment, ...]:
    """Batches with the same shape, whose keys are overwritten in place: no record is encoded twice."""
    random = np.random.default_rng(1)
    template = np.frombuffer(bytearray(_template()), np.uint8).copy()
    spots = _key_spots(template)
    writer = SegmentWriter(place, LOG, 0, SegmentLimits(_SEGMENT_BYTES), 0, random_token)
    for base in range(0, records, _BATCH):
        template[spots] = _digits(random.integers(0, keys, len(spots)))
        data = _sealed(template, base)
        writer.write(memoryview(data), walk(data).batches)
    writer.finish(records)
    return tuple(writer.segments)


def _template() -> bytes:
    from tests.support.kafka.slow_records import Slow, batch_of  # noqa: PLC0415

    value = bytes(_RECORD_BYTES - 20)
    return batch_of(0, [Slow(n, 0, b"k" + b"0" * 9, value) for n in range(_BATCH)])


def _key_spots(template: np.ndarray) -> np.ndarray:
    data = template.tobytes()
    stretch = BatchStretch(data, walk(data).batches)
    (records,) = visible_records([stretch], View(0, _BATCH))
    return records.spans[:, KEY_AT].astype(np.int64)[:, None] + 1 + np.arange(9)


def _digits(numbers: np.ndarray) -> np.ndarray:
    return (numbers[:, None] // 10 ** np.arange(8, -1, -1) % 10 + ord("0")).astype(np.uint8)


def _sealed(template: np.ndarray, base: int) -> bytes:
    import google_crc32c  # noqa: PLC0415

    template[:8] = np.frombuffer(base.to_bytes(8, "big"), np.uint8)
    data = bytearray(template.tobytes())
    data[17:21] = google_crc32c.value(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def _spark(place: SourceRef, rows: tuple[Segment, ...], directory: Path, records: int) -> float:
    """Decode to Parquet in Spark's workers, then the latest value per key, written as Parquet."""
    from pyspark.sql import SparkSession  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    spark = SparkSession.builder.master("local[2]").config("spark.driver.memory", "2g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    out, mid = str(directory / "out"), str(directory / "mid")
    began = time.perf_counter()
    spark.sparkContext.parallelize(list(range(len(rows))), len(rows)).foreach(_Decode(place, rows, mid))
    table = spark.read.parquet(mid)
    latest = table.groupBy("key").agg(f.max_by(f.struct("offset", "value"), "offset").alias("last"))
    latest.write.mode("overwrite").parquet(out)
    took = time.perf_counter() - began
    print(f"Spark  {took:7.1f} s  {records / took / 1e6:6.2f} M records/s")
    spark.stop()
    return took


class _Decode:
    """Writes the records of one row as a Parquet file."""

    def __init__(self, place: SourceRef, rows: tuple[Segment, ...], to: str) -> None:
        self._place, self._rows, self._to = place, rows, to

    def __call__(self, number: int) -> None:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415

        Path(self._to).mkdir(exist_ok=True)
        schema = pa.schema([("offset", pa.int64()), ("key", pa.binary()), ("value", pa.binary())])
        with parquet.ParquetWriter(f"{self._to}/{number}.parquet", schema) as file:
            for columns in self._records(self._rows[number]):
                file.write_table(pa.table(columns, schema))

    def _records(self, row: Segment) -> Iterator[dict[str, object]]:
        archived = FoldInput(self._place, [row], lambda _: None)
        for records in visible_records(archived.of_row(row), View(0, 2**62)):
            yield {
                "offset": records.offsets.copy(),
                "key": _binary(records, KEY_AT, KEY_SIZE),
                "value": _binary(records, VALUE_AT, VALUE_SIZE),
            }


def _binary(records: RecordColumns, at: int, size: int) -> object:
    """All keys, or all values, which have one size here."""
    import pyarrow as pa  # noqa: PLC0415

    width = int(records.spans[0, size])
    spots = records.spans[:, at].astype(np.int64)[:, None] + np.arange(width)
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(records), [None, pa.py_buffer(records.data[spots].tobytes())]
    ).cast(pa.binary())


if __name__ == "__main__":
    main()
