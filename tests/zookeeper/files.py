"""The files that a real server wrote, read by a small reader that shares nothing with the product but the values."""

import gzip
import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.names import FileKind, Packing, parse_name
from logkeep.formats.zookeeper.snapshot import Ending, SnapshotReader
from logkeep.zookeeper.tree import Tree, tree_of

_XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)


def logs(log_dir: Path) -> list[Path]:
    return _named(log_dir, FileKind.LOG)


def snapshots(data_dir: Path) -> list[Path]:
    return _named(data_dir, FileKind.SNAPSHOT)


def _named(directory: Path, kind: FileKind) -> list[Path]:
    """By zxid."""
    parsed = [(parse_name(path.name), path) for path in (directory / "version-2").iterdir()]
    return [path for _, path in sorted((name.zxid, path) for name, path in parsed if name and name.kind is kind)]


def bodies(log_dir: Path) -> Iterator[bytes]:
    """Of all records of all logs, in their order."""
    for path in logs(log_dir):
        yield from bodies_of(path)


def bodies_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as log:
        assert log.read(16) == struct.pack(">4siq", b"ZKLG", 2, 0)
        while len(head := log.read(12)) == 12:
            checksum, size = struct.unpack(">qi", head)
            if size == 0:
                return
            body = log.read(size)
            assert zlib.adler32(body) == checksum
            assert log.read(1) == b"B"
            yield body


def plain(path: Path) -> io.BytesIO:
    """The bytes of a snapshot as they were before they were packed."""
    name = parse_name(path.name)
    assert name is not None
    packed = path.read_bytes()
    if name.packing is Packing.GZIP:
        try:
            return io.BytesIO(gzip.decompress(packed))
        except EOFError as error:
            raise Damaged("cut off", subject=path.name) from error
    return io.BytesIO(_unsnapped(packed) if name.packing is Packing.SNAPPY else packed)


def _unsnapped(packed: bytes) -> bytes:
    assert packed[:16] == _XERIAL
    codec, position, pieces = pyarrow.Codec("snappy"), 16, []
    while position < len(packed):
        (size,) = struct.unpack_from(">i", packed, position)
        block = packed[position + 4 : position + 4 + size]
        pieces.append(codec.decompress(block, _length(block), asbytes=True))
        position += 4 + size
    return b"".join(pieces)


def _length(block: bytes) -> int:
    """A snappy block begins with its plain size, seven bits in a byte, the lowest first."""
    size = shift = 0
    for byte in block:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return size


def whole_snapshots(data_dir: Path, *, most_cut: int) -> Iterator[tuple[str, Tree, Ending]]:
    """Those that the server could finish: each end of a server may have cut one."""
    cut = 0
    for path in snapshots(data_dir):
        try:
            tree, ending = loaded(path)
        except Damaged:
            cut += 1
            continue
        yield path.name, tree, ending
    assert cut <= most_cut, "snapshots cannot be read that were finished"


def loaded(path: Path) -> tuple[Tree, Ending]:
    """The raw tree of a snapshot, fuzzy as it may be, and what stands behind it; every seal was compared."""
    reader = SnapshotReader(plain(path))
    tree = tree_of(reader.sessions(), reader.acls(), reader.nodes())
    name = parse_name(path.name)
    assert name is not None
    tree.zxid = name.zxid
    return tree, reader.ending()
