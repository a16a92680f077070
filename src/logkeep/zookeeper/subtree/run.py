"""Batches carried out one after the other, each noted before and behind. Decides nothing but when to stop.

A server takes a batch as a whole or not at all. What somebody else changed meanwhile stops the run; what was done until
then stays, and the journal can take it back. `after` is called behind each step: a test ends the run there.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from logkeep.errors import ClusterError, ClusterUnreachable, LogkeepError, NotAuthorised, TargetUnsafe
from logkeep.formats.zookeeper import shown
from logkeep.zookeeper.server.client import LiveNode, ZooKeeperSession
from logkeep.zookeeper.subtree.batches import (
    Batch,
    BatchState,
    created_again,
    foreign,
    is_gone_by_itself,
    sent,
    standing,
)
from logkeep.zookeeper.subtree.journal import (
    BatchBegan,
    BatchDone,
    BatchRefused,
    Heading,
    Recorded,
    SubtreeJournal,
    TakenBack,
    held,
    may_have_acted,
    new_journal,
    reopened,
)
from logkeep.zookeeper.subtree.result_check import SubtreeCheck, checked
from logkeep.zookeeper.subtree.undo import came_about, left_alone, taken_back

Step = Callable[[str], None]
_CHANGED: Final = {
    -101: "a node is gone",
    -103: "a node has another version",
    -108: "a node above belongs to a session now",
    -110: "a node is there that was not",
    -111: "a node has children that it had not",
}
_DONE: Final = (BatchState.DONE, BatchState.DONE_THEN_CHANGED)
_NO_AUTH, _BAD_ACL, _UNKNOWN = -102, -114, -6


@dataclass(frozen=True)
class SubtreeRunEnd:
    """A run that came to its end."""

    journal: Path
    heading: Heading
    batches: int
    changes: int
    checked: SubtreeCheck


def begin(
    session: ZooKeeperSession, path: Path, heading: Heading, batches: Sequence[Batch], after: Step = lambda _: None
) -> SubtreeRunEnd:
    """Raises TargetUnsafe for what somebody else changed, NotAuthorised, ClusterError."""
    journal = new_journal(path, heading, batches)
    try:
        after("ready")
    except BaseException:
        journal.close()
        raise
    return _go_on(session, journal, Recorded(heading, tuple(batches), 0, in_doubt=False), after)


def resume(session: ZooKeeperSession, path: Path, after: Step = lambda _: None) -> SubtreeRunEnd:
    """Go on where it ended, whatever ended it. Of an undo, nobody goes on with what it takes back meanwhile."""
    journal, recorded = reopened(path)
    with ExitStack() as stack:
        try:
            _refuse_taken_back(path, recorded)
            if recorded.heading.undoes:
                _note_taken_back(stack.enter_context(held(Path(recorded.heading.undoes))), path, recorded.heading)
            settled = _settled(session, journal, recorded)
            _refuse_unclear(journal, settled)
            after("settled")
        except BaseException:
            journal.close()
            raise
        return _go_on(session, journal, settled, after, late=recorded.done if recorded.doubted else None)


def undo(
    session: ZooKeeperSession, path: Path, new: Path, jute_maxbuffer: int, after: Step = lambda _: None
) -> SubtreeRunEnd:
    """Take back what the journal says is done; that has a journal of its own, and is resumed by it.

    Of a batch that was in doubt, what somebody else has changed since is left alone, and the heading names it. Nobody
    goes on with the first journal meanwhile.
    """
    journal, recorded = reopened(path)
    try:
        settled = _settled(session, journal, recorded)

        def noting(step: str) -> None:
            if step == "ready":
                journal.note(TakenBack(str(new.absolute())))
            after(step)

        return _taken_back(session, path, settled, new, jute_maxbuffer, noting)
    finally:
        journal.close()


def _taken_back(
    session: ZooKeeperSession, path: Path, settled: Recorded, new: Path, jute_maxbuffer: int, after: Step
) -> SubtreeRunEnd:
    left = _left_alone(session, settled)
    batches = taken_back(_came_about(settled), jute_maxbuffer, left)
    before = settled.heading
    heading = Heading(
        hosts=before.hosts,
        top=before.top,
        what=f"what {path.name} did is taken back",
        undoes=str(path.absolute()),
        undoes_begun=settled.begun,
        stored=before.stored,
        left_alone=tuple(map(shown, left)) or msgspec.UNSET,
    )
    return begin(session, new, heading, batches, after)


def _left_alone(session: ZooKeeperSession, settled: Recorded) -> tuple[bytes, ...]:
    """Of batches that were in doubt all that is changed. Of all others the server's own check of versions decides; but
    versions of a node that was created again count from 0, so these are left alone too."""
    theirs, there = set[bytes](), dict[bytes, LiveNode]()
    for number, batch in enumerate(settled.batches[: settled.done]):
        live = _live(session, batch)
        theirs.update(created_again(batch, live))
        if number in settled.changed:
            theirs.update(foreign(batch, live))
        there |= live
    if settled.in_doubt:
        unclear = settled.batches[settled.done]
        theirs.update(change.path for change in unclear.changes)
        there |= _live(session, unclear)
    return left_alone(_came_about(settled), theirs, there)


def _came_about(settled: Recorded) -> tuple[Batch, ...]:
    return came_about(settled.batches[: settled.done], settled.gone)


def _settled(session: ZooKeeperSession, journal: SubtreeJournal, recorded: Recorded) -> Recorded:
    """Whether the batch in doubt was carried out, found out and noted; it stays in doubt where nobody can tell."""
    if not recorded.in_doubt:
        return recorded
    batch = recorded.batches[recorded.done]
    found = _stands(session, batch)
    if found is BatchState.CHANGED:
        return recorded
    number, changed = recorded.done, found is BatchState.DONE_THEN_CHANGED
    journal.note(BatchDone(number, changed) if found in _DONE else BatchRefused(number, doubted=True))
    noted = (*recorded.changed, number) if changed else recorded.changed
    return replace(recorded, done=number + (found in _DONE), in_doubt=False, doubted=False, changed=noted)


def _stands(session: ZooKeeperSession, batch: Batch) -> BatchState:
    return standing(batch, _live(session, batch))


def _live(session: ZooKeeperSession, batch: Batch) -> dict[bytes, LiveNode]:
    session.catch_up()
    return {node.path: node for node in session.read_nodes([change.path for change in batch.changes])}


def _go_on(
    session: ZooKeeperSession, journal: SubtreeJournal, recorded: Recorded, after: Step, *, late: int | None = None
) -> SubtreeRunEnd:
    """`late`: a batch that a run before this one may have sent, and that had not been carried out when we looked."""
    changes = sum(len(batch.changes) for batch in recorded.batches[: recorded.done]) - len(recorded.gone)
    try:
        for number in range(recorded.done, len(recorded.batches)):
            changes += _carry_out(session, journal, recorded, number, after, came_late=number == late)
        check = checked(session, recorded.batches)
    finally:
        journal.close()
    return SubtreeRunEnd(journal.path, recorded.heading, len(recorded.batches), changes, check)


def _carry_out(
    session: ZooKeeperSession,
    journal: SubtreeJournal,
    recorded: Recorded,
    number: int,
    after: Step,
    *,
    came_late: bool = False,
) -> int:
    """How many changes were made: none where the server had removed the node by itself."""
    batch = recorded.batches[number]
    journal.note(BatchBegan(number))
    after(f"began {number}")
    try:
        code = session.ask(sent(batch), shown(batch.changes[0].path))
    except ClusterUnreachable as error:
        raise ClusterUnreachable(
            error.what, subject=error.subject, remedy=f"go on with --resume {journal.path}"
        ) from error
    after(f"sent {number}")
    changed = False
    if code in _CHANGED and came_late and (found := _stands(session, batch)) in _DONE:
        # The first of the two requests reached the server after all, and versions let only one be done.
        code, changed = 0, found is BatchState.DONE_THEN_CHANGED
    gone = is_gone_by_itself(batch, code)
    journal.note(BatchRefused(number) if code and not gone else BatchDone(number, changed, gone))
    after(f"noted {number}")
    if gone:
        return 0
    if code:
        so_far = Recorded(recorded.heading, recorded.batches, number, in_doubt=False)
        raise _refusal(code, journal, so_far, batch)
    return len(batch.changes)


def _refusal(code: int, journal: SubtreeJournal, recorded: Recorded, batch: Batch) -> LogkeepError:
    if code in _CHANGED:
        return _stopped(journal, recorded, batch, f"somebody else has changed it meanwhile: {_CHANGED[code]}")
    subject, done = _named(batch), _done(recorded)
    if code == _NO_AUTH:
        remedy = f"give credentials with --auth-file and go on with --resume {journal.path}"
        return NotAuthorised(f"an ACL forbids it; {done}", subject=subject, remedy=remedy)
    told = {
        _BAD_ACL: "the server does not take an ACL of it",
        _UNKNOWN: "the server does not know such nodes (containers came with 3.5; a time to live needs "
        "zookeeper.extendedTypesEnabled)",
    }
    remedy = f"what was done is taken back with --undo {journal.path}"
    return ClusterError(f"{told.get(code, f'the server refused with {code}')}; {done}", subject=subject, remedy=remedy)


def _stopped(journal: SubtreeJournal, recorded: Recorded, batch: Batch, what: str) -> TargetUnsafe:
    remedy = f"run it again for a new plan, or take back what was done with --undo {journal.path}"
    return TargetUnsafe(f"{what}; {_done(recorded)}", subject=_named(batch), remedy=remedy)


def _refuse_taken_back(path: Path, recorded: Recorded) -> None:
    """An undo that was stopped before its first change is in nobody's way: it finds out by itself who went on."""
    acting = [undo for undo in recorded.taken_back if may_have_acted(Path(undo))]
    if acting:
        raise TargetUnsafe(
            "an undo has begun to take back what it did: to go on would make the rest of it alone",
            subject=str(path),
            remedy=f"end the undo with --resume {acting[-1]}, or run the restore again for a new plan",
        )


