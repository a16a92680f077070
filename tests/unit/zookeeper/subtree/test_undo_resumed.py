"""A subtree's restore, and the undo of it, that were interrupted: which of the two may still go on."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from logkeep.errors import TargetUnsafe
from logkeep.formats.zookeeper.transactions import Acl
from logkeep.zookeeper.subtree.batches import cut_batches
from logkeep.zookeeper.subtree.journal import (
    BatchBegan,
    BatchRefused,
    SubtreeJournal,
    UndoBegan,
    new_journal,
    read_journal,
)
from logkeep.zookeeper.subtree.plan import plan
from logkeep.zookeeper.subtree.run import begin, resume, undo
from logkeep.zookeeper.subtree.source_nodes import WantedNode, WantedSubtree
from tests.support.zookeeper.live_model import LiveModel, shape
from tests.unit.zookeeper.subtree.test_interrupted import (
    HEADING,
    LAST,
    MADE,
    MAXBUFFER,
    TWO_SETS,
    Killed,
    killed,
    model,
    session,
    written,
)

__all__ = ["model"]


def _undo_killed(model: LiveModel, journal: Path, last: str) -> Path:
    def after(step: str) -> None:
        if step == last:
            raise Killed

    with pytest.raises(Killed):
        undo(session(model), journal, journal.with_name("undo"), MAXBUFFER, after)
    return journal.with_name("undo")


def _undo_killed_before_its_note(model: LiveModel, journal: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    note = SubtreeJournal.note

    def dies(self: SubtreeJournal, *lines: object) -> None:
        if isinstance(lines[0], UndoBegan):
            raise Killed
        note(self, *lines)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(SubtreeJournal, "note", dies)
        with pytest.raises(Killed):
            undo(session(model), journal, journal.with_name("undo"), MAXBUFFER)
    return journal.with_name("undo")


def _without_note(journal: Path, torn: bytes) -> None:
    """As a former version left it; `torn`: what a crash left without its end."""
    lines = journal.read_bytes().splitlines(keepends=True)
    assert b"taken-back" in lines[-1]
    journal.write_bytes(b"".join(lines[:-1]) + torn)


@pytest.mark.parametrize("torn", [b"", b'{"type":"beg'])
def test_an_undo_of_a_former_version_notes_that_it_takes_back(model: LiveModel, tmp_path: Path, torn: bytes) -> None:
    killed(model, tmp_path / "journal", "noted 1", MADE, TWO_SETS, LAST)
    back = _undo_killed(model, tmp_path / "journal", "noted 0")
    _without_note(tmp_path / "journal", torn)
    resume(session(model), back)
    assert set(model.nodes) == {b"", b"/a", b"/b"}
    with pytest.raises(TargetUnsafe, match="an undo of its changes has begun"):
        resume(session(model), tmp_path / "journal")
    resume(session(model), back)
    assert read_journal(tmp_path / "journal").undos == (str(back),), "once is enough"


def test_an_undo_that_was_killed_before_its_note_makes_it_later(
    model: LiveModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(model, tmp_path / "journal", "noted 1", MADE, TWO_SETS, LAST)
    back = _undo_killed_before_its_note(model, tmp_path / "journal", monkeypatch)
    resume(session(model), back)
    with pytest.raises(TargetUnsafe, match="an undo of its changes has begun"):
        resume(session(model), tmp_path / "journal")
    assert set(model.nodes) == {b"", b"/a", b"/b"}


@pytest.mark.parametrize("last", ["began 2", "noted 2"])
def test_an_undo_does_not_take_back_the_first_part_of_what_went_on(
    model: LiveModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    def after(step: str) -> None:
        if step == last:
            raise Killed

    killed(model, tmp_path / "journal", "noted 1", MADE, TWO_SETS, LAST)
    back = _undo_killed_before_its_note(model, tmp_path / "journal", monkeypatch)
    with pytest.raises(Killed):
        resume(session(model), tmp_path / "journal", after)
    before = dict(model.nodes)
    with pytest.raises(TargetUnsafe, match="was resumed since") as caught:
        resume(session(model), back)
    assert (model.nodes, caught.value.remedy.endswith(f"--undo {tmp_path / 'journal'}")) == (before, True)
    undo(session(model), tmp_path / "journal", tmp_path / "whole", MAXBUFFER)
    assert set(model.nodes) == {b"", b"/a", b"/b"}


def test_a_restore_goes_on_when_its_undo_was_stopped_before_the_first_change(model: LiveModel, tmp_path: Path) -> None:
    killed(model, tmp_path / "journal", "noted 1", MADE, TWO_SETS, LAST)
    back = _undo_killed(model, tmp_path / "journal", "ready")
    assert read_journal(tmp_path / "journal").undos == (str(back),)
    assert resume(session(model), tmp_path / "journal").checked.differing == ()
    assert b"/last" in model.nodes
    with pytest.raises(TargetUnsafe, match="was resumed since"):
        resume(session(model), back)


def test_a_restore_goes_on_when_its_undo_was_refused_at_once(model: LiveModel, tmp_path: Path) -> None:
    killed(model, tmp_path / "journal", "noted 1", MADE, TWO_SETS, LAST)
    written(model, b"/b")
    with pytest.raises(TargetUnsafe, match="0 of 4 changes were made"):
        undo(session(model), tmp_path / "journal", tmp_path / "undo", MAXBUFFER)
    assert resume(session(model), tmp_path / "journal").checked.differing == (b"/b",)


@pytest.mark.parametrize(("content", "goes_on"), [(None, False), (b"no journal\n", False), (b"", True)])
def test_what_an_undo_did_is_not_known_where_its_journal_is_gone(
    model: LiveModel, tmp_path: Path, content: bytes | None, goes_on: bool
) -> None:
    """Somebody may have moved it; one without its first lines never came to a change."""
    killed(model, tmp_path / "journal", "noted 1", MADE, TWO_SETS, LAST)
    back = _undo_killed(model, tmp_path / "journal", "ready")
    back.unlink()
    if content is not None:
        back.write_bytes(content)
    if goes_on:
        resume(session(model), tmp_path / "journal")
    else:
        with pytest.raises(TargetUnsafe, match="an undo of its changes has begun") as caught:
            resume(session(model), tmp_path / "journal")
        assert "run the restore again for a new plan" in caught.value.remedy
    assert (b"/last" in model.nodes) is goes_on


def test_a_restore_does_not_go_on_when_an_earlier_one_of_two_undos_has_acted(model: LiveModel, tmp_path: Path) -> None:
    killed(model, tmp_path / "journal", "noted 1", MADE, TWO_SETS, LAST)
    back = _undo_killed(model, tmp_path / "journal", "noted 0")
    with pytest.raises(TargetUnsafe, match="0 of 4 changes were made"):
        undo(session(model), tmp_path / "journal", tmp_path / "second", MAXBUFFER)
    with pytest.raises(TargetUnsafe, match="an undo of its changes has begun") as caught:
        resume(session(model), tmp_path / "journal")
    assert caught.value.remedy == f"end the undo with --resume {back}, or run the restore again for a new plan"


@pytest.mark.parametrize("ended", ["doubted", "former"])
def test_a_restore_does_not_go_on_when_its_undo_may_still_act(model: LiveModel, tmp_path: Path, ended: str) -> None:
    """A request of it may come late; and one of a former version would not see that the restore went on."""
    killed(model, tmp_path / "journal", "noted 1", MADE, TWO_SETS, LAST)
    undone = replace(HEADING, undoes=str(tmp_path / "journal"))
    heading = replace(undone, undoes_begun=2) if ended == "doubted" else undone
    back = new_journal(tmp_path / "undo", heading, (LAST,))
    if ended == "doubted":
        back.note(BatchBegan(0), BatchRefused(0, doubted=True))
    back.close()
    with (tmp_path / "journal").open("ab") as original:
        original.write(msgspec.json.encode(UndoBegan(str(back.path))) + b"\n")
    with pytest.raises(TargetUnsafe, match="an undo of its changes has begun"):
        resume(session(model), tmp_path / "journal")


def test_an_undo_of_the_undo_gives_parents_their_own_acls_again(model: LiveModel, tmp_path: Path) -> None:
    """They are created anew, and versions of their ACLs count from 0."""
    own = (Acl(31, b"digest", b"shop:hash"),)
    wanted = WantedSubtree(b"/t", {path: WantedNode(b"", own) for path in (b"/t", b"/t/k")}, {}, ())
    planned = plan(wanted, model.nodes, delete_extra=False, proven=True)
    before = shape(model.nodes)
    begin(session(model), tmp_path / "journal", HEADING, cut_batches(planned.changes, MAXBUFFER))
    restored = shape(model.nodes)
    for number, expected in enumerate((before, restored, before, restored)):
        last = tmp_path / ("journal" if number == 0 else f"undo {number}")
        undo(session(model), last, tmp_path / f"undo {number + 1}", MAXBUFFER)
        assert shape(model.nodes) == expected
