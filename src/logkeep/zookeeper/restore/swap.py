"""Swap old and new files of all members, in both directions, from every state in which an earlier run may have died.

All members get the marker before a file of any member is moved, and lose it after the last file of all was moved: no
server of the ensemble starts on a mixture. By the phase of the journal `version-2` holds either old or new files. So
no list of names is needed, and files that a server wrote meanwhile stay with that data. `Cleanup` removes leftovers.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from logkeep.directories.folder import Folder
from logkeep.errors import OtherOwner, RestoreFailed, TargetUnsafe
from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.target.directories import (
    JOURNAL,
    MARKER,
    LiveDirectory,
    ServerDirectories,
    marker_text,
    set_apart,
)
from logkeep.zookeeper.restore.target.journal import JournalPlace, Phase, RestoreJournal, consenting, encoded
from logkeep.zookeeper.restore.target.state import journal_owner, owner_of, same_bytes


class Swap:
    """One restore's directories, between `OLD` and `DONE`. `places`: those of the journal, open."""

    def __init__(self, journal: RestoreJournal, places: Sequence[ServerDirectories], disk: Disk) -> None:
        self.journal, self._places, self._disk = journal, places, disk

    def forward(self) -> None:
        """To `DONE`: the new data is in place, the old data beside it. Raises RestoreFailed."""
        with _as_restore_failed():
            self._forward()

    def back(self) -> None:
        """The old data is in place; the new data, and what was written to it, is beside it. Raises RestoreFailed."""
        with _as_restore_failed():
            self._back()

    def _forward(self) -> None:
        if self.journal.phase is Phase.OLD:
            self._mark()
            self._move_all(into_live=False, kept=True)
            self.note(Phase.NEW)
        if self.journal.phase is Phase.NEW:
            if self._files_left(kept=False):
                self._mark()
                self._move_all(into_live=True, kept=False)
            self._unmark()
            self.note(Phase.DONE)

    def _back(self) -> None:
        if self.journal.phase in (Phase.NEW, Phase.DONE):
            if self.journal.phase is Phase.DONE:  # first: a marker that is found in phase DONE is removed
                self.note(Phase.NEW)
            self._mark()
            self._move_all(into_live=False, kept=False)
            self.note(Phase.OLD)
        if self._files_left(kept=True):
            self._mark()
            self._move_all(into_live=True, kept=True)
        self._unmark()
        for noted, place in zip(self.journal.places, self._places, strict=True):
            self._remove_new_directories(noted, place)

    def note(self, phase: Phase) -> None:
        """Write the phase that begins now to the journal."""
        was_done = self.journal.was_done or phase is Phase.DONE
        self.journal = msgspec.structs.replace(self.journal, phase=phase, was_done=was_done)
        first = self._places[0]
        self._disk.replace(first.data_folder, JOURNAL, encoded(self.journal), journal_owner(first))

    def _beside(self, live: LiveDirectory, *, kept: bool) -> Path:
        return live.kept(self.journal.restore) if kept else live.staged(self.journal.restore)

    def _files_left(self, *, kept: bool) -> bool:
        found = [live.beside(self._beside(live, kept=kept)) for place in self._places for live in place.lives]
        return any(folder is not None and self._disk.names(folder) for folder in found)

    def _mark(self) -> None:
        for place in self._places:
            for live in place.lives:
                self._ensured(live.path, live)
            folder = self._ensured(place.log.path, place.log)
            text = marker_text(self.journal.restore, str(place.data_dir))
            folder.refuse_link(MARKER)
            if not same_bytes(folder, MARKER, text):
                self._disk.remove(folder, MARKER)
                self._disk.write(folder, MARKER, [text], owner_of(place.log))
            self._disk.sync(folder)

    def _unmark(self) -> None:
        for place in self._places:
            folder = place.log.folder
            if folder is not None and folder.find(MARKER) is not None:
                self._disk.remove(folder, MARKER)
                self._disk.sync(folder)

    def _move_all(self, *, into_live: bool, kept: bool) -> None:
        for place in self._places:
            for live in place.lives:
                beside = self._ensured(self._beside(live, kept=kept), live)
                current = self._ensured(live.path, live)
                source, target = (beside, current) if into_live else (current, beside)
                for name in self._disk.names(source):
                    if name != MARKER:
                        self._move(source, target, name, live)
                self._disk.sync(target)
                self._disk.sync(source)

    def _move(self, source: Folder, target: Folder, name: str, live: LiveDirectory) -> None:
        """If the name exists already, a server that tried to start wrote the file in `version-2`: set it apart."""
        if target.find(name) is None:
            self._disk.move(source, name, target, name)
            return
        strange = self._ensured(live.strange(self.journal.restore), live)
        current = self._ensured(live.path, live)
        self._disk.move(current, name, strange, set_apart(strange, name))
        if source is not current:
            self._disk.move(source, name, target, name)

    def _ensured(self, path: Path, live: LiveDirectory) -> Folder:
        """The directory; it is created if there is none."""
        found = live.beside(path)
        if found is None:
            self._disk.make_directory(live.above, path.name, owner_of(live))
            found = live.beside(path)
        assert found is not None  # noqa: S101 - it was created, or an error was raised
        return found

    def _remove_new_directories(self, noted: JournalPlace, place: ServerDirectories) -> None:
        """Remove a `version-2` that did not exist before, if it is empty."""
        for live in place.lives:
            if str(live.path) in noted.made:
                _remove_if_empty(live, live.path, self._disk)


class Cleanup:
    """Removes what a restore no longer needs. Never touches `version-2`, or data that a server may have written.

    Of staged files only those are removed that the restore made: other names, and their directory, stay.
    """

    def __init__(self, journal: RestoreJournal, places: Sequence[ServerDirectories], disk: Disk) -> None:
        self._journal, self._places, self._disk = journal, places, disk

    def remove_staged(self) -> None:
        """Remove what was staged, then the journal. Called while the old data is in place."""
        for noted, place in zip(self._journal.places, self._places, strict=True):
            for live in place.lives:
                path = live.staged(self._journal.restore)
                folder = None if self._journal.was_done else live.beside(path)
                if folder is not None and self._disk.remove_directory(live.above, folder, noted.removable(path)):
                    live.forget(path)
        self.remove_empty_directories()
        first, *others = self._places
        if self._journal.earlier is not None:  # a restore of the same members: their pointers stay
            self._disk.replace(first.data_folder, JOURNAL, encoded(self._journal.earlier), journal_owner(first))
            return
        for folder in (first.data_folder, *(place.data_folder for place in others), *consenting(self._places)):
            self._disk.remove(folder, f".{JOURNAL}.new")
            self._disk.remove(folder, JOURNAL)
            self._disk.sync(folder)

    def remove_empty_directories(self) -> None:
        for live in [live for place in self._places for live in place.lives]:
            for beside in (live.staged(self._journal.restore), live.kept(self._journal.restore)):
                _remove_if_empty(live, beside, self._disk)


def _remove_if_empty(live: LiveDirectory, path: Path, disk: Disk) -> None:
    folder = live.beside(path)
    if folder is not None and not disk.names(folder) and disk.remove_directory(live.above, folder, ()):
        live.forget(path)


@contextmanager
def _as_restore_failed() -> Iterator[None]:
    """Once files are moved, a link or another user's file is no reason to say that nothing was changed."""
    try:
        yield
    except (TargetUnsafe, OtherOwner) as error:
        raise RestoreFailed(error.what, subject=error.subject, remedy=error.remedy) from error
