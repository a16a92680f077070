"""What runs that were killed left in a directory of backups: half-written, half-deleted. Neither is a backup."""

import fcntl
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

DELETING: Final = ".deleted-"
_PARTIAL: Final = ".partial"
_AGE: Final = timedelta(hours=1)


def left_over(base: Path, now: datetime) -> list[Path]:
    """Directories that nobody works on any more."""
    half_deleted = sorted(base.glob(f"{DELETING}*"))
    half_written = [path for path in sorted(base.glob(f".*{_PARTIAL}")) if _is_abandoned(path, now)]
    return [path for path in (*half_deleted, *half_written) if path.is_dir() and not path.is_symlink()]


def _is_abandoned(path: Path, now: datetime) -> bool:
    """Old enough, and not locked: a running backup holds a lock on its own."""
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
