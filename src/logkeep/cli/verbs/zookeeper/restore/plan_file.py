"""Write a survey or plan, which the operator copies between hosts: completely or not at all."""

import os
from pathlib import Path

from logkeep.errors import Damaged, UsageError
from logkeep.zookeeper.restore.ensemble.documents import DocumentT, encoded, read_document


def write_document(path: Path, document: DocumentT) -> None:
    """Replaces an earlier document of its kind, because a survey can be repeated. Raises UsageError for other files."""
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
        raise UsageError("it already exists, and is something else", subject=str(path), remedy=remedy) from error
    except OSError as error:
        beside.unlink(missing_ok=True)
        what = f"it cannot be written: {(error.strerror or 'unknown').lower()}"
        raise UsageError(what, subject=str(path), remedy="name a file in a directory that exists with --to") from error
