"""A subtree as changes to a live tree: decided on values, applied to a model that counts versions as a server does."""

import socket
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import ConfigError, Damaged, RestoreFailed, TargetUnsafe, UsageError
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Acl, Acls
from logkeep.zookeeper.model.paths import parsed_path
from logkeep.zookeeper.model.tree import CONTAINER_OWNER, TTL_MARK, Node, Tree
from logkeep.zookeeper.server.client import hidden
from logkeep.zookeeper.server.credentials import read_credentials
from logkeep.zookeeper.server.multi_requests import errors_of_multi
from logkeep.zookeeper.subtree import journal as journal_lines
from logkeep.zookeeper.subtree.batches import Batch, BatchState, batch_request, batch_state, cut_batches
from logkeep.zookeeper.subtree.changes import Change, CreateNode, DeleteNode, SetNode, SetNodeAcls, request_of
from logkeep.zookeeper.subtree.journal import BatchBegan, BatchDone, Heading, new_journal, read_journal, reopen_journal
from logkeep.zookeeper.subtree.plan import plan
from logkeep.zookeeper.subtree.result_check import expected_nodes, is_as_expected
from logkeep.zookeeper.subtree.source_nodes import LeftOutReason, WantedNode, WantedSubtree, wanted_subtree
from logkeep.zookeeper.subtree.undo import undo_batches
from tests.support.zookeeper import raw_client as raw
from tests.support.zookeeper.live_model import LiveModel, Refused, live, shape

CLOSED: Acls = (Acl(31, b"digest", b"shop:hash"),)
READ: Acls = (Acl(1, b"world", b"anyone"),)
NAMES = (b"/a", b"/a/b", b"/a/b/c", b"/a/b/d", b"/a-", b"/a/e", b"/f", b"/f/g", b"")
DATA = st.sampled_from([None, b"", b"1", b"22" * 20])
ACLS = st.sampled_from([OPEN_ACL, CLOSED, READ])


def whole(paths: Iterable[bytes]) -> list[bytes]:
    """With all nodes above."""
    return sorted({path[:end] for path in paths for end in [*(i for i, c in enumerate(path) if c == 47), len(path)]})


@st.composite
def trees(draw: st.DrawFn, top: bytes) -> dict[bytes, WantedNode]:
    chosen = draw(st.sets(st.sampled_from(NAMES)))
    return {top + name: WantedNode(draw(DATA), draw(ACLS)) for name in whole({*chosen, b""})}


@st.composite
def live_trees(draw: st.DrawFn, top: bytes) -> LiveModel:
    found = LiveModel({b"": live(b"", b"", OPEN_ACL)})
    chosen = draw(st.one_of(st.just(set[bytes]()), st.sets(st.sampled_from(NAMES), min_size=1)))
    for name in whole({top + each for each in chosen}):
        node = live(name, draw(DATA), draw(ACLS), version=draw(st.integers(0, 3)), aversion=draw(st.integers(0, 3)))
        found.nodes[name] = node
    leaves = [p for p in found.nodes if p and p != top and not any(q.startswith(p + b"/") for q in found.nodes)]
    for path in draw(st.sets(st.sampled_from(leaves))) if leaves else ():
        found.nodes[path] = found.nodes[path]._replace(owner=77)
    return found


@given(trees(b"/t"), live_trees(b"/t"), st.booleans(), st.booleans(), st.integers(150, 4000))
def test_the_plan_makes_the_live_tree_what_is_wanted_and_undo_takes_it_back(
    nodes: dict[bytes, WantedNode], model: LiveModel, delete_extra: bool, proven: bool, maxbuffer: int
) -> None:
    asked, before = WantedSubtree(b"/t", nodes, {}, ()), shape(model.nodes)
    planned = plan(asked, model.nodes, delete_extra=delete_extra, proven=proven)
    batches = cut_batches(planned.changes, maxbuffer)
    model.take(batches)
    left_out = {each.path for each in planned.left_out}
    for path, node in nodes.items():
        assert path in left_out or shape(model.nodes)[path] == (node.data, node.acls)
    extra = set(model.nodes) - set(nodes) - {b""}
    assert (extra <= left_out) if delete_extra else (len(extra) == planned.extra)
    assert all(is_as_expected(each, model.nodes.get(path)) for path, each in expected_nodes(batches).items())
    assert not plan(asked, model.nodes, delete_extra=delete_extra, proven=proven).changes
    back = undo_batches(batches, maxbuffer)
    model.take(back)
    assert shape(model.nodes) == before
    acls = [batch for batch in (*batches, *back) if any(isinstance(c, SetNodeAcls) for c in batch.changes)]
    assert all(len(batch.changes) == 1 for batch in acls), "servers take no ACL within a multi"


