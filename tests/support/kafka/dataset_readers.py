"""Records of Avro and Parquet datasets as independent readers have them: fastavro and pyarrow."""

from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import TIMESTAMP_CREATE_TIME

from tests.support.kafka.client_readers import Seen


def files_of(root: Path, topic: str, ending: str, partition: int = 0) -> list[Path]:
    return sorted((root / "topics" / topic / f"partition={partition}").glob(f"{topic}+{partition}-*{ending}"))


def avro_rows(files: list[Path]) -> list[Any]:
    records: list[Any] = []
    for file in files:
        with file.open("rb") as opened:
            records += fastavro.reader(opened)
    return records


def seen_in_avro(root: Path, topic: str, partition: int = 0) -> list[Seen]:
    rows = avro_rows(files_of(root, topic, ".data", partition))
    return [_seen(row, row["timestamp"], row["orderedHeaders"]) for row in rows]


def seen_in_parquet(root: Path, topic: str, partition: int = 0) -> list[Seen]:
    found: list[Seen] = []
    for file in files_of(root, topic, ".parquet", partition):
        table = pq.ParquetFile(file).read()
        times = table.column("timestamp").cast(pa.int64()).to_pylist()
        rows = table.drop_columns(["timestamp"]).to_pylist()
        found += [_seen(row, time_ms, row["headers"]) for row, time_ms in zip(rows, times, strict=True)]
    return found


def _seen(row: dict[str, Any], time_ms: int, headers: list[dict[str, Any]] | None) -> Seen:
    pairs = [(each["key"].decode(), each["value"]) for each in headers or ()] or None
    return Seen(row["offset"], row["timestampType"] + TIMESTAMP_CREATE_TIME, time_ms, row["key"], row["value"], pairs)
