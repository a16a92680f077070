"""Results of queries as CSV, JSON lines or Parquet, written as they arrive.

Bytes are base64 in both text formats, times RFC 3339. In CSV null is an empty field and an empty text is `""`; maps,
lists and structs are JSON. Parquet keeps all types.
"""

import base64
import io
import json
import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from logkeep.errors import UsageError

Write = Callable[[bytes], bool]
"""Writes some bytes; returns whether more are wanted."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column, as `to_pylist` returns them; but a time that Python cannot hold becomes a text with its
    microseconds since 1970."""
    if not pa.types.is_timestamp(column.type):
        values: list[Any] = column.to_pylist()
        return values
    return [_moment(us, aware=column.type.tz is not None) for us in column.cast(pa.int64()).to_pylist()]


def _moment(us: int | None, *, aware: bool) -> datetime | str | None:
    """Spark's times are in microseconds."""
    if us is None:
        return None
    try:
        found = _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        return f"{us} µs since 1970"
    return found if aware else found.replace(tzinfo=None)


def plain(value: Any) -> Any:
    """The value as JSON has it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    return _items(value) if isinstance(value, list | tuple) else _as_text(value)


def _as_text(value: Any) -> str:
    """Dates and decimals in their usual notation."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        text = value.isoformat(timespec="microseconds" if value.microsecond % 1000 else "milliseconds")
        return text.replace("+00:00", "Z")
    return str(value)


def _items(value: Iterable[Any]) -> Any:
    """Arrow gives a map as a list of pairs."""
    found = list(value)
    if found and all(isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str) for each in found):
        return {name: plain(each) for name, each in found}
    return [plain(each) for each in found]


class TextSink:
    """Rows as lines."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self.rows = 0
        self._names: list[str] = []

    def begin(self, schema: pa.Schema) -> None:
        self._names = schema.names
        self._write(self._head().encode())

    def batch(self, rows: pa.RecordBatch) -> bool:
        self.rows += rows.num_rows
        values = zip(*(python_values(column) for column in rows.columns), strict=True)
        return self._write("".join(self._line([plain(each) for each in row]) for row in values).encode())

    def end(self) -> None:
        """Nothing follows the last line."""

    def _head(self) -> str:
        return ""

    def _line(self, values: list[Any]) -> str:
        raise NotImplementedError


class JsonLinesSink(TextSink):
    def begin(self, schema: pa.Schema) -> None:
        if twice := sorted({name for name in schema.names if schema.names.count(name) > 1}):
            raise UsageError(f"two columns are called {twice[0]}", remedy="give one of them another name, with AS")
        super().begin(schema)

    def _line(self, values: list[Any]) -> str:
        return json.dumps(dict(zip(self._names, values, strict=True))) + "\n"


class CsvSink(TextSink):
    def _head(self) -> str:
        return _csv_line(self._names)

    def _line(self, values: list[Any]) -> str:
        return _csv_line([json.dumps(v) if isinstance(v, dict | list) else v for v in values])


def _csv_line(values: Iterable[Any]) -> str:
    """The csv module of Python 3.11 writes null and an empty text alike."""
    return ",".join(map(_csv_value, values)) + "\n"


def _csv_value(value: Any) -> str:
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    special = not text or text != text.strip() or any(c in text for c in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if special else text


class ParquetSink:
    """Needs no seek: the footer comes last."""

    def __init__(self, write: Write) -> None:
        self._out = _Stream(write)
        self.rows = 0
        self._writer: pq.ParquetWriter | None = None

    def begin(self, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(pa.PythonFile(self._out, "w"), schema, compression="zstd")

    def batch(self, rows: pa.RecordBatch) -> bool:
        assert self._writer is not None  # noqa: S101  # `begin` was called
        self.rows += rows.num_rows
        self._writer.write_batch(rows)
        return self._out.wanted

    def end(self) -> None:
        assert self._writer is not None  # noqa: S101
        self._writer.close()


class _Stream(io.RawIOBase):
    def __init__(self, write: Write) -> None:
        self._to, self._at, self.wanted = write, 0, True

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._at += len(piece)
        self.wanted = self.wanted and self._to(piece)
        return len(piece)


class SpooledSink:
    """Passes rows on when all have arrived: for a query that may have to begin again."""

    def __init__(self, sink: TextSink | ParquetSink) -> None:
        self._sink = sink
        self._schema: pa.Schema | None = None
        self._batches: list[pa.RecordBatch] = []

    def begin(self, schema: pa.Schema) -> None:
        self._schema, self._batches = schema, []

    def batch(self, rows: pa.RecordBatch) -> bool:
        self._batches.append(rows)
        return True

    def end(self) -> None:
        self._sink.begin(self._schema)
        all(self._sink.batch(each) for each in self._batches)
        self._sink.end()


def file_sink(form: str, write: Write) -> TextSink | ParquetSink:
    """`form` is csv, jsonl or parquet."""
    sinks: dict[str, Callable[[Write], TextSink | ParquetSink]]
    sinks = {"csv": CsvSink, "jsonl": JsonLinesSink, "parquet": ParquetSink}
    return sinks[form](write)