@given(trees(b"/t"), live_trees(b"/t"), st.integers(150, 900), st.data())
def test_what_somebody_else_changes_meanwhile_is_refused_as_a_whole(
    nodes: dict[bytes, WantedNode], model: LiveModel, maxbuffer: int, data: st.DataObject
) -> None:
    planned = plan(WantedSubtree(b"/t", nodes, {}, ()), model.nodes, delete_extra=True, proven=True)
    batches = cut_batches(planned.changes, maxbuffer)
    touched = [c for c in planned.changes if not isinstance(c, CreateNode) or c.path not in model.nodes]
    if not touched:
        return
    change = data.draw(st.sampled_from(touched))
    if isinstance(change, CreateNode):
        model.nodes[change.path] = live(change.path, b"theirs", OPEN_ACL)
    elif isinstance(change, SetNodeAcls) and change.path in model.nodes:
        model.nodes[change.path] = model.nodes[change.path]._replace(aversion=change.version + 1)
    elif change.path in model.nodes:
        model.nodes[change.path] = model.nodes[change.path]._replace(version=change.version + 1)
    else:
        return
    with pytest.raises(Refused):
        model.take(batches)


@given(trees(b"/t"), live_trees(b"/t"), st.integers(150, 900))
def test_a_batch_in_doubt_is_known_to_be_done_or_not(
    nodes: dict[bytes, WantedNode], model: LiveModel, maxbuffer: int
) -> None:
    planned = plan(WantedSubtree(b"/t", nodes, {}, ()), model.nodes, delete_extra=True, proven=True)
    for batch in cut_batches(planned.changes, maxbuffer):
        assert batch_state(batch, model.nodes) is BatchState.NOT_DONE
        model.take([batch])
        assert batch_state(batch, model.nodes) is BatchState.DONE


def test_a_batch_that_is_done_in_part_is_somebody_elses_doing() -> None:
    batch = Batch((CreateNode(b"/a", b"", OPEN_ACL), CreateNode(b"/b", b"", OPEN_ACL)))
    assert batch_state(batch, {b"/a": live(b"/a", b"", OPEN_ACL)}) is BatchState.CHANGED
    assert batch_state(batch, {p: live(p, b"other", OPEN_ACL) for p in (b"/a", b"/b")}) is BatchState.CHANGED


def test_of_a_hidden_node_the_server_decides() -> None:
    there = {b"/a": hidden(b"/a")}
    told: dict[Change, BatchState] = {
        CreateNode(b"/a", b"", OPEN_ACL): BatchState.DONE,
        SetNodeAcls(b"/a", OPEN_ACL, 0, CLOSED): BatchState.NOT_DONE,
        SetNode(b"/a", b"", 0, b"x"): BatchState.CHANGED,
    }
    assert {change: batch_state(Batch((change,)), there) for change in told} == told


@given(trees(b"/t"), st.integers(150, 900))
def test_no_request_is_larger_than_the_limit_and_none_could_be_joined(
    nodes: dict[bytes, WantedNode], maxbuffer: int
) -> None:
    planned = plan(
        WantedSubtree(b"/t", nodes, {}, ()), {b"": live(b"", b"", OPEN_ACL)}, delete_extra=False, proven=True
    )
    batches = cut_batches(planned.changes, maxbuffer)
    assert [change for batch in batches for change in batch.changes] == list(planned.changes)
    for batch in batches:
        assert batch_request(batch).frame_bytes <= maxbuffer
        assert len(batch.changes) == 1 or batch_request(batch).frame_bytes <= maxbuffer // 2
    for one, other in pairwise(batches):
        joined = Batch((*one.changes, other.changes[0]))
        acls = any(isinstance(change, SetNodeAcls) for change in joined.changes)
        assert acls or batch_request(joined).frame_bytes > maxbuffer // 2


