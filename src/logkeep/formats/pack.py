"""Record sections compressed as brokers and consumers of every kind read them: the counterpart of `unpack`.

gzip is one member, zstd one frame, snappy one bare block: Java's reader takes it for what it is, as do librdkafka and
its relatives. lz4 is written here as a frame of independent blocks of 64 KiB, since Kafka's own reader refuses blocks
that depend on each other, which is what Arrow writes.

The same bytes give the same block, as long as the library is the same.
"""

import struct

import numpy as np
import pyarrow as pa

from logkeep.formats.kafka_log import CODECS
from logkeep.formats.record_kernels import Bytes

_LEVELS = {"gzip": 6, "zstd": 3}
"""Those of Kafka's own producers."""
_LZ4_HEAD = bytes.fromhex("04224d18604082")
"""Magic; version 1 with independent blocks, no checksums; blocks of up to 64 KiB; checksum of these two bytes."""
_LZ4_BLOCK_BYTES = 64 << 10
_LZ4_STORED = 1 << 31
_LZ4_END = bytes(4)


def pack(codec: int, section: Bytes) -> Bytes:
    """The bytes of a record section under a codec of `CODECS`. Raises ValueError for one that is not there."""
    if not 0 <= codec < len(CODECS):
        raise ValueError(f"no codec {codec}")
    name = CODECS[codec]
    if name == "none":
        return section
    plain = pa.py_buffer(section)
    if name == "lz4":
        return np.frombuffer(_lz4_frame(plain), np.uint8)
    return np.frombuffer(_codec(name).compress(plain), np.uint8)


def _codec(name: str) -> pa.Codec:
    return pa.Codec(name, compression_level=_LEVELS[name]) if name in _LEVELS else pa.Codec(name)


def _lz4_frame(plain: pa.Buffer) -> bytes:
    codec, parts = pa.Codec("lz4_raw"), [_LZ4_HEAD]
    for at in range(0, plain.size, _LZ4_BLOCK_BYTES):
        piece = plain.slice(at, min(_LZ4_BLOCK_BYTES, plain.size - at))
        block = codec.compress(piece)
        if block.size < piece.size:
            parts += [struct.pack("<I", block.size), block]
        else:
            parts += [struct.pack("<I", piece.size | _LZ4_STORED), piece]
    return b"".join([*parts, _LZ4_END])
