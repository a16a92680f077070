"""The past of znodes, without servers: what is read once, what a session's end deletes, how trees differ."""

import pickle
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.cli.verbs.zookeeper.moment import parted
from logkeep.engine.inline import InlineEngine
from logkeep.errors import UsageError
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.transactions import (
    OPEN_ACL,
    Acl,
    Change,
    CloseSession,
    Create,
    Delete,
    Multi,
    MultiPart,
    SetAcl,
    SetData,
    Transaction,
)
from logkeep.model.work import Engine
from logkeep.zookeeper.history.compare import TreeSide, compare, one_member, written_digest
from logkeep.zookeeper.history.log_task import Depth, LogSearchUnit, WantedEvents, find, wanted_path
from logkeep.zookeeper.history.pieces import pieces, searched
from logkeep.zookeeper.history.run import History, history
from logkeep.zookeeper.history.selection import choice
from logkeep.zookeeper.history.tree_diff import DifferenceKind, differences
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.model.tree import Tree, new_tree, rows_of
from logkeep.zookeeper.timeline.plan import Slice, ToEnd, ToZxid
from logkeep.zookeeper.timeline.proof import MISMATCH
from tests.support.zookeeper.encoding import body, record
from tests.support.zookeeper.handmade_history import MemoryView, Past, add_member, backup_of, kept_log

PAST = Past(range(1, 31))
LOG = kept_log(backup_of(PAST, snapshot_at=(), logs=[range(1, 3)]).objects.popitem()[1], "a")
RUNS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["1", "2", "10"]), st.integers(1, 40), st.integers(0, 9)),
    max_size=8,
)


@given(RUNS)
def test_every_transaction_that_is_held_is_read_once(drawn: list[tuple[str, str, int, int]]) -> None:
    logs = [
        msgspec.structs.replace(LOG, member=m, history=h, first=first, last=first + more) for m, h, first, more in drawn
    ]
    found = pieces([Slice(log, log.first, log.last) for log in logs])
    read = [(piece.log.history, zxid) for piece in found for zxid in range(piece.first, piece.last + 1)]
    held = {(log.history, zxid) for log in logs for zxid in range(log.first, log.last + 1)}
    assert read == sorted(held, key=lambda one: (int(one[0]), one[1]))
    runs = searched(found)
    assert {(h, zxid) for h, first, last in runs for zxid in range(first, last + 1)} == held
    assert all(one[0] != two[0] or one[2] + 1 < two[1] for one, two in pairwise(runs))


def test_a_member_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="no logs of this member") as refused:
        choice(backup_of(PAST, snapshot_at=(0,), logs=(range(1, 31),)), _engine, "b")
    assert refused.value.remedy == "choose among a"


def _engine(_size_bytes: int) -> Engine:
    return InlineEngine()


def _view(*told: tuple[int, int, Change]) -> MemoryView:
    """Session, kind and change of transactions 1, 2, …"""
    view = MemoryView(members=[Member(name="a")])
    made = (Transaction(s, 0, z, z * 1000, kind, change, None) for z, (s, kind, change) in enumerate(told, 1))
    view.add_log([record(body(each)) for each in made])
    return view


def _made(path: bytes, *, ephemeral: bool = False) -> Create:
    return Create(path, b"x", OPEN_ACL, ephemeral, 1)


def _history(view: MemoryView, path: str, depth: Depth = Depth.ITSELF, most: int = 100) -> History:
    return history(view, WantedEvents(wanted_path(path), depth, most), _engine)


def _told(found: History) -> list[tuple[int, str, str, int]]:
    return [(event.zxid, event.op, event.txn, event.session) for event in found.events]


def test_an_unnamed_end_of_a_session_deletes_its_nodes() -> None:
    view = _view(
        (7, 1, _made(b"/e", ephemeral=True)),
        (8, -11, CloseSession(None)),
        (7, -11, CloseSession(None)),
        (9, 1, _made(b"/e", ephemeral=True)),
        (9, -11, CloseSession((b"/e",))),
        (9, 1, _made(b"/e", ephemeral=True)),
    )
    assert _told(_history(view, "/e")) == [
        (1, "create", "create", 7),
        (3, "delete", "closeSession", 7),
        (4, "create", "create", 9),
        (5, "delete", "closeSession", 9),
        (6, "create", "create", 9),
    ]


