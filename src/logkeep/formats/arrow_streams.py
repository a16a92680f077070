"""Compressed bytes, unpacked by Arrow in pieces.

Arrow's own `read` never frees the memory of a piece that it cannot unpack: a process that reads many damaged files
would grow. So each piece is unpacked into memory that is ours.
"""

from collections.abc import Iterator
from typing import Any


def unpacked_pieces(packed: Any, codec: str, piece_bytes: int) -> Iterator[bytes]:
    """`packed`: bytes, or a file. Never an empty piece. Raises OSError and pyarrow's errors for damage."""
    import pyarrow as pa  # noqa: PLC0415 - heavy, and callers are imported without compressed bytes too

    source = pa.PythonFile(packed, mode="r") if hasattr(packed, "read") else pa.BufferReader(pa.py_buffer(packed))
    room = memoryview(pa.allocate_buffer(piece_bytes))
    with pa.CompressedInputStream(source, codec) as stream:
        while size := stream.readinto(room):
            yield bytes(room[:size])
