"""Puts restored files in place of the old ones, in one data directory, so that nothing can start in between.

    restore/p<N>/…, restore/application.json    staged; the caller holds the directory's lock
    restore/ready                               everything staged is whole and durable
    restore/moved                               the old files are away
    before-<id>/                                what was there, kept for the user to remove

An application starts only where `application.json` is, or where nothing else is. Before `ready` the old files are
untouched. After it the old document is moved away first and the new one arrives last. A swap that was interrupted is
continued by the next restore of this directory. Every step may be repeated.
"""

import os
import shutil
from pathlib import Path
from typing import Final

from logkeep.checkpoint.durable_directory import sync_directory
from logkeep.checkpoint.steps import Steps

DOCUMENT: Final = "application.json"
STAGED: Final = "restore"
_READY, _MOVED = "ready", "moved"
_KEPT: Final = ("lock", "control.sock", STAGED)


def staged(directory: Path) -> Path:
    return directory / STAGED


def interrupted(directory: Path) -> bool:
    """Whether a swap was begun and not finished."""
    return (staged(directory) / _READY).exists()


def clear(directory: Path) -> Steps[None]:
    """Remove what an interrupted staging left, and begin anew."""
    yield "clear"
    shutil.rmtree(staged(directory), ignore_errors=True)
    staged(directory).mkdir(mode=0o700, parents=True)
    sync_directory(directory)
    yield "cleared"


def ready(directory: Path, document: bytes, label: str) -> Steps[None]:
    """Declare that the staged files are whole. `label` names the directory for the old files."""
    yield "document"
    _write(staged(directory) / DOCUMENT, document)
    yield "ready"
    _write(staged(directory) / f"{_READY}.part", label.encode())
    (staged(directory) / f"{_READY}.part").replace(staged(directory) / _READY)
    sync_directory(staged(directory))
    yield "readied"


def swap(directory: Path) -> Steps[Path | None]:
    """Move the old files away and the staged ones in; where the old ones are, None if there were none."""
    label = (staged(directory) / _READY).read_text()
    before = directory / f"before-{label}"
    if (staged(directory) / DOCUMENT).exists():
        yield from _move_away(directory, before)
        yield from _move_in(directory)
    yield "remove staging"
    (staged(directory) / _READY).unlink(missing_ok=True)
    shutil.rmtree(staged(directory), ignore_errors=True)
    sync_directory(directory)
    yield "swapped"
    return before if before.exists() else None


def _move_away(directory: Path, before: Path) -> Steps[None]:
    """The document first: without it nothing starts. Until all are away, nothing new has arrived."""
    if (staged(directory) / _MOVED).exists():
        return
    names = [one.name for one in directory.iterdir() if one.name not in _KEPT and not one.name.startswith("before-")]
    if names:
        yield "before"
        before.mkdir(exist_ok=True, mode=0o700)
    for name in sorted(names, key=lambda one: (one != DOCUMENT, one)):
        yield f"away {name}"
        (directory / name).replace(before / name)
        sync_directory(before)  # first: a name in both places is better than in none
        sync_directory(directory)
    yield "moved"
    _write(staged(directory) / _MOVED, b"")
    sync_directory(staged(directory))
    yield "away"


def _move_in(directory: Path) -> Steps[None]:
    """The document last."""
    for one in sorted(staged(directory).iterdir(), key=lambda path: path.name == DOCUMENT):
        if one.name in (_READY, _MOVED):
            continue
        yield f"in {one.name}"
        one.replace(directory / one.name)
        sync_directory(directory)
    yield "in"


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