def test_a_failed_multi_changed_nothing_and_a_check_changes_nothing() -> None:
    parts = (MultiPart(5, SetData(b"/a", b"y", 1)), MultiPart(2, Delete(b"/a")))
    failed = (MultiPart(5, SetData(b"/a", b"y", 1)), MultiPart(-1, SetData(b"/a", b"y", 1)))
    view = _view((1, 14, Multi(parts)), (1, 14, Multi(failed)))
    assert _told(_history(view, "/a")) == [(1, "setData", "multi", 1), (1, "delete", "multi", 1)]


def test_paths_that_only_begin_alike_are_others() -> None:
    view = _view(*((1, 1, _made(path)) for path in (b"/a", b"/ab", b"/a/b", b"/a/b/c")))
    found = {depth: [event.path for event in _history(view, "/a", depth).events] for depth in Depth}
    assert found == {
        Depth.ITSELF: ["/a"],
        Depth.CHILDREN: ["/a", "/a/b"],
        Depth.EVERYTHING: ["/a", "/a/b", "/a/b/c"],
    }
    assert [event.path for event in _history(view, "/", Depth.CHILDREN).events] == ["/a", "/ab"]


def test_the_newest_are_told_and_all_are_counted() -> None:
    view = backup_of(PAST, snapshot_at=(0,), logs=(range(1, 11), range(11, 31)))
    found = _history(view, "/", Depth.EVERYTHING, most=3)
    assert ([event.zxid for event in found.events], found.total, found.transactions) == ([28, 29, 30], 30, 30)
    assert found.searched == (("1", 1, 30),)


def test_a_unit_travels_to_another_process() -> None:
    view = backup_of(PAST, snapshot_at=(0,), logs=(range(1, 31),))
    unit = LogSearchUnit(view, choice(view, _engine).parts[0], WantedEvents(b"/n1", Depth.ITSELF, 5))
    there = pickle.loads(pickle.dumps(unit))  # noqa: S301 - our own bytes, a line ago
    assert find(there, lambda _: None) == find(unit, lambda _: None)


def _tree(*told: tuple[int, Change]) -> Tree:
    tree = new_tree(with_config=True)
    for zxid, (kind, change) in enumerate(told, 1):
        tree.apply(Transaction(1, 0, zxid, zxid, kind, change, None))
    return tree


def test_trees_differ_by_kind() -> None:
    base: Sequence[tuple[int, Change]] = [(1, _made(path)) for path in (b"/data", b"/acl", b"/gone", b"/same")]
    own = (Acl(1, b"world", b"anyone"),)
    later = (
        (5, SetData(b"/data", b"y", 1)),
        (7, SetAcl(b"/acl", own, 1)),
        (2, Delete(b"/gone")),
        (1, _made(b"/new")),
    )
    found = {one.path: one for one in differences(_tree(*base), _tree(*base, *later))}
    assert {path: one.kinds for path, one in found.items()} == {
        "/": (DifferenceKind.STAT,),
        "/acl": (DifferenceKind.ACL, DifferenceKind.STAT),
        "/data": (DifferenceKind.DATA, DifferenceKind.STAT),
        "/gone": (DifferenceKind.DELETED,),
        "/new": (DifferenceKind.CREATED,),
    }
    assert (found["/acl"].stat, found["/data"].stat) == (("aversion",), ("mzxid", "mtime", "version"))
    assert [one.path for one in differences(_tree(*base), _tree(*base, *later), b"/data")] == ["/data"]
    assert not list(differences(_tree(*base), _tree(*base)))


def test_members_and_moments_are_compared() -> None:
    view = backup_of(PAST, snapshot_at=(0,), logs=(range(1, 31),))
    view.members.append(Member(name="b"))
    add_member(view, PAST, snapshot_at=(0,), logs=(range(1, 21),), member="b")
    at_20 = compare(TreeSide(one_member(view, "a"), ToZxid(20)), TreeSide(one_member(view, "b"), ToEnd()), b"", 10)
    assert (at_20.by, at_20.total, at_20.after.until) == ("replay", 0, 20)
    again = compare(TreeSide(view, ToZxid(20)), TreeSide(view, ToZxid(20)), b"", 10)
    assert (again.by, again.total, again.after.until) == ("digest", 0, 20)
    ends = compare(TreeSide(one_member(view, "b"), ToEnd()), TreeSide(one_member(view, "a"), ToEnd()), b"", 2)
    assert (ends.by, ends.total > 2, len(ends.differences), ends.counted[DifferenceKind.CREATED] > 0) == (
        "replay",
        True,
        2,
        True,
    )
    system = compare(TreeSide(view, ToZxid(20)), TreeSide(view, ToZxid(20)), b"/zookeeper", 10)
    assert (system.by, system.total) == ("replay", 0)


