"""Avro's container files: header, blocks, codecs. Bytes in, bytes out.

    header   "Obj" 01 | metadata: a map of texts to bytes | sync marker, 16 bytes
    block    number of records | size of the data | data | sync marker      numbers are zig-zag varints

The data of a block is its records, compressed as one by `avro.codec`: nothing, raw deflate, snappy with a CRC-32 of the
plain bytes after it (big-endian), or one zstd frame. The sync marker of ours is made of topic, partition and first
offset, so that the same records make the same bytes. Deflate is ISA-L's: at four times the speed of zlib's level 1
it packs into fewer bytes, and it unpacks twice as fast. The bytes it packs to depend on the kind of processor.
"""

import hashlib
import zlib
from enum import StrEnum

import pyarrow as pa
from isal import isal_zlib

from logkeep.formats.datasets.avro.schemas import LABELS, AvroSchema, schema_text

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
SCHEMA_KEY, CODEC_KEY, LABEL_KEY = "avro.schema", "avro.codec", "logkeep.format"
DEFLATE_LEVEL = ZSTD_LEVEL = 1
"""The fastest ones: the disk should limit a backup, not the codec."""


class AvroCodec(StrEnum):
    """How blocks are compressed; the values of `avro.codec`."""

    NULL = "null"
    DEFLATE = "deflate"
    SNAPPY = "snappy"
    ZSTANDARD = "zstandard"


def sync_marker(topic: str, partition: int, first_offset: int) -> bytes:
    return hashlib.sha256(f"{topic}\0{partition}\0{first_offset}".encode()).digest()[:SYNC_BYTES]


def file_header(schema: AvroSchema, codec: AvroCodec, sync: bytes) -> bytes:
    metadata = {SCHEMA_KEY: schema_text(schema), CODEC_KEY: str(codec), LABEL_KEY: LABELS[schema]}
    entries = b"".join(piece(key.encode()) + piece(value.encode()) for key, value in metadata.items())
    return MAGIC + number(len(metadata)) + entries + number(0) + sync


def block(codec: AvroCodec, records: int, plain: memoryview, sync: bytes) -> tuple[bytes | memoryview, ...]:
    """One block of records, in pieces; without a codec one of them is `plain` itself."""
    data = _packed(codec, plain)
    return number(records), number(len(data)), data, sync


def _packed(codec: AvroCodec, plain: memoryview) -> bytes | memoryview:
    match codec:
        case AvroCodec.NULL:
            return plain
        case AvroCodec.DEFLATE:
            return isal_zlib.compress(plain, DEFLATE_LEVEL, wbits=-15)
        case AvroCodec.SNAPPY:
            packed: bytes = pa.Codec("snappy").compress(plain, asbytes=True)
            return packed + zlib.crc32(plain).to_bytes(4, "big")
        case AvroCodec.ZSTANDARD:
            frame: bytes = pa.Codec("zstd", compression_level=ZSTD_LEVEL).compress(plain, asbytes=True)
            return frame


def number(value: int) -> bytes:
    """As a zig-zag varint."""
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    return bytes((*out, rest))


def piece(data: bytes) -> bytes:
    """With its length in front."""
    return number(len(data)) + data