def test_requests_are_what_an_independent_client_sends() -> None:
    acls, theirs = (Acl(31, b"world", b"anyone"),), raw.OPEN
    pairs: list[tuple[Change, raw.Op]] = [
        (CreateNode(b"/a", b"1", acls), raw.create("/a", b"1", theirs)),
        (CreateNode(b"/a", None, acls, True), raw.create_container("/a", None)),
        (CreateNode(b"/a", b"", acls, False, 5000), raw.create_ttl("/a", b"", 5000)),
        (SetNode(b"", None, 3, b""), raw.set_data("/", None, 3)),
        (DeleteNode("/ä".encode(), 4, b"", acls), raw.delete("/ä", 4)),
        (SetNodeAcls(b"/a", acls, 5, acls), raw.set_acl("/a", theirs, 5)),
    ]
    for change, op in pairs:
        assert tuple(request_of(change)) == (op.kind, op.payload)
    several = Batch(tuple(change for change, _ in pairs[:-1]))
    expected = raw.multi(*(op for _, op in pairs[:-1]))
    assert tuple(batch_request(several)) == (expected.kind, expected.payload)
    assert batch_request(several).frame_bytes == 8 + len(expected.payload)


def test_a_node_beyond_the_limit_is_refused_by_name() -> None:
    just = CreateNode(b"/large", b"x" * 100, OPEN_ACL)
    size = batch_request(Batch((just,))).frame_bytes
    assert len(cut_batches([just], size)) == 1
    with pytest.raises(TargetUnsafe, match="jute") as refused:
        cut_batches([just], size - 1)
    assert refused.value.subject == "/large"


def test_answers_to_multis() -> None:
    assert errors_of_multi(bytes.fromhex("ffffffff01ffffffff")) == []
    failed = b"".join(bytes.fromhex("ffffffff00") + code + code for code in (b"\0\0\0\0", b"\xff\xff\xff\x99"))
    assert errors_of_multi(failed + bytes.fromhex("ffffffff01ffffffff")) == [0, -103]
    with pytest.raises(Damaged):
        errors_of_multi(failed)


def tree_with(*nodes: tuple[bytes, int]) -> Tree:
    tree = Tree()
    tree.sessions = {77: 1000}
    for path, owner in ((b"", 0), (b"/zookeeper", 0), (b"/zookeeper/quota", 0), *nodes):
        tree.add(path, Node(path, OPEN_ACL, 1, 1, owner))
    return tree


def test_what_is_wanted_of_a_tree() -> None:
    special = ((b"/a/c", CONTAINER_OWNER), (b"/a/t", TTL_MARK | 5000), (b"/a/e", 77), (b"/ab", 0), (b"/a/\xff", 0))
    found = wanted_subtree(tree_with((b"/a", 0), *special), b"/a", b"/x/y")
    assert list(found.nodes) == [b"/x/y", b"/x/y/c", b"/x/y/t"]
    assert found.nodes[b"/x/y/c"].container
    assert found.nodes[b"/x/y/t"].ttl_ms == 5000
    assert {(each.path, each.why, each.lost) for each in found.left_out} == {
        (b"/x/y/e", LeftOutReason.EPHEMERAL, False), (b"/x/y/\xff", LeftOutReason.NO_TEXT, True),
    }  # fmt: skip
    everything = wanted_subtree(tree_with((b"/a", 0)), b"", b"")
    assert list(everything.nodes) == [b"", b"/a"]
    assert [each.path for each in everything.left_out] == [b"/zookeeper"]


def test_what_zookeeper_keeps_for_itself_is_told_under_another_path_too() -> None:
    elsewhere = wanted_subtree(tree_with((b"/a", 0)), b"", b"/x")
    assert list(elsewhere.nodes) == [b"/x", b"/x/a"]
    assert [(each.path, each.why, each.lost) for each in elsewhere.left_out] == [
        (b"/x/zookeeper", LeftOutReason.SYSTEM, False)
    ]
    own = wanted_subtree(tree_with((b"/a", 0), (b"/a/b", 0), (b"/a/zookeeper", 0), (b"/a/zookeeper/c", 0)), b"/a", b"")
    assert list(own.nodes) == [b"", b"/b"]
    assert [(each.path, each.why, each.lost) for each in own.left_out] == [
        (b"/zookeeper", LeftOutReason.ONTO_SYSTEM, True), (b"/zookeeper/c", LeftOutReason.ONTO_SYSTEM, True),
    ]  # fmt: skip


