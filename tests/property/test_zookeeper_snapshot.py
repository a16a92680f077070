"""Snapshots come back as they were written, and every flipped bit and every cut of them is noticed."""

import io
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.snapshot import NodeRow, SnapshotReader
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.transactions import Acls
from tests.support.zookeeper import strategies as drawn

Drawn = tuple[dict[int, int], dict[int, Acls], list[NodeRow], int, int | None]
TREES = st.tuples(
    drawn.sessions,
    drawn.acl_maps,
    st.lists(drawn.nodes, max_size=6),
    st.integers(1, (1 << 63) - 1),
    drawn.digests,
)


def written(tree: Drawn) -> bytes:
    sessions, acls, nodes, zxid, digest = tree
    return b"".join(exact_snapshot(sessions, acls, nodes, zxid=zxid, digest=digest))


def read(snapshot: bytes) -> Drawn:
    reader = SnapshotReader(io.BytesIO(snapshot))
    sessions, acls, nodes = reader.sessions(), reader.acls(), list(reader.nodes())
    ending = reader.ending()
    assert ending.size_bytes == len(snapshot)
    assert ending.last_processed == (ending.digest_zxid or None)
    return sessions, acls, nodes, ending.digest_zxid, ending.digest


@given(TREES)
def test_a_snapshot_is_read_as_it_was_written(tree: Drawn) -> None:
    *values, zxid, digest = tree
    assert read(written(tree)) == (*values, zxid if digest is not None else 0, digest)


@given(TREES)
@settings(max_examples=5)
def test_every_flipped_bit_is_noticed(tree: Drawn) -> None:
    snapshot = bytearray(written(tree))
    for bit in range(8 * len(snapshot)):
        snapshot[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Damaged):
            read(bytes(snapshot))
        snapshot[bit // 8] ^= 1 << bit % 8


@given(TREES)
@settings(max_examples=20)
def test_a_snapshot_cut_anywhere_is_noticed_unless_it_is_then_one_of_an_older_version(tree: Drawn) -> None:
    """3.9 adds a block and a seal to what 3.6 writes, and 3.6 to what 3.5 writes."""
    snapshot = written(tree)
    older = [size for size in range(len(snapshot)) if _sealed(snapshot[:size])]
    assert len(older) <= 2
    for size in set(range(len(snapshot))) - set(older):
        with pytest.raises(Damaged):
            read(snapshot[:size])
    with pytest.raises(Damaged, match=r"after the last checksum|ends too early|does not match"):
        read(snapshot + b"\0")


def _sealed(snapshot: bytes) -> bool:
    begin, adler, end = snapshot[:-13], snapshot[-13:-5], snapshot[-5:]
    return end == b"\0\0\0\1/" and len(begin) > 24 and int.from_bytes(adler) == zlib.adler32(begin)
