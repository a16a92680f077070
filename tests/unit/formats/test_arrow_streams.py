"""Bytes that Arrow unpacks in pieces, also many that it cannot unpack."""

import io
import tracemalloc

import pyarrow as pa
import pytest

from logkeep.formats.arrow_streams import unpacked_pieces

PLAIN = bytes(range(256)) * 4096
PACKED = pa.Codec("zstd").compress(PLAIN, asbytes=True)


@pytest.mark.parametrize("packed", [PACKED, memoryview(PACKED), io.BytesIO(PACKED)], ids=["bytes", "view", "file"])
def test_pieces_are_the_plain_bytes(packed: object) -> None:
    pieces = list(unpacked_pieces(packed, "zstd", 100_000))
    assert (b"".join(pieces), len(pieces)) == (PLAIN, 11)


def test_damage_keeps_no_memory() -> None:
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        for _ in range(50):
            with pytest.raises(OSError, match="ZSTD"):
                list(unpacked_pieces(b"no frame", "zstd", 1 << 20))
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()
    assert pa.total_allocated_bytes() - before < 4 << 20