def test_nodes_above_are_made_as_the_backup_has_them_unless_it_is_another_path() -> None:
    tree = tree_with((b"/a", 0), (b"/a/b", 0), (b"/a/b/c", 0))
    root = {b"": live(b"", b"", OPEN_ACL)}
    planned = plan(wanted_subtree(tree, b"/a/b/c", b"/a/b/c"), root, delete_extra=True, proven=False)
    assert [change.path for change in planned.changes] == [b"/a", b"/a/b", b"/a/b/c"]
    with pytest.raises(UsageError, match="no node above"):
        plan(wanted_subtree(tree, b"/a/b/c", b"/x/c"), root, delete_extra=False, proven=False)


@pytest.mark.parametrize(("path", "target"), [("/zookeeper/quota", "/q"), ("/a", "/zookeeper/a"), ("/zookeeper", "/z")])
def test_what_zookeeper_keeps_for_itself_is_refused(path: str, target: str) -> None:
    with pytest.raises(UsageError, match="for itself"):
        wanted_subtree(tree_with((b"/a", 0)), parsed_path(path), parsed_path(target))


@pytest.mark.parametrize("path", ["/missing", "/mine"])
def test_a_path_that_is_not_there_or_was_a_sessions_cannot_come_back(path: str) -> None:
    with pytest.raises(RestoreFailed):
        wanted_subtree(tree_with((b"/mine", 77)), parsed_path(path), parsed_path(path))


@pytest.mark.parametrize("text", ["a", "", "//", "/a/", "/a//b", "/a/../b", "/./a", "/a\0"])
def test_paths_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parsed_path(text)


def test_a_node_that_others_are_created_below_is_open_to_nobody_else_meanwhile() -> None:
    nodes = {b"/t": WantedNode(b"secret", CLOSED), b"/t/a": WantedNode(b"1", CLOSED)}
    root = {b"": live(b"", b"", OPEN_ACL)}
    for proven, perms, scheme in ((True, 31, b"auth"), (False, 28, b"world")):
        planned = plan(WantedSubtree(b"/t", nodes, {}, ()), root, delete_extra=False, proven=proven)
        first, second, last = planned.changes
        assert isinstance(first, CreateNode)
        assert [(acl.perms, acl.scheme) for acl in first.acls] == [(perms, scheme)]
        assert second == CreateNode(b"/t/a", b"1", CLOSED)
        assert last == SetNodeAcls(b"/t", CLOSED, 0, first.acls)


def test_acls_that_a_server_hides_are_not_set_and_not_taken_for_equal() -> None:
    hidden = (Acl(31, b"digest", b"shop:x"),)
    there = {b"": live(b"", b"", OPEN_ACL), b"/t": live(b"/t", b"", hidden), b"/t/x": live(b"/t/x", b"", hidden)}
    asked = WantedSubtree(b"/t", {b"/t": WantedNode(b"", CLOSED)}, {}, ())
    planned = plan(asked, there, delete_extra=True, proven=True)
    assert [type(change) for change in planned.changes] == [DeleteNode]
    assert planned.masked == (b"/t/x",)
    assert planned.not_compared == (b"/t",)
    for shown, unknown in ((CLOSED, False), (OPEN_ACL, False), (hidden, True)):
        there[b"/t"] = live(b"/t", b"", shown)
        assert bool(plan(asked, there, delete_extra=False, proven=True).not_compared) is unknown


HEADING = Heading(hosts="h:1", top="/t", what="backup 1")
BATCHES = tuple(
    Batch((CreateNode(name, b"\xff\0", CLOSED, ttl_ms=7), SetNode(b"/s", None, 3, b"x"))) for name in NAMES[:2]
)


def test_a_journal_that_ends_anywhere_says_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = new_journal(path, HEADING, BATCHES)
    assert path.stat().st_mode & 0o777 == 0o600
    ready = path.stat().st_size
    journal.note(BatchBegan(0), BatchDone(0), BatchBegan(1))
    journal.close()
    content = path.read_bytes()
    for size in range(len(content) + 1):
        path.write_bytes(content[:size])
        if size < ready:
            with pytest.raises(RestoreFailed, match="before the first change"):
                read_journal(path)
            continue
        told, lines = read_journal(path), content[ready:size].count(b"\n")
        assert (told.heading, told.batches) == (HEADING, BATCHES)
        assert (told.done, told.in_doubt) == [(0, False), (0, True), (1, False), (1, True)][lines]


