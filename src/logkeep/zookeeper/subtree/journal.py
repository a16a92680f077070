"""The journal of one subtree run: its plan, the values from before, and its progress. It allows a resume or an undo.

Lines of JSON. First the heading, then one line for each batch, then `ready`: all of this is on disk before anything is
changed. From then on there is a line before each batch (`began`) and one after it (`done`; or `refused` when the server
applied none of it). A resume that finds a begun batch not applied writes `refused` with `doubted`; one that finds it
applied, and nodes of it changed by another client since, writes `done` with `changed`. An undo writes `taken-back` when
it begins: the journal is not resumed any more once the undo has changed anything. A line that a crash cut off is
ignored. The journal holds the data of nodes: only its owner may read it. Only one run at a time may write to it: two
would interleave their lines, and an undo needs every line.
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
from logkeep.store.local.files import sync_path, write_all
from logkeep.zookeeper.subtree.batches import Batch

_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_UNUSABLE: Final = (Damaged, RestoreFailed, UsageError)
"""Errors of reading a journal that is missing or damaged, or whose run never reached the first change."""
_NEW: Final = _APPEND | os.O_CREAT | os.O_EXCL


class StoredAs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The restore in a repository that this journal belongs to."""

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
    """The journal that this one undoes."""
    undoes_begun: int | msgspec.UnsetType = msgspec.UNSET
    """How many batches of that journal had begun when this one was planned: later ones are not undone."""
    stored: StoredAs | msgspec.UnsetType = msgspec.UNSET
    """Of an undo: the restore that is undone."""
    left_alone: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """Nodes that the undo leaves alone, because another client has changed them."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    batches: int
    sha256: str
    """Of all lines above it: a changed plan is never applied."""


class BatchBegan(msgspec.Struct, frozen=True, tag="began"):
    batch: int


class BatchDone(msgspec.Struct, frozen=True, omit_defaults=True, tag="done"):
    batch: int
    changed: bool = False
    """It was in doubt, and a resume found it applied and some of its nodes changed by another client."""
    gone: bool = False
    """There was nothing to do: the server had removed the node, a container or one with a time to live, by itself."""


class BatchRefused(msgspec.Struct, frozen=True, omit_defaults=True, tag="refused"):
    batch: int
    doubted: bool = False
    """No server answered so: a run ended before the answer, and its request may still reach the server."""


class UndoBegan(msgspec.Struct, frozen=True, tag="taken-back"):
    """From here on an undo is running: a resume would apply only the rest of the plan."""

    journal: str
    """Of the undo."""


class _Line(msgspec.Struct, frozen=True, tag="batch"):
    batch: Batch


_Lines = Heading | _Line | Ready | BatchBegan | BatchDone | BatchRefused | UndoBegan


@dataclass(frozen=True)
class JournalState:
    """The plan and the progress that a journal has recorded."""

    heading: Heading
    batches: tuple[Batch, ...]
    done: int
    in_doubt: bool
    """The batch after the done ones may have been applied."""
    doubted: bool = False
    """It was in doubt at some time: a request of an earlier run may reach the server late."""
    changed: tuple[int, ...] = ()
    """Done batches of which another client had changed some nodes when a resume checked them."""
    gone: tuple[int, ...] = ()
    """Done batches of one change that had nothing to do."""
    undos: tuple[str, ...] = ()
    """The journals of undos that have begun."""

    @property
    def begun(self) -> int:
        """Batches that are done, and one that may be."""
        return self.done + self.in_doubt


class SubtreeJournal:
    """Made by `new_journal` and `reopen_journal`; locked until the caller closes it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self._descriptor = path, descriptor

    def note(self, *lines: _Lines) -> None:
        """Append lines; they are on disk when this returns."""
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
            what, remedy = "another run is using this journal", "wait until it has ended, then run again"
            raise Locked(what, subject=str(self.path), remedy=remedy) from error
        except OSError as error:
            what = f"its file system has no locks, so a second run could use the journal: {error.strerror}"
            remedy = "name a journal on a local file system with --journal; copy an existing journal there first"
            raise RestoreFailed(what, subject=str(self.path), remedy=remedy) from error

    def cut(self, size: int) -> None:
        """Remove a last line that a crash cut off."""
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def close(self) -> None:
        os.close(self._descriptor)


