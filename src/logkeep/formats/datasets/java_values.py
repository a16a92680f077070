"""Header values that Java serialised, brought back to the bytes they were: strings, byte arrays, numbers, booleans.

    ac ed 00 05 | 74 size u16, modified UTF-8        a string
                | 70                                 null
                | 75 72 … size i32, bytes            a byte array
                | 73 72 … value                      a boxed number or boolean

The tool guessed types from text, so numbers and booleans become text again. Everything else is kept as it is.
"""

import struct
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from logkeep.formats.datasets.arrow import HEADER, HEADERS, binary_column
from logkeep.formats.datasets.binary_spans import binary_spans
from logkeep.formats.kafka.record_kernels import Bytes, Longs
from logkeep.formats.kafka.records import Flags

_STREAM = bytes.fromhex("aced0005")
_STRING = _STREAM + b"\x74"
_NULL = _STREAM + b"\x70"
_ARRAY = _STREAM + bytes.fromhex("757200025b42acf317f8060854e00200007870")
_NUMBER = b"\x78\x72\x00\x10java.lang.Number" + bytes.fromhex("86ac951d0b94e08b0200007870")


def _boxed(name: str, serial: str, kind: bytes, number: bool = True) -> bytes:
    head = b"\x73\x72" + struct.pack(">H", len(name)) + name.encode() + bytes.fromhex(serial) + b"\x02\x00\x01"
    return _STREAM + head + kind + b"\x00\x05value" + (_NUMBER if number else b"\x78\x70")


def _text(form: str) -> Callable[[bytes], bytes]:
    return lambda data: str(struct.unpack(form, data)[0]).encode()


def _single(data: bytes) -> bytes:
    return str(np.frombuffer(data, ">f4")[0]).encode()


_BOXES: dict[bytes, tuple[int, Callable[[bytes], bytes]]] = {
    _boxed("java.lang.Byte", "9c4e6084ee50f51c", b"B"): (1, _text(">b")),
    _boxed("java.lang.Short", "684d37133460da52", b"S"): (2, _text(">h")),
    _boxed("java.lang.Integer", "12e2a0a4f7818738", b"I"): (4, _text(">i")),
    _boxed("java.lang.Long", "3b8be490cc8f23df", b"J"): (8, _text(">q")),
    _boxed("java.lang.Float", "daedc9a2db3cf0ec", b"F"): (4, _single),
    _boxed("java.lang.Double", "80b3c24a296bfb04", b"D"): (8, _text(">d")),
    _boxed("java.lang.Boolean", "cd207280d59cfaee", b"Z", number=False): (
        1,
        lambda data: b"true" if data != b"\0" else b"false",
    ),
}


def decoded(value: bytes) -> tuple[bytes | None, bool]:
    """The bytes that one value was, and whether it is one of the known forms."""
    if value == _NULL:
        return None, True
    if value.startswith(_STRING) and len(value) >= 7 and struct.unpack_from(">H", value, 5)[0] == len(value) - 7:
        return _from_modified(value[7:])
    if value.startswith(_ARRAY):
        rest = value[len(_ARRAY) :]
        if len(rest) >= 4 and struct.unpack_from(">i", rest)[0] == len(rest) - 4:
            return rest[4:], True
    for head, (size, read) in _BOXES.items():
        if value.startswith(head) and len(value) == len(head) + size:
            return read(value[len(head) :]), True
    return value, False


def _from_modified(data: bytes) -> tuple[bytes | None, bool]:
    """UTF-8 from Java's modified form: NUL takes two bytes there, other planes are pairs of surrogates."""
    try:
        text = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return text.encode("utf-16", "surrogatepass").decode("utf-16").encode(), True
    except UnicodeError:
        return _STRING + struct.pack(">H", len(data)) + data, False


def without_java(headers: pa.Array) -> tuple[pa.Array, int, int]:
    """The headers of records with decoded values; how many were decoded, and how many are kept as they are."""
    pairs = headers.values
    names, spans = pairs.field(0), binary_spans(pairs.field(1))
    plain = _plain_strings(spans.data, spans.starts, spans.sizes)
    starts, sizes = np.where(plain, spans.starts + 7, spans.starts), np.where(plain, spans.sizes - 7, spans.sizes)
    values = binary_column(spans.data, starts, sizes)
    others = np.flatnonzero(~plain & (spans.sizes >= 0))
    raw = 0
    if len(others):
        values, raw = _one_by_one(values, others)
    made = pa.StructArray.from_arrays([names, values], fields=list(HEADER))
    borders = pa.Array.from_buffers(pa.int32(), len(headers) + 1, [None, headers.buffers()[1]], offset=headers.offset)
    return pa.ListArray.from_arrays(borders, made, type=HEADERS), len(plain) - raw, raw


def _plain_strings(data: Bytes, starts: Longs, sizes: Longs) -> Flags:
    """Which values are strings without special characters: their bytes are the text itself."""
    long = sizes >= 7
    at = np.where(long, starts, 0)
    if len(data) < 7:
        return np.zeros(len(sizes), np.bool_)
    heads = data[np.minimum(at, len(data) - 7)[:, None] + np.arange(7)]
    size = heads[:, 5].astype(np.int64) << 8 | heads[:, 6]
    string = long & (heads[:, :5] == np.frombuffer(_STRING, np.uint8)).all(axis=1) & (size == sizes - 7)
    special = np.concatenate(([0], np.cumsum((data == 0xC0) | (data == 0xED))))
    ends, texts = np.minimum(at + np.maximum(sizes, 0), len(data)), np.minimum(at + 7, len(data))
    return np.asarray(string & (special[ends] == special[texts]), np.bool_)


def _one_by_one(values: pa.Array, rows: Longs) -> tuple[pa.Array, int]:
    """Few values in each archive differ: each is decoded once."""
    given = values.take(pa.array(rows)).dictionary_encode()
    found = [decoded(value) for value in given.dictionary.to_pylist()]
    raw = np.array([not good for _, good in found], np.bool_)[np.asarray(given.indices)]
    new = pa.array([value for value, _ in found], pa.binary()).take(given.indices)
    joined = pa.concat_arrays([values, new])
    order = np.arange(len(values))
    order[rows] = len(values) + np.arange(len(rows))
    return joined.take(pa.array(order)), int(raw.sum())
