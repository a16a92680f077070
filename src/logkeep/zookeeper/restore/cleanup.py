"""Remove what a restore no longer needs. Never touches `version-2`, or data that a server may have written."""

from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.journal import RestoreJournal, encoded
from logkeep.zookeeper.restore.target_dirs import LiveDirectory
from logkeep.zookeeper.restore.target_state import owner_of


class Cleanup:
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