def new_journal(path: Path, heading: Heading, batches: Sequence[Batch]) -> SubtreeJournal:
    """Write a journal with the whole plan. Raises UsageError for a file that exists already, Locked."""
    try:
        journal = SubtreeJournal(path, os.open(path, _NEW, 0o600))
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        journal.lock()
        _write_plan(journal, heading, batches)
    except BaseException:
        with suppress(OSError):  # nothing was changed, and the next run may use the same name
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


def check_new(path: Path) -> None:
    """Raises UsageError for a file that exists already, before the journal is written."""
    if os.path.lexists(path):
        raise _exists(path)


@contextmanager
def locked_journal(path: Path) -> Iterator[tuple[SubtreeJournal, JournalState] | None]:
    """Keeps other runs from resuming this journal. None if it cannot be resumed at all: it is missing or damaged.
    Raises Locked."""
    try:
        journal = SubtreeJournal(path, os.open(path, _APPEND))
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        journal.lock()
        try:
            recorded, whole_bytes = _read(path)
        except _UNUSABLE:
            recorded = None
        else:
            journal.cut(whole_bytes)
        yield None if recorded is None else (journal, recorded)
    finally:
        journal.close()


def reopen_journal(path: Path) -> tuple[SubtreeJournal, JournalState]:
    """Open a journal to resume or undo it. Raises RestoreFailed when its run never reached the first change, Locked."""
    try:
        journal = SubtreeJournal(path, os.open(path, _APPEND))
    except FileNotFoundError as error:
        raise _unreadable(path, error) from error
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        journal.lock()
        recorded, whole_bytes = _read(path)  # only now: the run before may have written until it ended
        journal.cut(whole_bytes)
    except BaseException:
        journal.close()
        raise
    return journal, recorded


def read_journal(path: Path) -> JournalState:
    return _read(path)[0]


def may_have_acted(undo: Path) -> bool:
    """Whether the undo with this journal has changed anything or still may: a request may be under way; or it is of an
    earlier version, which does not notice a resume of the undone journal; or its journal is missing. An undo that never
    reached its first change has not."""
    try:
        recorded = read_journal(undo)
    except RestoreFailed:
        return False
    except LogkeepError:
        return True
    return bool(recorded.begun) or recorded.doubted or recorded.heading.undoes_begun is msgspec.UNSET


def _read(path: Path) -> tuple[JournalState, int]:
    if path.exists() and not path.is_file():  # a device may have no end
        raise _no_journal(path)
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
    done = sum(isinstance(line, BatchDone) for line in steps)
    in_doubt = bool(steps) and isinstance(steps[-1], BatchBegan)
    doubted = in_doubt or BatchRefused(done, doubted=True) in lines
    changed = tuple(line.batch for line in lines if isinstance(line, BatchDone) and line.changed)
    gone = tuple(line.batch for line in lines if isinstance(line, BatchDone) and line.gone)
    undos = tuple(line.journal for line in lines if isinstance(line, UndoBegan))
    return JournalState(heading, batches, done, in_doubt, doubted, changed, gone, undos), whole_bytes


def _encoded(line: _Lines) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def _exists(path: Path) -> UsageError:
    return UsageError("this file exists already", subject=str(path), remedy="name another file with --journal")


def _unreadable(path: Path, error: OSError) -> UsageError:
    what = f"it cannot be read: {error.strerror}"
    return UsageError(what, subject=str(path), remedy="name the journal that the restore printed")


def _no_journal(path: Path) -> Damaged:
    what = "this is not the journal of a subtree restore, or it was changed"
    return Damaged(what, subject=str(path), remedy="name the journal that the restore printed")


def _unwritable(path: Path, error: OSError) -> RestoreFailed:
    remedy = "free space or name another file with --journal"
    return RestoreFailed(f"the journal cannot be written: {error.strerror}", subject=str(path), remedy=remedy)
