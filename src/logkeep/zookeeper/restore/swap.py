"""Swap old and new files of all members, in both directions, from every state in which an earlier run may have died.

All members get the marker before a file of any member is moved, and lose it after the last file of all was moved: no
server of the ensemble starts on a mixture. By the phase of the journal `version-2` holds either old or new files. So
no list of names is needed, and files that a server wrote meanwhile stay with that data. `Cleanup` removes leftovers.
"""

import os
from pathlib import Path

import msgspec

from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.journal import JournalPlace, Phase, RestoreJournal, encoded
from logkeep.zookeeper.restore.target_dirs import MARKER, LiveDirectory, marker_text, set_apart
from logkeep.zookeeper.restore.target_state import owner_of


class Swap:
    """One restore's directories, between `OLD` and `DONE`."""

    def __init__(self, journal: RestoreJournal, disk: Disk) -> None:
        self.journal, self._disk = journal, disk
        self._places = [each.place() for each in journal.places]

    def forward(self) -> None:
        """To `DONE`: the new data is in place, the old data beside it."""
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

    def back(self) -> None:
        """The old data is in place; the new data, with all that was written to it, is beside it."""
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
        for place in self.journal.places:
            self._remove_new_directories(place)

    def note(self, phase: Phase) -> None:
        """Write the phase that begins now to the journal."""
        was_done = self.journal.was_done or phase is Phase.DONE
        self.journal = msgspec.structs.replace(self.journal, phase=phase, was_done=was_done)
        first = self._places[0]
        self._disk.replace(first.journal, encoded(self.journal), owner_of(first.data))

    def _beside(self, live: LiveDirectory, *, kept: bool) -> Path:
        return live.kept(self.journal.restore) if kept else live.staged(self.journal.restore)

    def _files_left(self, *, kept: bool) -> bool:
        beside = [self._beside(live, kept=kept) for place in self._places for live in place.lives]
        return any(path.is_dir() and any(path.iterdir()) for path in beside)

    def _mark(self) -> None:
        for place in self._places:
            for live in place.lives:
                self._ensure(live.path, live)
            marker = place.log.path / MARKER
            text = marker_text(self.journal.restore, str(place.data_dir))
            if not marker.exists() or marker.read_bytes() != text:
                self._disk.remove(marker)
                self._disk.write(marker, [text], owner_of(place.log))
            self._disk.sync(place.log.path)

    def _unmark(self) -> None:
        for place in self._places:
            marker = place.log.path / MARKER
            if marker.exists():
                self._disk.remove(marker)
                self._disk.sync(place.log.path)

    def _move_all(self, *, into_live: bool, kept: bool) -> None:
        for place in self._places:
            for live in place.lives:
                beside = self._beside(live, kept=kept)
                self._ensure(beside, live)
                source, target = (beside, live.path) if into_live else (live.path, beside)
                for entry in sorted(source.iterdir()):
                    if entry.name != MARKER:
                        self._move(entry, target / entry.name, live)
                self._disk.sync(target)
                self._disk.sync(source)

    def _move(self, entry: Path, target: Path, live: LiveDirectory) -> None:
        """If the name exists already, a server that tried to start wrote the file in `version-2`: set it apart."""
        if not os.path.lexists(target):
            self._disk.move(entry, target)
            return
        strange = live.strange(self.journal.restore)
        self._ensure(strange, live)
        intruder = live.path / entry.name
        self._disk.move(intruder, set_apart(strange, entry.name))
        if entry != intruder:
            self._disk.move(entry, target)

    def _ensure(self, path: Path, live: LiveDirectory) -> None:
        if not path.is_dir():
            self._disk.make_directory(path, owner_of(live))

    def _remove_new_directories(self, place: JournalPlace) -> None:
        """Remove a `version-2` that did not exist before, if it is empty."""
        for live in place.place().lives:
            if str(live.path) in place.made and live.path.is_dir() and not any(live.path.iterdir()):
                self._disk.remove_directory(live.path)


class Cleanup:
    """Removes what a restore no longer needs. Never touches `version-2`, or data that a server may have written."""

    def __init__(self, journal: RestoreJournal, disk: Disk) -> None:
        self._journal, self._disk = journal, disk
        self._places = [each.place() for each in journal.places]

    def remove_staged(self) -> None:
        """Remove what was staged, then the journal. Called while the old data is in place."""
        for live in self._lives():
            if not self._journal.was_done:
                self._disk.remove_directory(live.staged(self._journal.restore))
        self.remove_empty_directories()
        first, *others = self._places
        if self._journal.earlier is not None:  # a restore of the same members: their pointers stay
            self._disk.replace(first.journal, encoded(self._journal.earlier), owner_of(first.data))
            return
        for place in (first, *others):
            self._disk.remove(place.journal.with_name(f".{place.journal.name}.new"))
            self._disk.remove(place.journal)
            self._disk.sync(place.data_dir)

    def remove_empty_directories(self) -> None:
        for live in self._lives():
            for beside in (live.staged(self._journal.restore), live.kept(self._journal.restore)):
                if beside.is_dir() and not any(beside.iterdir()):
                    self._disk.remove_directory(beside)

    def _lives(self) -> list[LiveDirectory]:
        return [live for place in self._places for live in place.lives]
