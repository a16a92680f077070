"""A subtree's restore, and the undo of it, that were interrupted: which of the two may still go on."""

from pathlib import Path

import pytest

from logkeep.errors import TargetUnsafe
from logkeep.zookeeper.subtree.carrying_out import resume, undo
from logkeep.zookeeper.subtree.journal import Journal, TakenBack, read_journal
from tests.unit.zookeeper.test_subtree_interrupted import (
    LAST,
    MADE,
    MAXBUFFER,
    TWO_SETS,
    Killed,
    killed,
    model,
    session,
)
from tests.zookeeper.live_model import LiveModel

__all__ = ["model"]


def _undo_killed(model: LiveModel, journal: Path, last: str) -> Path:
    def after(step: str) -> None:
        if step == last:
            raise Killed

    with pytest.raises(Killed):
        undo(session(model), journal, journal.with_name("undo"), MAXBUFFER, after)
    return journal.with_name("undo")


def _undo_killed_before_its_note(model: LiveModel, journal: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    note = Journal.note

    def dies(self: Journal, *lines: object) -> None:
        if isinstance(lines[0], TakenBack):
            raise Killed
        note(self, *lines)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "note", dies)
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
    with pytest.raises(TargetUnsafe, match="an undo has begun"):
        resume(session(model), tmp_path / "journal")
    resume(session(model), back)
    assert read_journal(tmp_path / "journal").taken_back == (str(back),), "once is enough"


def test_an_undo_that_was_killed_before_its_note_makes_it_later(
    model: LiveModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(model, tmp_path / "journal", "noted 1", MADE, TWO_SETS, LAST)
    back = _undo_killed_before_its_note(model, tmp_path / "journal", monkeypatch)
    resume(session(model), back)
    with pytest.raises(TargetUnsafe, match="an undo has begun"):
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
    with pytest.raises(TargetUnsafe, match="has gone on since it was planned") as caught:
        resume(session(model), back)
    assert (model.nodes, caught.value.remedy.endswith(f"--undo {tmp_path / 'journal'}")) == (before, True)
    undo(session(model), tmp_path / "journal", tmp_path / "whole", MAXBUFFER)
    assert set(model.nodes) == {b"", b"/a", b"/b"}
