"""`backup_info.json` of a bundle as plain JSON: its seal, and its replacement as a whole.

The seal is a hash over the document, so that a changed character is found. It covers everything but itself and
`validation`, which every verification writes again. Documents of format 1.0 have no seal. From 1.1 on a document
without a seal is not intact, so that a change of the field's name is found too.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from logkeep.store.local.files import sync_path
from logkeep.zookeeper.bundle import layout

SEAL: Final = "seal"
WITHOUT_SEAL: Final = "1.0"
_OUTSIDE: Final = frozenset({SEAL, "validation"})
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def seal_of(document: Mapping[str, Any]) -> str:
    covered = {name: value for name, value in document.items() if name not in _OUTSIDE}
    return f"sha256:{hashlib.sha256(msgspec.json.encode(covered, order='sorted')).hexdigest()}"


def is_intact(document: Mapping[str, Any]) -> bool:
    """Also true for a document that never had a seal: its changes cannot be found."""
    if SEAL not in document:
        return document.get("version") == WITHOUT_SEAL
    return bool(document[SEAL] == seal_of(document))


def sealed_again(document: dict[str, Any]) -> dict[str, Any]:
    """With a new seal after our own change of an intact document. A document without a seal gets none: it would cover
    values that were never sealed."""
    return {**document, SEAL: seal_of(document)} if SEAL in document else document


def document_of(bundle: Path) -> dict[str, Any]:
    """`backup_info.json` with all its fields, also those that this release does not know."""
    content: dict[str, Any] = msgspec.json.decode(layout.info_path(bundle).read_bytes())
    return content


def replace_document(bundle: Path, document: dict[str, Any]) -> None:
    """Raises OSError."""
    replace_file(layout.info_path(bundle), msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


def replace_file(path: Path, content: bytes) -> None:
    """A reader sees the old file or the new one, whole. Raises OSError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with os.fdopen(os.open(beside, _NEW, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    sync_path(path.parent)
