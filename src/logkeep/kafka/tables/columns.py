"""Records as the columns of Spark's own Kafka source, in exactly the Arrow types that Spark expects.

Times are microseconds in UTC, whatever the session has; a time beyond what Spark can hold becomes its first or last
one. Names of headers are text there: bytes that are not UTF-8 become U+FFFD, as in Kafka's own client. A record
without headers has null, as Spark's source gives it.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logkeep.formats.datasets.arrow import validity

HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", HEADER)),
    "key_json": pa.string(),
    "value_json": pa.string(),
}
MakeJson = Callable[[str, pa.RecordBatch, str], pa.Array]
"""Decodes the keys or the values of records of a topic."""
_LAST_MS = (2**63 - 1) // 1000


def spark_columns(
    records: pa.RecordBatch, topic: str, partition: int, columns: Sequence[str], as_json: MakeJson | None = None
) -> pa.RecordBatch:
    """Records of one log, of the schema `formats.datasets.arrow.SCHEMA`."""
    size = records.num_rows
    make: dict[str, Callable[[], pa.Array]] = {
        "key": lambda: records["key"],
        "value": lambda: records["value"],
        "topic": lambda: pa.repeat(pa.scalar(topic, pa.string()), size),
        "partition": lambda: pa.repeat(pa.scalar(partition, pa.int32()), size),
        "offset": lambda: records["offset"],
        "timestamp": lambda: _microseconds(records["timestamp"]),
        "timestampType": lambda: _int32(records["timestamp_type"]),
        "headers": lambda: _headers(records["headers"]),
    }
    if as_json is not None:
        make |= {f"{name}_json": partial(as_json, topic, records, name) for name in ("key", "value")}
    schema = pa.schema([pa.field(name, TYPES[name]) for name in columns])
    return pa.RecordBatch.from_arrays([make[name]() for name in columns], schema=schema)


def _microseconds(times: pa.Array) -> pa.Array:
    ms = times.view(pa.int64()).to_numpy(zero_copy_only=True)
    us = np.maximum(np.minimum(ms, _LAST_MS), -_LAST_MS)  # `np.clip` first asks numpy for the limits of the type
    us *= 1000
    return pa.Array.from_buffers(TYPES["timestamp"], len(us), [None, pa.py_buffer(us)])


def _int32(numbers: pa.Array) -> pa.Array:
    """The same as `cast`, without its fixed cost."""
    wide = numbers.to_numpy(zero_copy_only=True).astype(np.int32)
    return pa.Array.from_buffers(pa.int32(), len(wide), [None, pa.py_buffer(wide)])


def _headers(headers: pa.Array) -> pa.Array:
    if not len(headers.flatten()):
        return pa.nulls(len(headers), TYPES["headers"])
    counts = pc.list_value_length(headers).to_numpy(zero_copy_only=True)
    borders = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=borders[1:])
    names, values = headers.flatten().flatten()
    pairs = pa.StructArray.from_arrays([_text(names), values], fields=list(HEADER))
    return pa.Array.from_buffers(
        TYPES["headers"], len(counts), [validity(counts > 0), pa.py_buffer(borders)], children=[pairs]
    )


def _text(names: pa.Array) -> pa.Array:
    """Names repeat: each different one is decoded once, where some are not UTF-8."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        different = names.dictionary_encode()
        texts = [name.decode(errors="replace") for name in different.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(different.indices)
