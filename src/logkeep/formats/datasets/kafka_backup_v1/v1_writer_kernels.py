"""The kernel that writes records in the format kafka-backup-v1."""

import numpy as np

from logkeep.formats.jit import inlined, kernel
from logkeep.formats.kafka.encode_kernels import copy
from logkeep.formats.kafka.record_kernels import U64, Bytes, Longs, Number


@inlined
def _put32(out: Bytes, at: np.uint64, number: Number) -> np.uint64:
    rest = U64(number)
    for byte in range(4):
        out[at + U64(byte)] = np.uint8((rest >> U64(24 - 8 * byte)) & U64(255))
    return at + U64(4)


@inlined
def _put64(out: Bytes, at: np.uint64, number: Number) -> np.uint64:
    rest = U64(number)
    for byte in range(8):
        out[at + U64(byte)] = np.uint8((rest >> U64(56 - 8 * byte)) & U64(255))
    return at + U64(8)


@inlined
def _put_bytes(data: Bytes, start: Number, size: Number, out: Bytes, at: np.uint64) -> np.uint64:
    """Length and bytes; the caller has checked that both fit."""
    at = _put32(out, at, size)
    if size <= 0:
        return at
    copy(data, U64(start), U64(size), out, at)
    return at + U64(size)


@inlined
def _inside(data: Bytes, start: Number, size: Number) -> bool:
    return bool(size <= 0 or (0 <= start <= data.shape[0] - size))


@kernel(lambda offsets, *rest: 60 * len(offsets) + 30 * len(rest[11]))
def write_records(
    offsets: Longs,
    types: Longs,
    times: Longs,
    keys: Bytes,
    key_at: Longs,
    key_size: Longs,
    values: Bytes,
    value_at: Longs,
    value_size: Longs,
    borders: Longs,
    names: Bytes,
    name_at: Longs,
    name_size: Longs,
    header_values: Bytes,
    header_at: Longs,
    header_size: Longs,
    out: Bytes,
    ends: Longs,
) -> int:
    """Write each record so that it ends at its end. Returns how many were written: all, unless sizes do not fit."""
    start = np.int64(0)
    for row in range(offsets.shape[0]):
        end = ends[row]
        size = 24 + max(key_size[row], 0) + max(value_size[row], 0)
        if types[row] >= 0:
            size += 8
        first, after = borders[row], borders[row + 1]
        if first < 0 or after < first or after > name_at.shape[0] or after > header_at.shape[0]:
            return row
        fits = _inside(keys, key_at[row], key_size[row]) and _inside(values, value_at[row], value_size[row])
        for header in range(first, after):
            size += 8 + max(name_size[header], 0) + max(header_size[header], 0)
            fits = fits and _inside(names, name_at[header], name_size[header])
            fits = fits and _inside(header_values, header_at[header], header_size[header])
        if not fits or end > out.shape[0] or start + size != end:
            return row
        at = _put64(out, U64(start), offsets[row])
        at = _put32(out, at, types[row])
        if types[row] >= 0:
            at = _put64(out, at, times[row])
        at = _put_bytes(keys, key_at[row], key_size[row], out, at)
        at = _put_bytes(values, value_at[row], value_size[row], out, at)
        at = _put32(out, at, after - first)
        for header in range(first, after):
            at = _put_bytes(names, name_at[header], name_size[header], out, at)
            at = _put_bytes(header_values, header_at[header], header_size[header], out, at)
        start = end
    return len(offsets)
