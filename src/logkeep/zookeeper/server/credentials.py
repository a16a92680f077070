"""Credentials from a file that only its owner may read: `scheme:secret` in each line, `#` begins a comment line."""

from pathlib import Path
from typing import Final

from logkeep.errors import ConfigError
from logkeep.secret_reading import as_text, read_file
from logkeep.zookeeper.server.client import Credential

_LARGEST_BYTES: Final = 64 * 1024


def read_credentials(path: Path) -> tuple[Credential, ...]:
    """Raises ConfigError, whose text shows no part of the file."""
    text = as_text(read_file(path, private=True, largest_bytes=_LARGEST_BYTES), str(path))
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    found = tuple(_credential(line, number, path) for number, line in lines if line and not line.startswith("#"))
    if not found:
        raise ConfigError("it contains no credential", subject=str(path), remedy="write a line digest:USER:PASSWORD")
    return found


def _credential(line: str, number: int, path: Path) -> Credential:
    scheme, colon, secret = line.partition(":")
    if not (scheme and colon and secret):
        remedy = "write scheme and credential as digest:USER:PASSWORD"
        raise ConfigError(f"line {number} is not a credential", subject=str(path), remedy=remedy)
    return Credential(scheme, secret)
