"""The file of one run: all it is to do, what was there before, and how far it is. From it a run is resumed or undone.

Lines of JSON. First the heading, then one line for each batch, then `ready`: all of this is on disk before anything is
changed. From then on a line before each batch (`began`) and one behind it (`done`, or `refused` when the server took
none of it; a resume that found nothing of it done says that it was `doubted`, however many resumes follow; one that
found it done, and nodes of it changed by somebody else since, says `changed`). When an undo begins, `taken-back`: it is
not resumed any more once that has changed anything. A line that a crash left without its end says nothing. It holds the
data of nodes: only its owner reads it. One run at a time has it: two would write over each other, and an undo needs
every line.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from logkeep.errors import Damaged, Locked, LogkeepError, RestoreFailed, UsageError
from logkeep.store.local_files import sync_path, write_all
from logkeep.zookeeper.subtree.batches import Batch

_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_OF_NO_USE: Final = (Damaged, RestoreFailed, UsageError)
"""What reading a journal raises that is not there, or that nothing was carried out of, or that is damaged."""
_NEW: Final = _APPEND | os.O_CREAT | os.O_EXCL


class StoredAs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The restore that a repository has a receipt of."""

    repository: str
    source: str
    restore: int


class Heading(msgspec.Struct, frozen=True, kw_only=True, tag="subtree-journal-1", forbid_unknown_fields=True):
    hosts: str
    top: str
    """The subtree in the live tree."""
    what: str
    """For people: which backup, which moment."""
    undoes: str = ""
    """The journal that this one takes back."""
    undoes_begun: int | msgspec.UnsetType = msgspec.UNSET
    """How many batches of that journal had begun when this one was planned: what began later it does not know of."""
    stored: StoredAs | msgspec.UnsetType = msgspec.UNSET
    """What is undone, for a journal that takes something back."""
    left_alone: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """Nodes that it does not take back, since somebody else has changed them."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    batches: int
    sha256: str
    """Of all lines above it: what is not what was planned is never carried out."""


class BatchBegan(msgspec.Struct, frozen=True, tag="began"):
    batch: int


class BatchDone(msgspec.Struct, frozen=True, omit_defaults=True, tag="done"):
    batch: int
    changed: bool = False
    """It was in doubt, and when it was found done somebody else had changed some of its nodes already."""
    gone: bool = False
    """There was nothing to do: the server had removed the node, a container or one with a time to live, by itself."""


class BatchRefused(msgspec.Struct, frozen=True, omit_defaults=True, tag="refused"):
    batch: int
    doubted: bool = False
    """No server said so: a run ended before its answer, and its request may still be on its way."""


class TakenBack(msgspec.Struct, frozen=True, tag="taken-back"):
    """From here on an undo is at work: who went on with this journal would make half of it again."""

    journal: str
    """Of the undo."""


class _Line(msgspec.Struct, frozen=True, tag="batch"):
    batch: Batch


_Lines = Heading | _Line | Ready | BatchBegan | BatchDone | BatchRefused | TakenBack


@dataclass(frozen=True)
class Recorded:
    """What a journal says."""

    heading: Heading
    batches: tuple[Batch, ...]
    done: int
    in_doubt: bool
    """The batch behind those that are done may have been carried out."""
    doubted: bool = False
    """It was in doubt at some time: a request of an earlier run may reach the server late."""
    changed: tuple[int, ...] = ()
    """Batches that are done and of which somebody else had changed some nodes when that was found out."""
    gone: tuple[int, ...] = ()
    """Batches of one change that had nothing to do, among those that are done."""
    taken_back: tuple[str, ...] = ()
    """The journals of undos that have begun."""

    @property
    def begun(self) -> int:
        """Batches that are done, and one that may be."""
        return self.done + self.in_doubt


class SubtreeJournal:
    """Made by `new_journal` and `reopened`; nobody else has it until the caller closes it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self._descriptor = path, descriptor

    def note(self, *lines: _Lines) -> None:
        """On disk when this returns."""
        try:
            write_all(self._descriptor, b"".join(map(_encoded, lines)))
            os.fsync(self._descriptor)
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def lock(self) -> None:
        """Until it is closed, or the process ends in any way. Raises Locked."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            what, remedy = "another run is at work with this journal", "wait until it has ended, then run again"
            raise Locked(what, subject=str(self.path), remedy=remedy) from error
        except OSError as error:
            raise _lockless(self.path, error) from error

    def cut(self, size: int) -> None:
        """What a crash left without its end goes."""
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def close(self) -> None:
        os.close(self._descriptor)


def new_journal(path: Path, heading: Heading, batches: Sequence[Batch]) -> SubtreeJournal:
    """With all that is to be done. Raises UsageError for a file that is there already, Locked."""
    try:
        journal = SubtreeJournal(path, os.open(path, _NEW, 0o600))
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        journal.lock()
        _write_plan(journal, heading, batches)
    except BaseException:
        with suppress(OSError):  # nothing was changed: it would only be in the way of the next run
            path.unlink()
        journal.close()
        raise
    return journal


def _write_plan(journal: SubtreeJournal, heading: Heading, batches: Sequence[Batch]) -> None:
    sha256, plan = hashlib.sha256(), list[_Lines]([heading, *map(_Line, batches)])
    for line in plan:
        journal.note(line)
        sha256.update(_encoded(line))
    journal.note(Ready(len(batches), sha256.hexdigest()))
    sync_path(journal.path.absolute().parent)


def refuse_taken(path: Path) -> None:
    """For those who have something to do before the journal is made."""
    if os.path.lexists(path):
        raise _taken(path)


@contextmanager
def held(path: Path) -> Iterator[tuple[SubtreeJournal, Recorded] | None]:
    """Nobody else goes on with this journal meanwhile. None for one that nobody can go on with at all: it is not there,
    or not what was written. Raises Locked."""
    try:
        journal = SubtreeJournal(path, os.open(path, _APPEND))
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        journal.lock()
        yield _whole(journal)
    finally:
        journal.close()


def _whole(journal: SubtreeJournal) -> tuple[SubtreeJournal, Recorded] | None:
    """With what it says, and ready for the next line."""
    try:
        recorded, whole_bytes = _read(journal.path)
    except _OF_NO_USE:
        return None
    journal.cut(whole_bytes)
    return journal, recorded


def reopened(path: Path) -> tuple[SubtreeJournal, Recorded]:
    """To go on with it. Raises RestoreFailed when it never came to the first change, Locked."""
    try:
        journal = SubtreeJournal(path, os.open(path, _APPEND))
    except FileNotFoundError as error:
        raise _unreadable(path, error) from error
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        journal.lock()
        recorded, whole_bytes = _read(path)  # only now: the run that had it may have written until it ended
        journal.cut(whole_bytes)
    except BaseException:
        journal.close()
        raise
    return journal, recorded


def read_journal(path: Path) -> Recorded:
    return _read(path)[0]


def may_have_acted(undo: Path) -> bool:
    """Whether the undo with this journal has changed anything, or may still: a request of it may be under way, or it is
    of a former version and would not find out that what it takes back has gone on, or its journal is gone and nobody
    knows. One that never came to its first change has not."""
    try:
        recorded = read_journal(undo)
    except RestoreFailed:
        return False
    except LogkeepError:
        return True
    return bool(recorded.begun) or recorded.doubted or recorded.heading.undoes_begun is msgspec.UNSET


def _read(path: Path) -> tuple[Recorded, int]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    whole_bytes = content.rfind(b"\n") + 1
    written = content[:whole_bytes].splitlines(keepends=True)
    try:
        lines = [msgspec.json.decode(line, type=_Lines) for line in written]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _no_journal(path) from error
    ready = next((n for n, line in enumerate(lines) if isinstance(line, Ready)), None)
    if ready is None:
        remedy = "nothing was changed: run the restore again"
        raise RestoreFailed("it ended before the first change", subject=str(path), remedy=remedy)
    heading, batches = lines[0], tuple(line.batch for line in lines[:ready] if isinstance(line, _Line))
    sha256 = hashlib.sha256(b"".join(written[:ready])).hexdigest()
    if not isinstance(heading, Heading) or lines[ready] != Ready(len(batches), sha256):
        raise _no_journal(path)
    steps = [line for line in lines if isinstance(line, BatchBegan | BatchDone | BatchRefused)]
    done, in_doubt = (
        sum(isinstance(line, BatchDone) for line in steps),
        bool(steps) and isinstance(steps[-1], BatchBegan),
    )
    doubted = in_doubt or BatchRefused(done, doubted=True) in lines
    changed = tuple(line.batch for line in lines if isinstance(line, BatchDone) and line.changed)
    gone = tuple(line.batch for line in lines if isinstance(line, BatchDone) and line.gone)
    taken_back = tuple(line.journal for line in lines if isinstance(line, TakenBack))
    return Recorded(heading, batches, done, in_doubt, doubted, changed, gone, taken_back), whole_bytes


def _encoded(line: _Lines) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def _taken(path: Path) -> UsageError:
    return UsageError("there is such a file already", subject=str(path), remedy="name another file with --journal")


def _unreadable(path: Path, error: OSError) -> UsageError:
    what = f"it cannot be read: {error.strerror}"
    return UsageError(what, subject=str(path), remedy="name the journal that the restore printed")


def _no_journal(path: Path) -> Damaged:
    what = "this is no journal of a subtree's restore, or not what was written"
    return Damaged(what, subject=str(path), remedy="name the journal that the restore printed")


def _lockless(path: Path, error: OSError) -> RestoreFailed:
    what = f"its file system gives no locks, which keep a second run away from it: {error.strerror}"
    remedy = (
        "name a journal on a local file system with --journal; one that is there already, copy to such a place first"
    )
    return RestoreFailed(what, subject=str(path), remedy=remedy)


def _unwritable(path: Path, error: OSError) -> RestoreFailed:
    remedy = "make room or name another place with --journal"
    return RestoreFailed(f"the journal cannot be written: {error.strerror}", subject=str(path), remedy=remedy)