def test_a_journal_is_lines_of_json(tmp_path: Path) -> None:
    path, closed = tmp_path / "journal", (Acl(31, b"digest", b"u:h"),)
    creates = (
        CreateNode(b"/t", None, OPEN_ACL),
        CreateNode(b"/t/c", b"", READ, True),
        CreateNode(b"/l", b"x", (), ttl_ms=5),
    )
    first = Batch((*creates, SetNode(b"/s", b"new", 3, b"old"), DeleteNode(b"/d", 1, b"d", closed)))
    journal = new_journal(path, HEADING, (first, Batch((SetNodeAcls(b"/s", closed, 2, READ),))))
    journal.note(BatchBegan(0), BatchDone(0), BatchBegan(1), journal_lines.BatchRefused(1))
    journal.close()
    assert path.read_text().splitlines() == [
        '{"type":"subtree-journal-1","hosts":"h:1","top":"/t","what":"backup 1","undoes":""}',
        '{"type":"batch","batch":{"changes":['
        '{"type":"create","path":"L3Q=","data":null,"acls":[[31,"d29ybGQ=","YW55b25l"]]},'
        '{"type":"create","path":"L3QvYw==","data":"","acls":[[1,"d29ybGQ=","YW55b25l"]],"container":true},'
        '{"type":"create","path":"L2w=","data":"eA==","acls":[],"ttl_ms":5},'
        '{"type":"set","path":"L3M=","data":"bmV3","version":3,"before":"b2xk"},'
        '{"type":"delete","path":"L2Q=","version":1,"before":"ZA==","before_acls":[[31,"ZGlnZXN0","dTpo"]]}]}}',
        '{"type":"batch","batch":{"changes":[{"type":"acls","path":"L3M=","acls":[[31,"ZGlnZXN0","dTpo"]],'
        '"version":2,"before":[[1,"d29ybGQ=","YW55b25l"]]}]}}',
        '{"type":"ready","batches":2,"sha256":"66d638e3bee4c6d7eade1137f083b2d9b04ff97a51c4746becac9737055ca50b"}',
        '{"type":"began","batch":0}',
        '{"type":"done","batch":0}',
        '{"type":"began","batch":1}',
        '{"type":"refused","batch":1}',
    ]


@given(st.data())
def test_a_journal_with_another_byte_is_none(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("journals") / "journal"
    new_journal(path, HEADING, BATCHES).close()
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 2))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with pytest.raises((Damaged, RestoreFailed)):
        read_journal(path)


def test_a_torn_line_is_cut_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    new_journal(path, HEADING, BATCHES).close()
    with path.open("ab") as file:
        file.write(b'{"type":"beg')
    journal, told = reopen_journal(path)
    journal.note(BatchBegan(0))
    journal.close()
    assert not told.in_doubt
    assert replace(told, in_doubt=True, doubted=True) == read_journal(path)


def test_a_batch_that_was_once_in_doubt_stays_so_until_it_is_done(tmp_path: Path) -> None:
    """However often a resume is killed, a request of the first run may still be on its way."""
    path, told = tmp_path / "journal", list[tuple[bool, bool]]()
    journal = new_journal(path, HEADING, BATCHES)
    refused = journal_lines.BatchRefused
    for line in (
        BatchBegan(0),
        refused(0),
        BatchBegan(0),
        refused(0, doubted=True),
        BatchBegan(0),
        refused(0),
        BatchBegan(0),
        BatchDone(0),
    ):
        journal.note(line)
        told.append((read_journal(path).in_doubt, read_journal(path).doubted))
    journal.close()
    assert told == [(True, True), (False, False), (True, True), *[(False, True), (True, True)] * 2, (False, False)]
    assert b'{"type":"refused","batch":0}\n' in path.read_bytes(), "as it was always written"
    assert b'{"type":"refused","batch":0,"doubted":true}\n' in path.read_bytes()


def test_a_journal_is_never_written_over_and_no_other_file_is_one(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text("{}\n")
    with pytest.raises(UsageError, match="already"):
        new_journal(path, HEADING, ())
    with pytest.raises(Damaged):
        read_journal(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_journal(tmp_path / socket.gethostname())


def test_credentials_come_from_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "auth"
    path.write_text("# who\ndigest:shop:pass:word\n\n")
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="read by others"):
        read_credentials(path)
    path.chmod(0o600)
    (credential,) = read_credentials(path)
    assert credential == ("digest", "shop:pass:word")
    assert "pass" not in repr(credential)
    for text in ("", "digest\n", ":x\n"):
        path.write_text(text)
        with pytest.raises(ConfigError) as refused:
            read_credentials(path)
        assert "x" not in str(refused.value.what).split()
