"""Hypothesis strategies: transactions, logs and trees of all kinds that servers write."""

from hypothesis import strategies as st

from logkeep.formats.zookeeper.snapshot import NodeRow
from logkeep.formats.zookeeper.transactions import (
    Acl,
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
    Transaction,
)

ints = st.integers(-(1 << 31), (1 << 31) - 1)
longs = st.integers(-(1 << 63), (1 << 63) - 1)
data = st.none() | st.binary(max_size=40) | st.sampled_from([b"", b"\0" * 50, b"ZKLG", b"B" * 20])
names = st.sampled_from(["a", "b", "queue-0000000001", "zookeeper", "müsli", "鍵", "x y", "."])
paths = st.lists(names, max_size=4).map(lambda parts: "".join(f"/{part}" for part in parts).encode())
acls = st.lists(
    st.builds(Acl, ints, st.sampled_from([b"world", b"digest", b""]), st.binary(max_size=12)), max_size=3
).map(tuple)

_no, _yes, _none = st.just(False), st.just(True), st.none()
_created = st.tuples(st.sampled_from([1, 15]), st.builds(Create, paths, data, acls, st.booleans(), ints, _no, _none))
_container = st.tuples(st.just(19), st.builds(Create, paths, data, acls, _no, ints, _yes, _none))
_with_ttl = st.tuples(st.just(21), st.builds(Create, paths, data, acls, _no, ints, _no, st.integers(0, 1 << 40)))
_simple = st.one_of(
    _created,
    _container,
    _with_ttl,
    st.tuples(st.sampled_from([2, 20]), st.builds(Delete, paths)),
    st.tuples(st.sampled_from([5, 16]), st.builds(SetData, paths, data, ints)),
    st.tuples(st.just(7), st.builds(SetAcl, paths, acls, ints)),
    st.tuples(st.just(13), st.builds(CheckVersion, paths, ints)),
    st.tuples(st.just(-1), st.builds(FailedTxn, ints)),
)
_multi = st.tuples(
    st.just(14),
    st.builds(Multi, st.lists(_simple.map(lambda drawn: MultiPart(*drawn)), max_size=5).map(tuple)),
)
_closed = st.builds(CloseSession, st.none() | st.lists(paths, max_size=4).map(tuple))
changes = st.one_of(
    _simple,
    _multi,
    st.tuples(st.just(-10), st.builds(CreateSession, ints)),
    st.tuples(st.just(-11), _closed),
)
digests = st.none() | st.integers(0, (1 << 64) - 1)


def transactions(zxids: st.SearchStrategy[int] = longs) -> st.SearchStrategy[Transaction]:
    return st.builds(
        lambda session, cxid, zxid, time_ms, change, digest: Transaction(
            session, cxid, zxid, time_ms, change[0], change[1], digest
        ),
        longs, ints, zxids, longs, changes, digests,
    )  # fmt: skip


nodes = st.builds(NodeRow, paths, data, st.sampled_from([-1, 1, 2]), longs, longs, longs, longs, ints, ints, ints,
                  longs, longs)  # fmt: skip
sessions = st.dictionaries(longs, ints, max_size=4)
acl_maps = st.dictionaries(st.integers(1, 1 << 40), acls, max_size=3)
