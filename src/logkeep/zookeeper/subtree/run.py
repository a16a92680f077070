"""Apply batches one after the other, with a line in the journal before and after each: begin, resume, undo.

A server applies a batch as a whole or not at all. A change by another client stops the run; the changes that were made
stay, and the journal can undo them. `after` is called after each step: tests end the run there.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from logkeep.errors import ClusterError, ClusterUnreachable, LogkeepError, NotAuthorised, TargetUnsafe
from logkeep.formats.zookeeper import shown
from logkeep.model.plurals import plural
from logkeep.model.shell_words import shell_word
from logkeep.zookeeper.server.client import LiveNode, ZooKeeperSession
from logkeep.zookeeper.subtree.batches import (
    Batch,
    BatchState,
    batch_request,
    batch_state,
    changed_by_others,
    created_again,
    is_gone_by_itself,
)
from logkeep.zookeeper.subtree.journal import (
    BatchBegan,
    BatchDone,
    BatchRefused,
    Heading,
    JournalState,
    SubtreeJournal,
    UndoBegan,
    locked_journal,
    may_have_acted,
    new_journal,
    reopen_journal,
)
from logkeep.zookeeper.subtree.result_check import SubtreeCheck, check_result
from logkeep.zookeeper.subtree.undo import effective_batches, left_alone, undo_batches

Step = Callable[[str], None]
_CHANGED: Final = {
    -101: "a node is missing",
    -103: "a node has another version",
    -108: "a node above belongs to a session now",
    -110: "a node exists that did not",
    -111: "a node has new children",
}
_DONE: Final = (BatchState.DONE, BatchState.DONE_THEN_CHANGED)
_NO_AUTH, _BAD_ACL, _UNKNOWN = -102, -114, -6


@dataclass(frozen=True)
class SubtreeRunEnd:
    """A run that completed."""

    journal: Path
    heading: Heading
    batches: int
    changes: int
    checked: SubtreeCheck


def begin(
    session: ZooKeeperSession, path: Path, heading: Heading, batches: Sequence[Batch], after: Step = lambda _: None
) -> SubtreeRunEnd:
    """Raises TargetUnsafe for changes by another client, NotAuthorised, ClusterError."""
    journal = new_journal(path, heading, batches)
    try:
        after("ready")
    except BaseException:
        journal.close()
        raise
    return _apply(session, journal, JournalState(heading, tuple(batches), 0, in_doubt=False), after)


def resume(session: ZooKeeperSession, path: Path, after: Step = lambda _: None) -> SubtreeRunEnd:
    """Resume a run after its last step. While an undo is resumed, the journal that it undoes is locked."""
    journal, recorded = reopen_journal(path)
    with ExitStack() as stack:
        try:
            _check_no_undo(path, recorded)
            if recorded.heading.undoes:
                undone = stack.enter_context(locked_journal(Path(recorded.heading.undoes)))
                _note_undo(undone, path, recorded.heading)
            settled = _settle(session, journal, recorded)
            _check_settled(journal, settled)
            after("settled")
        except BaseException:
            journal.close()
            raise
        return _apply(session, journal, settled, after, late=recorded.done if recorded.doubted else None)


def undo(
    session: ZooKeeperSession, path: Path, new: Path, jute_maxbuffer: int, after: Step = lambda _: None
) -> SubtreeRunEnd:
    """Undo the changes that the journal has recorded as done. The undo writes a journal of its own at `new`.

    Of a batch that was in doubt, nodes that another client has changed since are left alone, and the heading names
    them. The first journal is locked meanwhile.
    """
    journal, recorded = reopen_journal(path)
    try:
        settled = _settle(session, journal, recorded)

        def noting(step: str) -> None:
            if step == "ready":
                journal.note(UndoBegan(str(new.absolute())))
            after(step)

        return _begin_undo(session, path, settled, new, jute_maxbuffer, noting)
    finally:
        journal.close()


def _begin_undo(
    session: ZooKeeperSession, path: Path, settled: JournalState, new: Path, jute_maxbuffer: int, after: Step
) -> SubtreeRunEnd:
    left = _left_alone(session, settled)
    batches = undo_batches(_effective_batches(settled), jute_maxbuffer, left)
    before = settled.heading
    heading = Heading(
        hosts=before.hosts,
        top=before.top,
        what=f"undo of {path.name}",
        undoes=str(path.absolute()),
        undoes_begun=settled.begun,
        stored=before.stored,
        left_alone=tuple(map(shown, left)) or msgspec.UNSET,
    )
    return begin(session, new, heading, batches, after)


def _left_alone(session: ZooKeeperSession, settled: JournalState) -> tuple[bytes, ...]:
    """Of batches that were in doubt all changed nodes. Of other batches the server's check of versions decides; but
    versions of a node that was created again count from 0, so these nodes are left alone too."""
    theirs, there = set[bytes](), dict[bytes, LiveNode]()
    for number, batch in enumerate(settled.batches[: settled.done]):
        live = _live(session, batch)
        theirs.update(created_again(batch, live))
        if number in settled.changed:
            theirs.update(changed_by_others(batch, live))
        there |= live
    if settled.in_doubt:
        unclear = settled.batches[settled.done]
        theirs.update(change.path for change in unclear.changes)
        there |= _live(session, unclear)
    return left_alone(_effective_batches(settled), theirs, there)


def _effective_batches(settled: JournalState) -> tuple[Batch, ...]:
    return effective_batches(settled.batches[: settled.done], settled.gone)


def _settle(session: ZooKeeperSession, journal: SubtreeJournal, recorded: JournalState) -> JournalState:
    """Find out whether the batch in doubt was applied, and note it. If that cannot be decided, it stays in doubt."""
    if not recorded.in_doubt:
        return recorded
    batch = recorded.batches[recorded.done]
    found = _state_of(session, batch)
    if found is BatchState.CHANGED:
        return recorded
    number, changed = recorded.done, found is BatchState.DONE_THEN_CHANGED
    journal.note(BatchDone(number, changed) if found in _DONE else BatchRefused(number, doubted=True))
    noted = (*recorded.changed, number) if changed else recorded.changed
    return replace(recorded, done=number + (found in _DONE), in_doubt=False, doubted=False, changed=noted)


def _state_of(session: ZooKeeperSession, batch: Batch) -> BatchState:
    return batch_state(batch, _live(session, batch))


def _live(session: ZooKeeperSession, batch: Batch) -> dict[bytes, LiveNode]:
    session.catch_up()
    return {node.path: node for node in session.read_nodes([change.path for change in batch.changes])}


def _apply(
    session: ZooKeeperSession, journal: SubtreeJournal, recorded: JournalState, after: Step, *, late: int | None = None
) -> SubtreeRunEnd:
    """`late`: a batch that an earlier run may have sent, and that was not applied when this run checked it."""
    changes = sum(len(batch.changes) for batch in recorded.batches[: recorded.done]) - len(recorded.gone)
    try:
        for number in range(recorded.done, len(recorded.batches)):
            changes += _apply_batch(session, journal, recorded, number, after, came_late=number == late)
        check = check_result(session, recorded.batches)
    finally:
        journal.close()
    return SubtreeRunEnd(journal.path, recorded.heading, len(recorded.batches), changes, check)


def _apply_batch(
    session: ZooKeeperSession,
    journal: SubtreeJournal,
    recorded: JournalState,
    number: int,
    after: Step,
    *,
    came_late: bool = False,
) -> int:
    """The number of changes that were made: 0 where the server had removed the node by itself."""
    batch = recorded.batches[number]
    journal.note(BatchBegan(number))
    after(f"began {number}")
    try:
        code = session.ask(batch_request(batch), shown(batch.changes[0].path))
    except ClusterUnreachable as error:
        raise ClusterUnreachable(
            error.what, subject=error.subject, remedy=f"resume it with --resume {shell_word(journal.path)}"
        ) from error
    after(f"sent {number}")
    changed = False
    if code in _CHANGED and came_late and (found := _state_of(session, batch)) in _DONE:
        # The first of the two requests has reached the server; the expected versions let only one succeed.
        code, changed = 0, found is BatchState.DONE_THEN_CHANGED
    gone = is_gone_by_itself(batch, code)
    journal.note(BatchRefused(number) if code and not gone else BatchDone(number, changed, gone))
    after(f"noted {number}")
    if gone:
        return 0
    if code:
        so_far = JournalState(recorded.heading, recorded.batches, number, in_doubt=False)
        raise _refusal(code, journal, so_far, batch)
    return len(batch.changes)


def _refusal(code: int, journal: SubtreeJournal, recorded: JournalState, batch: Batch) -> LogkeepError:
    if code in _CHANGED:
        what = f"another client has changed it meanwhile: {_CHANGED[code]}; {_progress(recorded)}"
        remedy = f"run it again for a new plan, or undo the changes with --undo {shell_word(journal.path)}"
        return TargetUnsafe(what, subject=_paths_of(batch), remedy=remedy)
    if code == _NO_AUTH:
        remedy = f"give credentials with --auth-file and resume with --resume {shell_word(journal.path)}"
        return NotAuthorised(f"an ACL forbids it; {_progress(recorded)}", subject=_paths_of(batch), remedy=remedy)
    reasons = {
        _BAD_ACL: "the server does not accept one of its ACLs",
        _UNKNOWN: "the server does not support such nodes (containers need 3.5; a time to live needs "
        "zookeeper.extendedTypesEnabled)",
    }
    what = f"{reasons.get(code, f'the server refused with {code}')}; {_progress(recorded)}"
    remedy = f"undo the changes with --undo {shell_word(journal.path)}"
    return ClusterError(what, subject=_paths_of(batch), remedy=remedy)


def _check_no_undo(path: Path, recorded: JournalState) -> None:
    """An undo that was stopped before its first change does not matter: it notices a resume by itself."""
    acting = [undo for undo in recorded.undos if may_have_acted(Path(undo))]
    if acting:
        raise TargetUnsafe(
            "an undo of its changes has begun: a resume would apply only the rest of the plan",
            subject=str(path),
            remedy=f"end the undo with --resume {shell_word(acting[-1])}, or run the restore again for a new plan",
        )


def _note_undo(undone: tuple[SubtreeJournal, JournalState] | None, path: Path, heading: Heading) -> None:
    """Note the undo at `path` in the journal that it undoes, if it is missing there: the undo is of an earlier version,
    or was killed just before. Raises TargetUnsafe if that journal was resumed instead."""
    if undone is None:
        return
    journal, recorded = undone
    if heading.undoes_begun is not msgspec.UNSET and recorded.begun > heading.undoes_begun:
        raise TargetUnsafe(
            "the run that it undoes was resumed since: only the first part of its changes would be undone",
            subject=str(path),
            remedy=f"undo all of it with --undo {shell_word(journal.path)}",
        )
    if str(path.absolute()) not in recorded.undos:
        journal.note(UndoBegan(str(path.absolute())))


def _check_settled(journal: SubtreeJournal, recorded: JournalState) -> None:
    if not recorded.in_doubt:
        return
    what = (
        "the run was interrupted here, and another client has changed these nodes since, so it is not known whether "
        f"this multi was applied; {_progress_text(recorded)} before it"
    )
    remedy = f"run it again for a new plan, or undo the changes before with --undo {shell_word(journal.path)}"
    raise TargetUnsafe(what, subject=_paths_of(recorded.batches[recorded.done]), remedy=remedy)


def _paths_of(batch: Batch) -> str:
    first, last = shown(batch.changes[0].path), shown(batch.changes[-1].path)
    return first if first == last else f"{first} … {last}"


def _progress(recorded: JournalState) -> str:
    return f"{_progress_text(recorded)}, none of this multi"


def _progress_text(recorded: JournalState) -> str:
    changes = sum(len(batch.changes) for batch in recorded.batches[: recorded.done])
    whole = sum(len(batch.changes) for batch in recorded.batches)
    return f"{changes} of {plural(whole, 'change was', 'changes were')} made"
