"""Half-written and half-deleted bundles that killed runs left in a directory of backups.

A name alone proves nothing: a directory that is not structured like a bundle is not ours and stays. `remove_bundle`
deletes the data directories last, so that a half-deleted bundle can still be recognised.
"""

import fcntl
import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from logkeep.cli.zkbackup.bundles import is_bundle
from logkeep.formats.zookeeper.names import parse_name
from logkeep.zookeeper.bundle.layout import CONFIG, DAMAGED, LOGS, METADATA, SNAPSHOTS, TXNLOGS

DELETING: Final = ".deleted-"
_PARTIAL: Final = ".partial"
_AGE: Final = timedelta(hours=1)
_OF_DATA: Final = (SNAPSHOTS, TXNLOGS, DAMAGED)
_OF_BUNDLES: Final = {*_OF_DATA, METADATA, CONFIG, LOGS, _PARTIAL}


def find_leftovers(base: Path, now: datetime) -> list[Path]:
    """Directories of runs that have ended."""
    half_deleted = sorted(base.glob(f"{DELETING}*"))
    half_written = [path for path in sorted(base.glob(f".*{_PARTIAL}")) if _is_abandoned(path, now)]
    return [path for path in (*half_deleted, *half_written) if _is_plain(path) and _is_ours(path)]


def remove_bundle(directory: Path) -> None:
    """Links inside are removed, not followed. Raises OSError."""
    for inner in sorted(directory.iterdir(), key=lambda each: each.name in _OF_DATA):
        if _is_plain(inner):
            shutil.rmtree(inner)
        else:
            inner.unlink()
    directory.rmdir()


def _is_ours(path: Path) -> bool:
    """A bundle, a part of one, or empty."""
    try:
        return is_bundle(path) or _is_part(path) or all(_is_plain(each) for each in path.rglob("*"))
    except OSError:
        return False


def _is_part(path: Path) -> bool:
    """It has only a bundle's directories, at least one of data, and in those only files named as by a server."""
    inner = sorted(path.iterdir())
    if not all(each.name in _OF_BUNDLES and _is_plain(each) for each in inner):
        return False
    data = [each for each in inner if each.name in _OF_DATA]
    return bool(data) and all(parse_name(file.name) for each in data for file in each.iterdir())


def _is_plain(path: Path) -> bool:
    """A directory, not a link to one."""
    return path.is_dir() and not path.is_symlink()


def _is_abandoned(path: Path, now: datetime) -> bool:
    """Old enough, and not locked: a running backup holds a lock on its directory."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return now.timestamp() - os.fstat(descriptor).st_mtime > _AGE.total_seconds()
    finally:
        os.close(descriptor)
