"""The file `speeds.json` in the cache directory: what was measured on this machine, read once and written at the end.

A file that is missing, damaged, of another machine, or in a directory that others can change is not used: then usual
speeds are assumed. It only says which engine is likely to be faster, so no error of it ends a run.
"""

import os
import platform
from contextlib import suppress
from pathlib import Path

import msgspec

from logkeep.engine.speeds import EngineSpeeds
from logkeep.errors import ConfigError
from logkeep.file_owners import private_directory
from logkeep.model.cache import CACHE_REMEDY, speeds_dir

_LARGEST = 256 * 1024


class SpeedsFile:
    """The speeds of one command. `speeds` is replaced by what its engines measure; `save` keeps it."""

    def __init__(self, cache: Path, store: str = "file") -> None:
        """`store` is the scheme of the repository's URL: a directory and a bucket have speeds of their own."""
        self._store = store
        self._directory = speeds_dir(cache)
        self._file = self._directory / "speeds.json"
        self._stored = self.speeds = self._read()

    def _read(self) -> EngineSpeeds:
        machine = this_machine()
        try:
            if not self._file.is_file():
                return EngineSpeeds(machine)
            private_directory(self._directory, remedy=CACHE_REMEDY)
            with self._file.open("rb") as file:
                found = msgspec.json.decode(file.read(_LARGEST), type=EngineSpeeds)
        except (OSError, ConfigError, msgspec.MsgspecError):
            return EngineSpeeds(machine)
        return found.sane() if found.machine == machine else EngineSpeeds(machine)

    def kind(self, label: str) -> str:
        """The kind of work, for `speeds`."""
        return f"{self._store} {label}"

    def ran_inline(self, label: str, size_bytes: int, seconds: float, *, alone: bool = True) -> None:
        self.speeds = self.speeds.with_inline(self.kind(label), size_bytes, seconds, alone=alone)

    def ran_on_spark(self, label: str, size_bytes: int, seconds: float, workers: int) -> None:
        self.speeds = self.speeds.with_spark(self.kind(label), size_bytes, seconds, workers)

    def started(self, seconds: float, *, ended: bool = True) -> None:
        self.speeds = self.speeds.with_start(seconds, ended=ended)

    def stopped(self, seconds: float) -> None:
        self.speeds = self.speeds.with_stop(seconds)

    def save(self) -> None:
        """Replace the file, if anything was measured."""
        if self.speeds == self._stored:
            return
        unfinished = self._file.with_suffix(f".{os.getpid()}")
        with suppress(OSError, ConfigError):
            private_directory(self._directory, remedy=CACHE_REMEDY)
            content = msgspec.json.format(msgspec.json.encode(self.speeds), indent=1)
            opened = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(opened, "wb") as file:
                file.write(content)
            unfinished.replace(self._file)
            self._stored = self.speeds


def this_machine() -> str:
    """What identifies this machine: its hardware. A shared home directory has the cache of several machines, and a
    container has another host name in each run."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = len(os.sched_getaffinity(0))
    return f"{platform.machine()}, {cores} cores, {round(memory_bytes / 2**30)} GiB"
