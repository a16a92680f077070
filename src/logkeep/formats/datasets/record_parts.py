"""Parts of a buffer as the Arrow form of records: how decoders of other formats make their record batches."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from logkeep.formats.datasets.arrow import HEADER, HEADERS, SCHEMA, binary_column
from logkeep.formats.kafka.record_kernels import Bytes, Longs


@dataclass(frozen=True)
class BytesAt:
    """Byte strings in a buffer: where each begins, and its size (-1: null)."""

    starts: Longs
    sizes: Longs

    def column(self, data: Bytes) -> pa.Array:
        return binary_column(data, self.starts, self.sizes)


def record_batch(
    data: Bytes,
    offsets: Longs,
    times_ms: Longs,
    kinds: npt.NDArray[np.int8],
    keys: BytesAt,
    values: BytesAt,
    headers: pa.Array,
) -> pa.RecordBatch:
    """Records of a buffer of less than 2 GiB; all columns are copies."""
    numbers = ((SCHEMA.field(0).type, offsets), (SCHEMA.field(1).type, times_ms), (SCHEMA.field(2).type, kinds))
    columns = [pa.Array.from_buffers(of, len(some), [None, pa.py_buffer(some.tobytes())]) for of, some in numbers]
    return pa.RecordBatch.from_arrays([*columns, keys.column(data), values.column(data), headers], schema=SCHEMA)


def headers_column(data: Bytes, counts: Longs, names: BytesAt, values: BytesAt) -> pa.Array:
    """The headers of each record; `counts` says how many of the names and values are its own."""
    pairs = pa.StructArray.from_arrays([names.column(data), values.column(data)], fields=list(HEADER))
    borders = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=borders[1:])
    return pa.Array.from_buffers(HEADERS, len(counts), [None, pa.py_buffer(borders)], children=[pairs])
