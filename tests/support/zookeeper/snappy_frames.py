"""Bytes packed as Java's snappy library frames them."""

import struct

import pyarrow as pa


def snapped(plain: bytes, block_bytes: int = 32 << 10) -> bytes:
    blocks = [plain[at : at + block_bytes] for at in range(0, len(plain), block_bytes)]
    packed = [pa.Codec("snappy").compress(block, asbytes=True) for block in blocks]
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(p)) + p for p in packed)