def test_equal_digests_alone_do_not_make_two_moments_equal() -> None:
    """A server counts nothing below /zookeeper, and nobody's ACL: a quota was set in between."""
    tree, records = new_tree(with_config=True), list[bytes]()
    for zxid, path in enumerate((b"/a", b"/zookeeper/quota/a"), 1):
        made = Transaction(1, 0, zxid, zxid, 1, _made(path), None)
        tree.apply(made)
        records.append(record(body(made._replace(digest=tree.digest))))
    view = backup_of(PAST, snapshot_at=(), logs=())
    view.add_log(records)
    one, other = (TreeSide(view, ToZxid(zxid)) for zxid in (1, 2))
    found = compare(one, other, b"", 10)
    written = [written_digest(view, path) for path in (found.before, found.after)]
    assert written[0] == written[1] is not None
    assert (found.by, [each.path for each in found.differences]) == (
        "replay",
        ["/zookeeper/quota", "/zookeeper/quota/a"],
    )


@pytest.mark.parametrize("moments", [(20, 20), (20, 30)])
def test_a_node_that_is_in_neither_tree_is_not_called_equal(moments: tuple[int, int]) -> None:
    view = backup_of(PAST, snapshot_at=(0,), logs=(range(1, 31),))
    one, other = (TreeSide(view, ToZxid(moment)) for moment in moments)
    assert compare(one, other, b"/n1", 10).total == 0
    with pytest.raises(UsageError, match="in neither") as refused:
        compare(one, other, b"/nn1", 10)
    assert refused.value.subject == "/nn1"


def test_paths_are_read_as_people_write_them() -> None:
    assert [wanted_path(text) for text in ("/", "/a", "/a/b/")] == [b"/", b"/a", b"/a/b"]


@pytest.mark.parametrize("text", ["", "a", "//", "//old1", "/a//b", "/a//", "/a/./b", "/.."])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not the path of a node"):
        wanted_path(text)


def test_a_member_whose_tree_has_diverged_differs_though_it_logs_the_leaders_digests() -> None:
    """Its snapshot lacks a node, and nothing later touched that one."""
    view = backup_of(PAST, snapshot_at=(10,), logs=(range(11, 31),))
    view.members.append(Member(name="b"))
    add_member(view, PAST, snapshot_at=(), logs=(range(11, 31),), member="b")
    diverged = Past(range(1, 11)).tree
    gone = next(path for path in diverged.nodes if path.startswith(b"/n"))
    diverged.apply(Transaction(1, 0, 10, 0, 2, Delete(gone), None))
    acls, rows = rows_of(diverged)
    content = b"".join(exact_snapshot({}, acls, rows, zxid=10, digest=diverged.digest))
    view.add_snapshot(content, 10, "b", fuzzy_end=10, digest=diverged.digest, nodes=len(diverged.nodes))
    sides = [TreeSide(one_member(view, member), ToEnd(), believe=True) for member in "ab"]
    found = compare(sides[0], sides[1], b"", 10)
    assert (found.by, found.counted[DifferenceKind.DELETED]) == ("replay", 1)
    assert [MISMATCH in each.labels for each in (found.before, found.after)] == [False, True]
    assert gone.decode() in {one.path for one in found.differences}


@pytest.mark.parametrize(
    ("named", "parts"),
    [
        ("latest", ("latest", "", None)),
        ("2026@0x1f", ("2026", "", 31)),
        ("latest:zk1@5", ("latest", "zk1", 5)),
        ("./a:b@0x1", ("./a:b", "", 1)),
        ("/x@y/z", ("/x@y/z", "", None)),
    ],
)
def test_a_moment_is_named(named: str, parts: tuple[str, str, int | None]) -> None:
    assert parted(named) == parts


@pytest.mark.parametrize("named", ["latest@zk", "@0x1", "latest@", ":a"])
def test_what_names_no_moment_is_refused(named: str) -> None:
    with pytest.raises(UsageError):
        parted(named)
