"""Trees of one past, and trees that only look like it: restored ones above all."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.zookeeper.jute import packed_buffer, packed_int
from logkeep.formats.zookeeper.snapshot import NodeRow
from logkeep.formats.zookeeper.transactions import HEADER, TransactionType
from logkeep.zookeeper.model.tree import Tree, rows_of
from logkeep.zookeeper.timeline.same_ensemble import same_past
from tests.support.zookeeper.handmade_server import SESSION, tree_after

_OPEN = packed_int(1) + packed_int(31) + packed_buffer(b"world") + packed_buffer(b"anyone")


def create(zxid: int, path: bytes) -> bytes:
    """Without the parent's count, which the tree then keeps by itself."""
    head = HEADER.pack(SESSION, 0, zxid, 1_700_000_000_000 + zxid, TransactionType.CREATE)
    return head + packed_buffer(path) + packed_buffer(b"") + _OPEN + b"\0" + packed_int(-1)


BEGIN = [create(1, b"/a"), create(2, b"/a/x"), create(3, b"/b"), create(4, b"/a/y")]


def _delete(zxid: int, path: bytes) -> bytes:
    return HEADER.pack(SESSION, 0, zxid, 1_700_000_000_000 + zxid, TransactionType.DELETE) + packed_buffer(path)


def _set(zxid: int, path: bytes, version: int) -> bytes:
    head = HEADER.pack(SESSION, 0, zxid, 1_700_000_000_000 + zxid, TransactionType.SET_DATA)
    return head + packed_buffer(path) + packed_buffer(b"new") + packed_int(version)


def _rows(tree: Tree) -> list[NodeRow]:
    return list(rows_of(tree)[1])


def _same(archived: Sequence[bytes], later: Sequence[bytes], last: int) -> bool:
    tree = tree_after(later)
    return same_past(tree_after(archived), _rows(tree), last, tree.zxid)


def test_a_tree_that_went_on_is_of_the_same_past() -> None:
    later = [create(9, b"/c"), _set(10, b"/b", 1), _delete(11, b"/a/x"), create(12, b"/a/x")]
    assert _same(BEGIN, BEGIN, 4)
    assert all(_same(BEGIN, [*BEGIN, *later[:count]], 4) for count in range(5))


def test_restored_data_is_not() -> None:
    assert not _same(BEGIN, BEGIN[:2], 4)
    assert not _same(BEGIN, [*BEGIN[:2], create(9, b"/c")], 4), "one more child hides no missing one"
    assert not _same(BEGIN, [*BEGIN[:3], create(9, b"/a/y")], 4), "nor the same one, made again"
    assert not _same([*BEGIN, _set(5, b"/b", 1)], [*BEGIN, _set(9, b"/b", 1)], 5), "nor data that is set again"
    assert not _same([*BEGIN, _delete(5, b"/b")], [*BEGIN, create(9, b"/c")], 5), "nor what was deleted once"


def test_nothing_in_common_is_no_evidence() -> None:
    assert not _same([], [create(9, b"/c")], 4)
    assert not _same(BEGIN, [create(1, b"/other")], 4)


@given(st.integers(0, 11), st.integers(1, 12), st.integers(0, 6))
def test_what_went_back_never_passes(kept: int, lost: int, more: int) -> None:
    """`kept` transactions came back of an archive that had `lost` more; then `more` others followed."""
    past = [create(n + 1, b"/n%d" % n) for n in range(kept + lost)]
    after = [create(100 + n, b"/m%d" % n) for n in range(more)]
    assert not _same(past, [*past[:kept], *after], kept + lost)
    assert _same(past, [*past, *after], kept + lost)
