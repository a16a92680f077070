"""Containers and nodes with a time to live that a restore of a subtree made, and that the server has removed since."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from logkeep.errors import TargetUnsafe
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Acl, Acls
from logkeep.zookeeper.subtree.batches import Batch, BatchState, batch_state, cut_batches, is_gone_by_itself
from logkeep.zookeeper.subtree.changes import CreateNode, DeleteNode, SetNode, SetNodeAcls, reversed_change
from logkeep.zookeeper.subtree.journal import read_journal
from logkeep.zookeeper.subtree.plan import plan
from logkeep.zookeeper.subtree.run import begin, resume, undo
from logkeep.zookeeper.subtree.source_nodes import WantedNode, WantedSubtree
from tests.support.zookeeper.live_model import LiveModel, live
from tests.unit.zookeeper.subtree.test_interrupted import HEADING, MAXBUFFER, killed, model, report, session

__all__ = ["model"]
OWN: Acls = (Acl(31, b"digest", b"shop:hash"),)
PARENT = CreateNode(b"/p", b"", OPEN_ACL)
CONTAINER = CreateNode(b"/p/c", b"", OPEN_ACL, container=True)
SHORT = CreateNode(b"/p/c/t", b"t", OPEN_ACL, ttl_ms=50)
LONG = CreateNode(b"/p/long", b"", OPEN_ACL, ttl_ms=1 << 30)
MADE = Batch((PARENT, CONTAINER, SHORT, LONG))


def _expired(model: LiveModel, *paths: bytes) -> None:
    for path in paths:
        del model.nodes[path]


def test_an_undo_takes_back_the_rest_and_names_nobody(model: LiveModel, tmp_path: Path) -> None:
    before = set(model.nodes)
    begin(session(model), tmp_path / "journal", HEADING, (MADE,))
    _expired(model, b"/p/c/t", b"/p/c")
    told = report(undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER))
    assert set(model.nodes) == before
    assert (told.verdict, told.left_alone, told.differing, told.exit_code) == ("undone", (), (), 0)
    assert told.made == 2, "what was gone by itself was not made by us"


def test_its_resume_counts_the_same(model: LiveModel, tmp_path: Path) -> None:
    begin(session(model), tmp_path / "journal", HEADING, (MADE,))
    _expired(model, b"/p/c/t", b"/p/c")

    def after(step: str) -> None:
        if step == "noted 2":
            raise TargetUnsafe("stopped")

    with pytest.raises(TargetUnsafe):
        undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER, after)
    assert read_journal(tmp_path / "undo").gone == (1, 2)
    assert report(resume(session(model), tmp_path / "undo")).made == 2


def test_a_node_that_no_server_removes_still_stops_an_undo(model: LiveModel, tmp_path: Path) -> None:
    begin(session(model), tmp_path / "journal", HEADING, (Batch((PARENT,)),))
    del model.nodes[b"/p"]
    with pytest.raises(TargetUnsafe, match="another client has changed it meanwhile: a node is missing"):
        undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER)


def test_after_a_kill_they_are_not_somebody_elses_doing(model: LiveModel, tmp_path: Path) -> None:
    change = SetNode(b"/a", b"new a", 3, b"old a", 1)
    killed(model, tmp_path / "journal", "sent 0", Batch((change, PARENT, CONTAINER, SHORT, LONG)))
    _expired(model, b"/p/c/t", b"/p/c", b"/p/long")
    told = report(undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER))
    assert (set(model.nodes), model.nodes[b"/a"].data, told.left_alone) == ({b"", b"/a", b"/b"}, b"old a", ())
    assert (told.verdict, told.exit_code) == ("undone", 0)


def test_a_restore_does_not_call_them_changed_by_others(model: LiveModel, tmp_path: Path) -> None:
    def after(step: str) -> None:
        if step == "noted 0":
            _expired(model, b"/p/c/t")

    ended = begin(session(model), tmp_path / "journal", HEADING, (MADE,), after)
    assert (ended.checked.differing, ended.changes) == ((), 4)
    model.nodes[b"/p/long"] = model.nodes[b"/p/long"]._replace(data=b"theirs")
    assert resume(session(model), tmp_path / "journal").checked.differing == (b"/p/long",)


def test_acls_of_one_that_is_gone_need_not_be_set(model: LiveModel, tmp_path: Path) -> None:
    nodes = {b"/p": WantedNode(b"", OWN, ttl_ms=50), b"/p/x": WantedNode(b"", OPEN_ACL, ttl_ms=50)}
    planned = plan(
        WantedSubtree(b"/p", nodes, {}, ()), {b"": live(b"", b"", OPEN_ACL)}, delete_extra=False, proven=True
    )
    batches = cut_batches(planned.changes, MAXBUFFER)
    assert isinstance(batches[-1].changes[0], SetNodeAcls)

    def after(step: str) -> None:
        if step == "noted 0":
            _expired(model, b"/p/x", b"/p")

    ended = begin(session(model), tmp_path / "journal", HEADING, batches, after)
    assert (ended.checked.differing, ended.changes) == ((), 2)
    told = report(undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER))
    assert (told.verdict, told.made, set(model.nodes)) == ("undone", 0, {b"", b"/a", b"/b"})
    assert batch_state(batches[-1], {}) is BatchState.DONE


def test_an_undo_of_the_undo_brings_back_only_what_the_undo_removed(model: LiveModel, tmp_path: Path) -> None:
    """And as what it was: a lock that its server had removed must not come back, least of all for good."""
    begin(session(model), tmp_path / "journal", HEADING, (MADE,))
    _expired(model, b"/p/c/t", b"/p/c")
    undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER)
    ended = undo(session(model), tmp_path / "undo", tmp_path / "again", MAXBUFFER)
    assert [c for batch in read_journal(tmp_path / "again").batches for c in batch.changes] == [PARENT, LONG]
    assert (set(model.nodes), ended.changes) == ({b"", b"/a", b"/b", b"/p", b"/p/long"}, 2)


def test_a_container_that_went_behind_its_child_comes_back_with_it(model: LiveModel, tmp_path: Path) -> None:
    child = CreateNode(b"/p/c/x", b"", OPEN_ACL)
    begin(session(model), tmp_path / "journal", HEADING, (Batch((PARENT, CONTAINER, child)),))

    def after(step: str) -> None:
        if step == "noted 0":
            _expired(model, b"/p/c")

    undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER, after)
    assert read_journal(tmp_path / "undo").gone == (1,)
    undo(session(model), tmp_path / "undo", tmp_path / "again", MAXBUFFER)
    again = [c for batch in read_journal(tmp_path / "again").batches for c in batch.changes]
    assert again == [PARENT, CONTAINER, child]


def test_a_delete_of_a_former_journal_may_still_be_gone() -> None:
    """It does not say what the node was, only that its server may remove it."""
    line = b'{"type":"delete","path":"L3A=","version":0,"before":"","before_acls":[],"may_be_gone":true}'
    read = msgspec.json.decode(line, type=DeleteNode)
    assert is_gone_by_itself(Batch((read,)), -101)
    assert reversed_change(read) == CreateNode(b"/p", b"", ())


@pytest.mark.parametrize("kind", [{"ttl_ms": 50}, {"container": True}])
@pytest.mark.parametrize(("data", "acls"), [(b"new", OPEN_ACL), (b"old", OWN), (b"new", OWN)])
def test_an_undo_ends_where_one_that_was_set_is_gone(
    model: LiveModel, tmp_path: Path, data: bytes, acls: Acls, kind: dict[str, Any]
) -> None:
    """It takes back everything else, which goes in other requests, and names nobody."""
    model.nodes[b"/k"] = live(b"/k", b"old", OPEN_ACL, version=1)
    nodes = {b"/a": WantedNode(b"new a", OPEN_ACL), b"/k": WantedNode(data, acls, **kind)}
    planned = plan(WantedSubtree(b"", nodes, {}, ()), model.nodes, delete_extra=False, proven=True)
    begin(session(model), tmp_path / "journal", HEADING, cut_batches(planned.changes, MAXBUFFER))
    assert (model.nodes[b"/k"].data, model.nodes[b"/k"].acls) == (data, acls)
    _expired(model, b"/k")
    assert resume(session(model), tmp_path / "journal").checked.differing == ()
    told = report(undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER))
    assert (model.nodes[b"/a"].data, told.verdict, told.differing, told.made) == (b"old a", "undone", (), 1)
