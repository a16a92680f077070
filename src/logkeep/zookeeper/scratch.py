"""Files that lie below TMPDIR while a piece of work is done: what their disk refuses is told with its remedy."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logkeep.errors import BackupFailed


@contextmanager
def scratch_disk(path: Path | str, what: str) -> Iterator[None]:
    """Files are closed within, or written without a buffer: an error in the end is told as one in between."""
    try:
        yield
    except OSError as error:
        remedy = "make room on that disk, or let TMPDIR name a directory on another one, and run again"
        why = error.strerror or type(error).__name__
        raise BackupFailed(f"{what}: {why}", subject=str(path), remedy=remedy) from error