def _note_taken_back(undone: tuple[SubtreeJournal, Recorded] | None, path: Path, heading: Heading) -> None:
    """In the journal that the undo at `path` takes back, where that is missing: the undo is of a former version, or was
    killed just before. Refuses to go on when somebody has gone on with that one instead."""
    if undone is None:
        return
    journal, recorded = undone
    if heading.undoes_begun is not msgspec.UNSET and recorded.begun > heading.undoes_begun:
        raise TargetUnsafe(
            "what it takes back has gone on since it was planned: only the first part of that would be taken back",
            subject=str(path),
            remedy=f"take back all of it with --undo {journal.path}",
        )
    if str(path.absolute()) not in recorded.taken_back:
        journal.note(TakenBack(str(path.absolute())))


def _refuse_unclear(journal: SubtreeJournal, recorded: Recorded) -> None:
    if not recorded.in_doubt:
        return
    changes = sum(len(batch.changes) for batch in recorded.batches[: recorded.done])
    whole = sum(len(batch.changes) for batch in recorded.batches)
    what = (
        "it was interrupted here, and somebody has changed these nodes since, so that nobody can tell whether this "
        f"multi was carried out; {changes} of {whole} changes were made before it"
    )
    remedy = f"run it again for a new plan, or take back what was made before with --undo {journal.path}"
    raise TargetUnsafe(what, subject=_named(recorded.batches[recorded.done]), remedy=remedy)


def _named(batch: Batch) -> str:
    first, last = shown(batch.changes[0].path), shown(batch.changes[-1].path)
    return first if first == last else f"{first} … {last}"


def _done(recorded: Recorded) -> str:
    changes = sum(len(batch.changes) for batch in recorded.batches[: recorded.done])
    whole = sum(len(batch.changes) for batch in recorded.batches)
    return f"{changes} of {whole} changes were made, none of this multi"
