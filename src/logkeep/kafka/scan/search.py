"""Selects records by key, content and headers, on whole columns. Pure."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logkeep.formats.datasets.arrow import arrow_records, binary_column
from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.records import Flags, RecordColumns

_COMPARED_BYTES = 64
"""How many bytes of a key are compared at a time."""


@dataclass(frozen=True)
class RecordSearch:
    """A search for records: a record must fulfil all conditions that are set."""

    key: bytes | None = None
    contains: bytes | None = None
    """In the key or the value."""
    header: bytes | None = None
    """The name of a header."""
    header_value: bytes | None = None
    """Its value; None: any."""

    @property
    def everything(self) -> bool:
        return self.key is None and self.contains is None and self.header is None

    def __call__(self, records: RecordColumns) -> RecordColumns:
        found = records
        if self.key is not None:
            found = found.chosen(_with_key(found, self.key))
        if self.contains is not None and len(found):
            found = found.chosen(_containing(found, self.contains))
        if self.header is not None and len(found):
            headers = arrow_records(found, ("headers",)).column(0)
            found = found.chosen(_rows_with_header(headers, self.header, self.header_value))
        return found

    def in_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same for records that are Arrow already."""
        wanted = np.ones(batch.num_rows, np.bool_)
        if self.key is not None:
            wanted &= _flags(pc.equal(batch["key"], pa.scalar(self.key, pa.binary())))
        if self.contains is not None:
            wanted &= _flags(pc.match_substring(batch["key"], self.contains)) | _flags(
                pc.match_substring(batch["value"], self.contains)
            )
        if self.header is not None:
            wanted &= _rows_with_header(batch["headers"], self.header, self.header_value)
        return batch if wanted.all() else batch.take(pa.array(np.flatnonzero(wanted)))


def _with_key(records: RecordColumns, key: bytes) -> Flags:
    rows = np.flatnonzero(records.spans[:, k.KEY_SIZE] == len(key))
    starts, wanted = records.spans[:, k.KEY_AT].astype(np.int64), np.frombuffer(key, np.uint8)
    for at in range(0, len(key), _COMPARED_BYTES):
        piece = wanted[at : at + _COMPARED_BYTES]
        places = starts[rows][:, None] + np.arange(at, at + len(piece))
        rows = rows[(records.data[places] == piece).all(axis=1)]
    found = np.zeros(len(records), np.bool_)
    found[rows] = True
    return found


def _containing(records: RecordColumns, text: bytes) -> Flags:
    """The bytes of all records are searched first: most parts of a log do not hold the text anywhere."""
    spans = records.spans.astype(np.int64)
    starts = spans[:, (k.KEY_AT, k.VALUE_AT)]
    sizes = np.maximum(spans[:, (k.KEY_SIZE, k.VALUE_SIZE)], 0)
    there = sizes > 0
    if not there.any():
        return np.full(len(records), False) if text else (spans[:, k.VALUE_SIZE] >= 0) | (spans[:, k.KEY_SIZE] >= 0)
    low, high = int(starts[there].min()), int((starts + sizes)[there].max())
    if text not in records.data[low:high].tobytes():
        return np.zeros(len(records), np.bool_)
    found = np.zeros(len(records), np.bool_)
    for column, size in ((k.KEY_AT, k.KEY_SIZE), (k.VALUE_AT, k.VALUE_SIZE)):
        texts = binary_column(records.data, spans[:, column], spans[:, size])
        found |= _flags(pc.match_substring(texts, text))
    return found


def _rows_with_header(headers: pa.ListArray, name: bytes, value: bytes | None) -> Flags:
    pairs = headers.flatten()
    fits = _flags(pc.equal(pairs.field("key"), pa.scalar(name, pa.binary())))
    if value is not None:
        fits &= _flags(pc.equal(pairs.field("value"), pa.scalar(value, pa.binary())))
    rows = pc.list_parent_indices(headers).to_numpy()[fits]
    found = np.zeros(len(headers), np.bool_)
    found[rows] = True
    return found


def _flags(found: pa.BooleanArray) -> Flags:
    flags: Flags = found.fill_null(False).to_numpy(zero_copy_only=False)
    return flags
