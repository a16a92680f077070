"""Files that Zeebe compressed before it stored them in S3, read as a stream."""

import bz2
import gzip
import io
import lzma
import zlib
from typing import BinaryIO, cast

from logkeep.errors import Damaged

_ARROW = {"zstd": "zstd", "lz4-framed": "lz4"}
KNOWN = frozenset({"gz", "bzip2", "xz", *_ARROW})


def decompressed(stored: BinaryIO, algorithm: str) -> BinaryIO:
    """The plain bytes of a stored file. `algorithm` must be one of `KNOWN`. Read it with `read_plain`."""
    if algorithm == "gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=stored))
    if algorithm == "bzip2":
        return cast(BinaryIO, bz2.BZ2File(stored))
    if algorithm == "xz":
        return cast(BinaryIO, lzma.LZMAFile(stored, format=lzma.FORMAT_XZ))
    import pyarrow as pa  # noqa: PLC0415 - heavy, and few stores need it

    return cast(BinaryIO, pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), _ARROW[algorithm]))


def read_plain(plain: BinaryIO, size: int, subject: str) -> bytes:
    """The next bytes, fewer only at the end. Raises Damaged."""
    found = io.BytesIO()
    try:
        while (wanted := size - found.tell()) and (piece := plain.read(wanted)):
            found.write(piece)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, OSError, ValueError) as error:
        raise Damaged(f"it cannot be decompressed: {error}"[:200], subject=subject) from error
    return found.getvalue()
