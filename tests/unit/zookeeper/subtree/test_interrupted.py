"""A subtree's restore that was killed while a request was under way, and somebody who wrote a node of it then."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from logkeep.cli.verbs.zookeeper.restore.subtree_report import SubtreeReport, ended_report
from logkeep.errors import TargetUnsafe, UsageError
from logkeep.formats.zookeeper.transactions import OPEN_ACL
from logkeep.zookeeper.server.client import LiveNode, ZooKeeperSession, hidden
from logkeep.zookeeper.subtree import run
from logkeep.zookeeper.subtree.batches import Batch, BatchState, batch_state
from logkeep.zookeeper.subtree.changes import CreateNode, DeleteNode, SetNode
from logkeep.zookeeper.subtree.journal import Heading, read_journal
from logkeep.zookeeper.subtree.run import begin, resume, undo
from tests.support.zookeeper.live_model import LiveModel, Refused, live, shape

HEADING = Heading(hosts="h:1", top="/t", what="backup 1")
MAXBUFFER = 0xFFFFF
MADE = Batch((CreateNode(b"/t", b"", OPEN_ACL), CreateNode(b"/t/first", b"1", OPEN_ACL)))
TWO_SETS = Batch((SetNode(b"/a", b"new a", 3, b"old a", 1), SetNode(b"/b", b"new b", 5, b"old b", 1)))
LAST = Batch((CreateNode(b"/last", b"", OPEN_ACL),))


class Killed(BaseException):
    """As if the process had died."""


class ModelSession:
    """Carries out on the model what a server would do."""

    def __init__(self, model: LiveModel) -> None:
        self.model = model

    def catch_up(self) -> None:
        """It is never behind."""

    def read_nodes(self, paths: Sequence[bytes]) -> Iterator[LiveNode]:
        return (self.model.nodes[path] for path in paths if path in self.model.nodes)

    def ask(self, batch: Batch, _: str) -> int:
        if any(not isinstance(c, CreateNode) and c.path not in self.model.nodes for c in batch.changes):
            return -101
        try:
            self.model.take([batch])
        except Refused:
            return -103
        return 0


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> LiveModel:
    monkeypatch.setattr(run, "batch_request", lambda batch: batch)
    nodes = [live(b"", b"", OPEN_ACL), live(b"/a", b"old a", OPEN_ACL, version=3)]
    return LiveModel({node.path: node for node in (*nodes, live(b"/b", b"old b", OPEN_ACL, version=5))})


def session(model: LiveModel) -> ZooKeeperSession:
    return cast("ZooKeeperSession", ModelSession(model))


def killed(model: LiveModel, journal: Path, last: str, *batches: Batch) -> None:
    def after(step: str) -> None:
        if step == last:
            raise Killed

    with pytest.raises(Killed):
        begin(session(model), journal, HEADING, batches, after)


def written(model: LiveModel, path: bytes) -> None:
    """By somebody else."""
    node = model.nodes[path]
    model.nodes[path] = node._replace(data=b"theirs", version=node.version + 1, mzxid=99)


def report(ended: Any) -> SubtreeReport:
    return ended_report(SubtreeReport(verdict="planned", hosts="", target=""), ended, verdict="undone")


def test_an_undo_takes_back_all_but_what_somebody_else_wrote(model: LiveModel, tmp_path: Path) -> None:
    killed(model, tmp_path / "journal", "sent 1", MADE, TWO_SETS)
    written(model, b"/b")
    told = report(undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER))
    assert {path: data for path, (data, _) in shape(model.nodes).items()} == {
        b"": b"",
        b"/a": b"old a",
        b"/b": b"theirs",
    }
    assert (told.verdict, told.left_alone, told.exit_code, told.made) == ("changed-since", ("/b",), 2, 3)
    assert report(resume(session(model), tmp_path / "undo")).left_alone == ("/b",), "its journal knows it too"


def test_a_resume_goes_on_and_names_it_and_can_still_be_undone(model: LiveModel, tmp_path: Path) -> None:
    killed(model, tmp_path / "journal", "sent 1", MADE, TWO_SETS, LAST)
    written(model, b"/b")
    ended = resume(session(model), tmp_path / "journal")
    assert ended.checked.differing == (b"/b",)
    assert (read_journal(tmp_path / "journal").done, read_journal(tmp_path / "journal").changed) == (3, (1,))
    told = report(undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER))
    assert set(model.nodes) == {b"", b"/a", b"/b"}
    assert (model.nodes[b"/a"].data, model.nodes[b"/b"].data, told.left_alone) == (b"old a", b"theirs", ("/b",))


def test_where_nobody_can_tell_the_batches_before_are_taken_back(model: LiveModel, tmp_path: Path) -> None:
    killed(model, tmp_path / "journal", "sent 1", MADE, TWO_SETS)
    written(model, b"/a")
    written(model, b"/b")
    with pytest.raises(TargetUnsafe, match=r"it is not known whether .*; 2 of 4 changes were made before it"):
        resume(session(model), tmp_path / "journal")
    told = report(undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER))
    assert (set(model.nodes), told.left_alone, told.exit_code) == ({b"", b"/a", b"/b"}, ("/a", "/b"), 2)


def test_a_node_that_is_left_alone_keeps_those_above_it(model: LiveModel, tmp_path: Path) -> None:
    """Two that came with one transaction prove that it was ours."""
    below = Batch(tuple(CreateNode(path, b"1", OPEN_ACL) for path in (b"/t/x", b"/t/y", b"/t/z")))
    killed(model, tmp_path / "journal", "sent 1", MADE, below)
    written(model, b"/t/x")
    told = report(undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER))
    assert set(model.nodes) == {b"", b"/a", b"/b", b"/t", b"/t/x"}
    assert told.left_alone == ("/t", "/t/x")


@pytest.mark.parametrize(
    "batch",
    [
        Batch((CreateNode(b"/app", b"", OPEN_ACL), CreateNode(b"/own", b"restored", OPEN_ACL))),
        Batch((SetNode(b"/a", b"new a", 3, b"old a", 1), DeleteNode(b"/gone", 0, b"", OPEN_ACL))),
        Batch((DeleteNode(b"/gone", 0, b"", OPEN_ACL), CreateNode(b"/own", b"restored", OPEN_ACL))),
    ],
)
def test_what_others_did_is_not_taken_for_a_batch_that_was_never_sent(
    model: LiveModel, tmp_path: Path, batch: Batch
) -> None:
    """They created an empty parent, as applications do, or deleted what was to be deleted."""
    model.nodes[b"/gone"] = live(b"/gone", b"", OPEN_ACL)
    killed(model, tmp_path / "journal", "began 1", MADE, batch)
    del model.nodes[b"/gone"]
    model.nodes[b"/app"] = live(b"/app", b"", OPEN_ACL)
    model.nodes[b"/own"] = live(b"/own", b"own", OPEN_ACL)
    written(model, b"/a")
    before = {path: node for path, node in model.nodes.items() if not path.startswith(b"/t")}
    undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER)
    assert {path: node.data for path, node in model.nodes.items()} == {p: n.data for p, n in before.items()}


def test_equal_nodes_that_somebody_else_created_one_by_one_are_theirs(model: LiveModel, tmp_path: Path) -> None:
    creates = Batch((CreateNode(b"/x1", b"", OPEN_ACL), CreateNode(b"/x2", b"", OPEN_ACL)))
    killed(model, tmp_path / "journal", "began 1", MADE, creates)
    for zxid, path in enumerate((b"/x1", b"/x2"), start=10):
        model.nodes[path] = live(path, b"", OPEN_ACL)._replace(czxid=zxid, mzxid=zxid)
    told = report(undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER))
    assert (set(model.nodes), told.left_alone) == ({b"", b"/a", b"/b", b"/x1", b"/x2"}, ("/x1", "/x2"))


def test_one_equal_node_that_was_created_again_is_left_to_its_owner(model: LiveModel, tmp_path: Path) -> None:
    """The other two came with one transaction, so the batch was done."""
    creates = Batch(tuple(CreateNode(path, b"", OPEN_ACL) for path in (b"/x1", b"/x2", b"/x3")))
    killed(model, tmp_path / "journal", "sent 0", creates)
    created_anew(model, b"/x2", b"")
    told = report(undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER))
    assert (set(model.nodes), told.left_alone) == ({b"", b"/a", b"/b", b"/x2"}, ("/x2",))


def test_nothing_comes_back_below_a_node_that_stays_gone(model: LiveModel, tmp_path: Path) -> None:
    """Whether it was this run that deleted /d nobody can tell, and /d/e was below it."""
    for path in (b"/d", b"/d/e"):
        model.nodes[path] = live(path, b"", OPEN_ACL)
    inner = Batch((DeleteNode(b"/d/e", 0, b"", OPEN_ACL), CreateNode(b"/new", b"", OPEN_ACL)))
    killed(
        model, tmp_path / "journal", "began 1", inner, Batch((DeleteNode(b"/d", 0, b"", OPEN_ACL), *TWO_SETS.changes))
    )
    del model.nodes[b"/d"]
    written(model, b"/a")
    told = report(undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER))
    assert (set(model.nodes), told.left_alone) == ({b"", b"/a", b"/b"}, ("/a", "/b", "/d", "/d/e"))


def test_a_node_that_still_waits_to_be_set_proves_that_nothing_was_done(model: LiveModel, tmp_path: Path) -> None:
    killed(model, tmp_path / "journal", "began 1", MADE, TWO_SETS)
    model.nodes[b"/b"] = model.nodes[b"/b"]._replace(version=9, data=b"theirs")
    with pytest.raises(TargetUnsafe, match="2 of 4 changes were made, none of this multi"):
        resume(session(model), tmp_path / "journal")
    told = report(undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER))
    assert (set(model.nodes), told.verdict, told.exit_code) == ({b"", b"/a", b"/b"}, "undone", 0)


def test_what_one_node_proves_for_all() -> None:
    creates = Batch(tuple(CreateNode(path, b"", OPEN_ACL) for path in (b"/a", b"/b", b"/c")))
    ours, other = live(b"/a", b"", OPEN_ACL), live(b"/b", b"other", OPEN_ACL)
    third = live(b"/c", b"", OPEN_ACL)
    assert batch_state(creates, {b"/a": ours, b"/b": other, b"/c": third}) is BatchState.DONE_THEN_CHANGED
    assert batch_state(creates, {b"/a": ours, b"/c": third}) is BatchState.DONE_THEN_CHANGED, (
        "one transaction made both"
    )
    assert batch_state(creates, {b"/a": ours, b"/c": third._replace(mzxid=7)}) is BatchState.CHANGED
    unread = {b"/a": hidden(b"/a"), b"/b": other, b"/c": third._replace(data=b"other")}
    assert batch_state(creates, unread) is BatchState.CHANGED, "what nobody may look at proves nothing"


def created_anew(model: LiveModel, path: bytes, data: bytes, version: int = 0) -> None:
    """By somebody else, who has deleted it before."""
    model.nodes[path] = live(path, data, OPEN_ACL, version=version)._replace(czxid=77, mzxid=77)


@pytest.mark.parametrize("steps", ["began 0", "sent 0"])
def test_a_node_that_was_created_again_proves_nothing(model: LiveModel, tmp_path: Path, steps: str) -> None:
    """Its version is the one before the change again: whether the change was made nobody can tell, and it stays."""
    model.nodes[b"/a"] = model.nodes[b"/a"]._replace(version=0)
    first = Batch((SetNode(b"/a", b"new a", 0, b"old a", 1), TWO_SETS.changes[1]))
    killed(model, tmp_path / "journal", steps, first)
    created_anew(model, b"/a", b"theirs")
    written(model, b"/b")
    with pytest.raises(TargetUnsafe, match="it is not known whether this multi was applied"):
        resume(session(model), tmp_path / "journal")
    told = report(undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER))
    assert (model.nodes[b"/a"].data, model.nodes[b"/b"].data) == (b"theirs", b"theirs")
    assert told.left_alone == ("/a", "/b")


@pytest.mark.parametrize("change", [SetNode(b"/a", b"new", 0, b"", 1), DeleteNode(b"/a", 0, b"", OPEN_ACL, 1)])
def test_a_single_change_is_not_made_to_a_node_that_was_created_again(
    model: LiveModel, tmp_path: Path, change: SetNode | DeleteNode
) -> None:
    model.nodes[b"/a"] = live(b"/a", b"", OPEN_ACL)
    killed(model, tmp_path / "journal", "sent 0", Batch((change,)))
    created_anew(model, b"/a", b"theirs")
    with pytest.raises(TargetUnsafe, match="it is not known whether"):
        resume(session(model), tmp_path / "journal")
    assert model.nodes[b"/a"].data == b"theirs"


def test_a_node_that_was_created_again_is_no_proof_that_a_batch_was_done() -> None:
    nodes = {b"/a": live(b"/a", b"new a", OPEN_ACL, version=4), b"/b": live(b"/b", b"other", OPEN_ACL, version=9)}
    assert batch_state(TWO_SETS, nodes) is BatchState.DONE_THEN_CHANGED
    anew = {**nodes, b"/a": nodes[b"/a"]._replace(czxid=77)}
    assert batch_state(TWO_SETS, anew) is BatchState.CHANGED
    unknown = Batch(tuple(msgspec.structs.replace(change, czxid=0) for change in TWO_SETS.changes))
    assert batch_state(unknown, nodes) is BatchState.CHANGED, "a journal that does not tell proves nothing"


def test_the_root_proves_as_much_as_any_node_though_its_czxid_is_0() -> None:
    both = Batch((SetNode(b"", b"new", 0, b"old", 0), TWO_SETS.changes[0]))
    theirs = live(b"/a", b"theirs", OPEN_ACL, version=9)
    for version, data, expected in ((1, b"new", BatchState.DONE_THEN_CHANGED), (0, b"old", BatchState.NOT_DONE)):
        root = live(b"", data, OPEN_ACL, version=version)._replace(czxid=0)
        assert batch_state(both, {b"": root, b"/a": theirs}) is expected


def test_an_undo_leaves_alone_what_somebody_has_created_again(model: LiveModel, tmp_path: Path) -> None:
    """No server would refuse it: the versions are those that the undo expects."""
    begin(session(model), tmp_path / "journal", HEADING, (MADE, TWO_SETS, LAST))
    created_anew(model, b"/t/first", b"1")
    created_anew(model, b"/a", b"theirs", version=4)
    created_anew(model, b"/last", b"theirs")
    told = report(undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER))
    assert {path: data for path, (data, _) in shape(model.nodes).items()} == {
        b"": b"", b"/a": b"theirs", b"/b": b"old b", b"/last": b"theirs", b"/t": b"", b"/t/first": b"1",
    }  # fmt: skip
    assert (told.left_alone, told.exit_code) == (("/a", "/last", "/t", "/t/first"), 2)


@pytest.mark.parametrize("last", ["began 1", "sent 1", "noted 1"])
def test_what_is_taken_back_is_not_resumed(model: LiveModel, tmp_path: Path, last: str) -> None:
    """Its first half would be missing, and the run would call that somebody else's doing."""
    killed(model, tmp_path / "journal", last, MADE, TWO_SETS, LAST)

    def dies(step: str) -> None:
        if step == "began 0":
            raise Killed

    with pytest.raises(Killed):
        undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER, dies)
    before = dict(model.nodes)
    with pytest.raises(TargetUnsafe, match="an undo of its changes has begun") as caught:
        resume(session(model), tmp_path / "journal")
    assert f"--resume {tmp_path / 'undo'}" in caught.value.remedy
    assert model.nodes == before
    resume(session(model), tmp_path / "undo")
    assert set(model.nodes) == {b"", b"/a", b"/b"}
    with pytest.raises(TargetUnsafe, match="an undo of its changes has begun"):
        resume(session(model), tmp_path / "journal")


def test_an_undo_that_never_came_to_its_first_change_leaves_the_journal_as_it_is(
    model: LiveModel, tmp_path: Path
) -> None:
    killed(model, tmp_path / "journal", "noted 0", MADE, TWO_SETS)
    (tmp_path / "undo").touch()
    with pytest.raises(UsageError, match="this file exists already"):
        undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER)
    assert resume(session(model), tmp_path / "journal").checked.differing == ()


def test_a_batch_in_doubt_stays_in_doubt_when_an_undo_has_begun(model: LiveModel, tmp_path: Path) -> None:
    killed(model, tmp_path / "journal", "sent 1", MADE, TWO_SETS)
    written(model, b"/a")
    written(model, b"/b")
    undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER)
    recorded = read_journal(tmp_path / "journal")
    assert (recorded.done, recorded.in_doubt, recorded.undos) == (1, True, (str(tmp_path / "undo"),))
