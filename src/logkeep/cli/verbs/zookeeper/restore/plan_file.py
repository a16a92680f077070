"""Small documents that people carry from host to host: written whole or not at all, and never over anything else."""

import os
from pathlib import Path

from logkeep.errors import Damaged, UsageError
from logkeep.zookeeper.restore.ensemble.documents import DocumentT, encoded, read_document


def write_document(path: Path, document: DocumentT) -> None:
    """In place of an earlier document of its kind, for a survey may be taken again. Raises UsageError for what else."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        if os.path.lexists(path):
            read_document(path, type(document))
        with beside.open("xb") as file:
            file.write(encoded(document))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except Damaged as error:
        remedy = "name another file with --to; this one is left as it is"
        raise UsageError("it is there already, and is something else", subject=str(path), remedy=remedy) from error
    except OSError as error:
        beside.unlink(missing_ok=True)
        what = f"it cannot be written: {(error.strerror or 'unknown').lower()}"
        raise UsageError(what, subject=str(path), remedy="name a file in a directory that exists with --to") from error
