"""What a fold is compared with, over the same segments: Spark's latest record per key, and the broker's own cleaner."""

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.client_cpu import client_cpu_s
from benchmarks.kafka_workload import OptimisedKafka
from logkeep.formats.kafka.record_kernels import KEY_AT, KEY_SIZE, VALUE_AT, VALUE_SIZE
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.records import RecordColumns
from logkeep.kafka.fold.fold_input import FoldInput
from logkeep.model.segments import Segment
from logkeep.repository.chain.commits import SourceRef

_LOG4J = """\
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %m (%c)%n
rootLogger = INFO, out
"""
_CLEANED = re.compile(r"([0-9,.]+) MB of log processed in ([0-9,.]+) seconds")
_CLEANER_S = 1_200


def spark_seconds(place: SourceRef, rows: Sequence[Segment], directory: Path) -> tuple[float, float]:
    """Decode in Spark's workers, take the record with the greatest offset per key, write Parquet: one job.

    Wall seconds, and the CPU seconds of all its processes.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.memory": "3g",
        "spark.local.dir": str(directory / "spark"),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    try:
        spark.sparkContext.setLogLevel("ERROR")
        spark.range(1).write.mode("overwrite").parquet(str(directory / "first"))
        began, spent = time.perf_counter(), client_cpu_s(without=-1)
        numbers = spark.range(0, len(rows), 1, len(rows))
        table = numbers.mapInArrow(_Decode(place, tuple(rows)), "offset long, key binary, value binary")
        latest = table.groupBy("key").agg(f.max_by(f.struct("offset", "value"), "offset").alias("last"))
        latest.write.mode("overwrite").parquet(str(directory / "out"))
        return time.perf_counter() - began, client_cpu_s(without=-1) - spent
    finally:
        spark.stop()


class _Decode:
    """The records of some segments, as Arrow."""

    def __init__(self, place: SourceRef, rows: tuple[Segment, ...]) -> None:
        self._place, self._rows = place, rows

    def __call__(self, numbers: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415

        for batch in numbers:
            for number in batch.column(0).to_pylist():
                archived = FoldInput(self._place, self._rows, lambda _: None)
                for records in visible_records(archived.of_row(self._rows[number]), View(0, 2**62)):
                    yield pa.RecordBatch.from_arrays(
                        [
                            pa.array(records.offsets.copy()),
                            _binary(records, KEY_AT, KEY_SIZE),
                            _binary(records, VALUE_AT, VALUE_SIZE),
                        ],
                        names=["offset", "key", "value"],
                    )


def _binary(records: RecordColumns, at: int, size: int) -> Any:
    """All keys, or all values, which have one size here."""
    import pyarrow as pa  # noqa: PLC0415

    width = int(records.spans[0, size])
    spots = records.spans[:, at].astype(np.int64)[:, None] + np.arange(width)
    made = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(records), [None, pa.py_buffer(records.data[spots].tobytes())]
    )
    return made.cast(pa.binary())


class _CleaningKafka(OptimisedKafka):
    """A broker that logs what its cleaner did."""

    def command(self, main_class: str, arguments: Sequence[str]) -> list[str]:
        file = self.directory / "info.properties"
        file.write_text(_LOG4J)
        options = super().command(main_class, arguments)
        return [f"-Dlog4j2.configurationFile={file}" if "log4j2.config" in part else part for part in options]


def cleaner_speed(place: SourceRef, rows: Sequence[Segment], directory: Path, cache: Path, last_bytes: int) -> str:
    """The segments become the log of a compacted topic while the broker is stopped; its cleaner does the rest.

    The last batch, of `last_bytes`, becomes the active segment, which is not cleaned. Returns the broker's own line.
    """
    properties = {
        "log.cleaner.backoff.ms": "500",
        "log.cleaner.dedupe.buffer.size": str(900 << 20),
        "log.segment.bytes": str(1 << 30),
    }
    kafka = _CleaningKafka(directory / "broker", cache, properties=properties)
    with kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        admin.create_topics([NewTopic("state", 1, 1, config=config)])["state"].result(60)
    _install(place, rows, directory / "broker" / "data" / "state-0", last_bytes)
    with kafka:
        deadline = time.monotonic() + _CLEANER_S
        while not (found := _CLEANED.search(kafka.log.read_text())):
            kafka.check_running()
            if time.monotonic() > deadline:
                raise SystemExit("the cleaner did not end")
            time.sleep(1)
        return found[0]


def _install(place: SourceRef, rows: Sequence[Segment], to: Path, last_bytes: int) -> None:
    for file in to.glob("0*"):
        file.unlink()
    for row in rows:
        with (to / f"{row.first:020d}.log").open("wb") as out:
            for piece in FoldInput(place, [row], lambda _: None).of_row(row):
                out.write(memoryview(piece.buffer)[piece.batches.start : piece.batches.end])
    last = to / f"{rows[-1].first:020d}.log"
    data = last.read_bytes()
    base = int.from_bytes(data[-last_bytes:][:8], "big")
    last.write_bytes(data[:-last_bytes])
    (to / f"{base:020d}.log").write_bytes(data[-last_bytes:])
    for kept in (to / "leader-epoch-checkpoint", to.parent / ".kafka_cleanshutdown"):
        kept.unlink(missing_ok=True)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint"):
        (to.parent / name).unlink(missing_ok=True)


def remove(directory: Path) -> None:
    """Make room for the next peer."""
    shutil.rmtree(directory, ignore_errors=True)
