"""Replacing a small file of a bundle that is complete: whoever reads it sees the old one or the new one, whole."""

import os
from pathlib import Path
from typing import Any

import msgspec

from logkeep.store.local_files import sync_path
from logkeep.zookeeper.bundle import layout

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def document_of(bundle: Path) -> dict[str, Any]:
    """`backup_info.json` with every field it has, also those that this release does not know."""
    content: dict[str, Any] = msgspec.json.decode(layout.info_path(bundle).read_bytes())
    return content


def replace_document(bundle: Path, document: dict[str, Any]) -> None:
    """Raises OSError."""
    replace_file(layout.info_path(bundle), msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


def replace_file(path: Path, content: bytes) -> None:
    """Raises OSError."""
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
