"""Throws bytes at the readers of ZooKeeper's files until a number is reached; prints what came of it.

Three numbers: logs and snapshots in which something good was found, those that were found whole, and by how many MiB
the process grew on the way. Run with NUMBA_BOUNDSCHECK=1: an index out of bounds then raises, where it would read
foreign memory otherwise.
"""

import gzip
import io
import random
import resource
import struct
import sys

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.jit import compile_from_now_on
from logkeep.formats.zookeeper import txnlog
from logkeep.formats.zookeeper.compression import opened
from logkeep.formats.zookeeper.names import SnapshotPacking
from logkeep.formats.zookeeper.snapshot import NodeRow, SnapshotReader
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Acl, CloseSession, Create, SetData, Transaction, decode
from logkeep.zookeeper.model.tree import Tree, new_tree, tree_of
from tests.support.zookeeper.encoding import body, log_of, record
from tests.support.zookeeper.snappy_frames import snapped

NUMBERS = (-2, -1, 0, 1, 31, 32, 64, 0x7FFFFFFF, -0x80000000, 1 << 20, 1 << 28)


def _mutated(chance: random.Random, data: bytearray, times: int) -> bytes:
    for _ in range(times):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(6)
        if kind == 0:
            data[at : at + 4] = struct.pack(">i", chance.choice(NUMBERS))
        elif kind == 1:
            data[at : at + chance.randrange(9)] = chance.randbytes(chance.randrange(9))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            data[at : at + 60] = bytes(len(data[at : at + 60]))
        elif kind == 4:
            data[at:at] = b"\0\0\0\0" * chance.randrange(40) + b"B" * chance.randrange(40)
        elif data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
    return bytes(data)


def _transaction(chance: random.Random, zxid: int) -> Transaction:
    size = chance.choice((0, 3, 20, 20, 20, 3000))
    path = b"/n%d" % chance.randrange(5)
    kind, change = chance.choice(
        (
            (1, Create(path, chance.randbytes(size), OPEN_ACL, False, 1)),
            (5, SetData(path, chance.randbytes(size), 1)),
            (-11, CloseSession((path,))),
        )
    )
    return Transaction(1, 2, zxid, 3, kind, change, chance.choice((None, 5)))


def _log(chance: random.Random) -> bytes:
    """A body is broken before it is summed, now and then: its record is good, and the transaction is none."""
    records = []
    for zxid in range(1, chance.randrange(2, 9)):
        written = body(_transaction(chance, zxid))
        if chance.random() < 0.1:
            written = written[:32] + _mutated(chance, bytearray(written[32:]), 1)
        records.append(record(written))
    log = bytearray(log_of(records, chance.choice((0, 7, 300))))
    return _mutated(chance, log, chance.choice((0, 1, 1, 2, 4)))


def _snapshot(chance: random.Random) -> bytes:
    nodes = [NodeRow(b"/%d" % n, chance.randbytes(30), -1, *range(9)) for n in range(chance.randrange(6))]
    root = NodeRow(b"", None, 1, *range(9))
    pieces = exact_snapshot({1: 2}, {1: (Acl(1, b"a", b"b"),)}, [root, *nodes], zxid=9, digest=chance.choice((None, 1)))
    return _mutated(chance, bytearray(b"".join(pieces)), chance.choice((0, 1, 1, 2)))


def _read_log(chance: random.Random, log: bytes) -> tuple[bool, bool]:
    chunk = chance.choice((64, 100, 1 << 16))
    found = txnlog.scan(io.BytesIO(log), deep=True, chunk_bytes=chunk)
    assert found.size_bytes <= len(log)
    txnlog.scan(io.BytesIO(log), start_at=chance.randrange(1, len(log) + 9), chunk_bytes=chunk)
    _replay(new_tree(with_config=True), log)
    return found.records > 0 or bool(found.behind), not found.damage


def _replay(tree: Tree, log: bytes) -> None:
    try:
        for each in txnlog.bodies(io.BytesIO(log)):
            tree.apply(decode(each))
    except (Damaged, FormatTooNew):
        pass


def _packed(snapshot: bytes, packing: SnapshotPacking) -> bytes:
    if packing is SnapshotPacking.PLAIN:
        return snapshot
    return gzip.compress(snapshot) if packing is SnapshotPacking.GZIP else snapped(snapshot)


def _read_snapshot(chance: random.Random, snapshot: bytes) -> tuple[bool, bool]:
    """Packed by one of the ways, and broken again then."""
    packing = chance.choice(tuple(SnapshotPacking))
    packed = _mutated(chance, bytearray(_packed(snapshot, packing)), chance.choice((0, 0, 1)))
    some = False
    try:
        reader = SnapshotReader(opened(io.BytesIO(packed), packing))
        sessions, acls = reader.sessions(), reader.acls()
        some = True
        tree_of(sessions, acls, reader.nodes())
        reader.ending()
    except Damaged:
        return some, False
    return some, True


def fuzz(count: int, seed: int) -> tuple[int, int]:
    """How many had something good, and how many were whole."""
    chance, some, whole = random.Random(seed), 0, 0
    for number in range(count):
        if number % 3:
            good, perfect = _read_log(chance, _log(chance))
        else:
            good, perfect = _read_snapshot(chance, _snapshot(chance))
        some, whole = some + good, whole + perfect
    return some, whole


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    compile_from_now_on()
    fuzz(30, 0)
    before = _peak_mib()
    print(*fuzz(int(sys.argv[1]), int(sys.argv[2])), _peak_mib() - before)
