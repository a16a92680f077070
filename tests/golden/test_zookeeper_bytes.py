"""Bytes of ZooKeeper's formats, put down by hand from their description."""

import io
import struct
import zlib

import pytest

from logkeep.errors import Damaged
from logkeep.formats.zookeeper import txnlog
from logkeep.formats.zookeeper.jute import JuteReader, packed_buffer, packed_int, packed_long
from logkeep.formats.zookeeper.snapshot import NodeRow, SnapshotReader, SnapshotTail
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.transactions import (
    Acl,
    Change,
    CheckVersion,
    CloseSession,
    Create,
    CreateSession,
    Delete,
    FailedTxn,
    Multi,
    MultiPart,
    SetAcl,
    SetData,
    decode,
)

HEAD = "0100000000000abc 00000007 0000000200000001 0000018bcfe56800"
"""Session, cxid, zxid, time; a kind follows."""
PATH = "00000002 2f61"
OPEN = "00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65"
DIGEST = "00000002 8000000000000001"
ANYONE = (Acl(31, b"world", b"anyone"),)

CASES: dict[str, tuple[str, Change]] = {
    "create": (f"00000001 {PATH} 00000001 78 {OPEN} 01 00000003", Create(b"/a", b"x", ANYONE, True, 3)),
    "create of 3.3": (f"00000001 {PATH} 00000001 78 {OPEN} 00", Create(b"/a", b"x", ANYONE, False, -1)),
    "create2, null": (f"0000000f {PATH} ffffffff 00000000 00 00000000", Create(b"/a", None, (), False, 0)),
    "create, ACLs null": (f"00000001 {PATH} 00000000 ffffffff 00 00000000", Create(b"/a", b"", ANYONE, False, 0)),
    "container": (f"00000013 {PATH} 00000000 {OPEN} 00000001", Create(b"/a", b"", ANYONE, False, 1, True)),
    "ttl": (
        f"00000015 {PATH} 00000000 {OPEN} 00000001 00000000000003e8",
        Create(b"/a", b"", ANYONE, False, 1, ttl_ms=1000),
    ),
    "delete": (f"00000002 {PATH}", Delete(b"/a")),
    "delete of a container": (f"00000014 {PATH}", Delete(b"/a")),
    "set data": (f"00000005 {PATH} 00000000 00000009", SetData(b"/a", b"", 9)),
    "set data of the root": ("00000005 00000001 2f ffffffff 00000001", SetData(b"", None, 1)),
    "reconfig": (f"00000010 {PATH} 00000001 78 00000001", SetData(b"/a", b"x", 1)),
    "set acl": (
        f"00000007 {PATH} 00000001 00000003 00000006 646967657374 00000003 753a70 00000004",
        SetAcl(b"/a", (Acl(3, b"digest", b"u:p"),), 4),
    ),
    "failed": ("ffffffff ffffff9b", FailedTxn(-101)),
    "session begins": ("fffffff6 00007530", CreateSession(30000)),
    "session ends": ("fffffff5", CloseSession(None)),
    "session ends, no paths": ("fffffff5 00000000", CloseSession(())),
    "session ends, one path": ("fffffff5 00000001 00000004 2f612f62", CloseSession((b"/a/b",))),
    "session ends, two paths": ("fffffff5 00000002 00000002 2f61 00000002 2f62", CloseSession((b"/a", b"/b"))),
    "multi": (
        f"0000000e 00000002 0000000d 0000000a {PATH} 00000005 00000002 00000006 {PATH}",
        Multi((MultiPart(13, CheckVersion(b"/a", 5)), MultiPart(2, Delete(b"/a")))),
    ),
    "multi that failed": (
        f"0000000e 00000002 00000002 00000006 {PATH} ffffffff 00000004 ffffff9b",
        Multi((MultiPart(2, Delete(b"/a")), MultiPart(-1, FailedTxn(-101)))),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_transactions(name: str) -> None:
    text, change = CASES[name]
    found = decode(bytes.fromhex(f"{HEAD} {text}"))
    assert found[:4] == (0x0100000000000ABC, 7, 0x200000001, 1_700_000_000_000)
    assert (found.change, found.digest) == (change, None)
    with_digest = decode(bytes.fromhex(f"{HEAD} {text} {DIGEST}"))
    assert (with_digest.change, with_digest.digest) == (change, 0x8000000000000001)


def test_a_multi_with_a_failed_part_changed_nothing() -> None:
    assert isinstance(CASES["multi"][1], Multi)
    assert CASES["multi"][1].applied
    assert isinstance(CASES["multi that failed"][1], Multi)
    assert not CASES["multi that failed"][1].applied


def test_a_digest_of_another_version_is_not_compared() -> None:
    assert decode(bytes.fromhex(f"{HEAD} 00000002 {PATH} 00000003 8000000000000001")).digest is None


LOG = bytes.fromhex(
    """
    5a4b4c47 00000002 0000000000000000
    00000000 51350812 00000024
        0100000000000abc 00000007 0000000200000001 0000018bcfe56800 fffffff6 00007530
    42
    00000000 00000000 00000000
    """
)


def test_a_log() -> None:
    found = txnlog.scan(io.BytesIO(LOG))
    assert (found.size_bytes, found.records, found.first_zxid, found.damage) == (65, 1, 0x200000001, ())
    assert (found.last_adler, found.max_time_ms) == (0x51350812, 1_700_000_000_000)
    assert txnlog.header() == LOG[:16]
    assert [decode(body).change for body in txnlog.bodies(io.BytesIO(LOG))] == [CreateSession(30000)]


def test_columns_of_a_log() -> None:
    (columns,) = txnlog.tables(io.BytesIO(LOG))
    names = ("zxid", "time_ms", "session", "cxid", "kind", "body_at", "body_bytes", "adler")
    assert {name: getattr(columns, name).tolist() for name in names} == {
        "zxid": [0x200000001],
        "time_ms": [1_700_000_000_000],
        "session": [0x0100000000000ABC],
        "cxid": [7],
        "kind": [-10],
        "body_at": [28 - columns.position],
        "body_bytes": [36],
        "adler": [0x51350812],
    }


TREE = """
    5a4b534e 00000002 ffffffffffffffff
    00000001 0000000000000005 00007530
    00000001 0000000000000001 00000001 00000003 00000006 646967657374 00000003 753a70
    00000000 ffffffff ffffffffffffffff
        0000000000000000 0000000000000000 0000000000000000 0000000000000000
        00000000 00000001 00000000 0000000000000000 0000000000000009
    00000002 2f61 00000001 78 0000000000000001
        0000000000000009 0000000000000009 0000018bcfe56800 0000018bcfe56800
        00000000 00000000 00000002 0000000000000005 0000000000000009
    00000001 2f
"""
NODES = [
    NodeRow(b"", None, -1, 0, 0, 0, 0, 0, 1, 0, 0, 9),
    NodeRow(b"/a", b"x", 1, 9, 9, 1_700_000_000_000, 1_700_000_000_000, 0, 0, 2, 5, 9),
]
DIGEST_BLOCK = "0000000000000009 00000002 ffffffffffffffff"


def sealed(*blocks: str) -> bytes:
    """Each block with the Adler-32 of everything before it."""
    data = b""
    for block in blocks:
        data += bytes.fromhex(block)
        data += struct.pack(">q", zlib.adler32(data)) + b"\0\0\0\1/"
    return data


@pytest.mark.parametrize(
    ("blocks", "ending"),
    [
        ((), SnapshotTail(242, 1)),
        ((DIGEST_BLOCK,), SnapshotTail(275, 2, 9, (1 << 64) - 1)),
        ((DIGEST_BLOCK, "000000000000000a"), SnapshotTail(296, 3, 9, (1 << 64) - 1, 10)),
        (("0000000000000000 00000002 0000000000000000",), SnapshotTail(275, 2)),
        (("000000000000000a",), SnapshotTail(263, 2, last_processed=10)),
        (("0000000000000009 00000001 00000004 61626364",), SnapshotTail(275, 2, 9)),
        (("0000000000000009 00000003 0000000000000001",), SnapshotTail(275, 2, 9)),
    ],
    ids=["3.4", "3.6", "3.9", "no digest", "3.9 with digests turned off", "first version of the digest", "a later one"],
)
def test_a_snapshot(blocks: tuple[str, ...], ending: SnapshotTail) -> None:
    reader = SnapshotReader(io.BytesIO(sealed(TREE, *blocks)))
    assert reader.sessions() == {5: 30000}
    assert reader.acls() == {1: (Acl(3, b"digest", b"u:p"),)}
    assert list(reader.nodes()) == NODES
    assert reader.ending() == ending


def test_snapshots_that_are_written() -> None:
    acls = {1: (Acl(3, b"digest", b"u:p"),)}
    assert b"".join(exact_snapshot({5: 30000}, acls, NODES, zxid=9, digest=None)) == sealed(TREE)
    exact = b"".join(exact_snapshot({5: 30000}, acls, NODES, zxid=9, digest=(1 << 64) - 1))
    assert exact == sealed(TREE, DIGEST_BLOCK, "0000000000000009")


def test_where_a_snapshot_may_be_fuzzy() -> None:
    assert SnapshotTail(1, 1).fuzzy_end(5, 9) is None
    assert SnapshotTail(1, 2, 0, None).fuzzy_end(5, 9) is None
    assert SnapshotTail(1, 2, 7, 1).fuzzy_end(5, 6) == 7
    assert SnapshotTail(1, 3, 7, 1, 8).fuzzy_end(5, 6) == 8
    assert SnapshotTail(1, 3, 7, 1, 8).fuzzy_end(5, 9) == 9
    assert SnapshotTail(1, 3, 0, None, 8).fuzzy_end(12, 9) is None
    assert SnapshotTail(1, 2, last_processed=8).fuzzy_end(5, 8) is None


def test_jute() -> None:
    reader = JuteReader(bytes.fromhex("ffffffff 00000000 00000001 61 01 8000000000000000 ffffffff"))
    assert (reader.buffer(), reader.buffer(), reader.buffer(), reader.bool_(), reader.long()) == (
        None, b"", b"a", True, -(1 << 63),
    )  # fmt: skip
    assert (reader.count(8), reader.left) == (0, 0)
    assert packed_int(-1) + packed_long(1) == bytes.fromhex("ffffffff 0000000000000001")
    assert packed_buffer(None) + packed_buffer(b"a") == bytes.fromhex("ffffffff 00000001 61")


@pytest.mark.parametrize("text", ["", "000000", "00000002 61", "fffffffe", "7fffffff", "80000000"])
def test_jute_that_cannot_be(text: str) -> None:
    with pytest.raises(Damaged):
        JuteReader(bytes.fromhex(text)).buffer()
    with pytest.raises(Damaged):
        JuteReader(bytes.fromhex("00000002 00")).count(1)
