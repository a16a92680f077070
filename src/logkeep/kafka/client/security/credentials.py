"""Reads secrets from the places that the settings name, by the safe ways of `secret_reading`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from logkeep import secret_reading
from logkeep.errors import ConfigError
from logkeep.file_owners import OriginFile
from logkeep.kafka.client.security.jaas import parse_jaas
from logkeep.kafka.client.security.java_properties import parse_properties
from logkeep.kafka.client.settings import CommandSecret, FileSecret, PropertySecret, SecretPlace
from logkeep.model.secret import Secret

_LARGEST_BYTES = 1024 * 1024
"""Enough for a trust store with every public certificate authority."""


def reveal_place(place: SecretPlace) -> Secret:
    """The current value of a secret. Raises `ConfigError`."""
    match place:
        case FileSecret(path):
            return Secret(secret_reading.as_text(read_file(path, private=True), str(path)).strip())
        case CommandSecret(argv, defined_in):
            return Secret(_run(argv, defined_in))
        case PropertySecret(path, key, option):
            return Secret(_property(path, key, option))


def read_file(path: Path, *, private: bool) -> bytes:
    """All of a small file; a `private` one must be readable by its owner alone."""
    return secret_reading.read_file(path, private=private, largest_bytes=_LARGEST_BYTES)


@dataclass(frozen=True)
class PropertiesFile:
    """Keys and values of one file, and its mode and origin when they were read."""

    found: Mapping[str, str]
    mode: int
    origin: OriginFile


def read_properties(path: Path, *, private: bool) -> PropertiesFile:
    """A properties file, read as Latin-1 like in Java, so that passwords have the same bytes."""
    content = secret_reading.read_content(path, private=private, largest_bytes=_LARGEST_BYTES)
    return PropertiesFile(parse_properties(content.data.decode("latin-1"), str(path)), content.mode, content.origin)


def _property(path: Path, key: str, option: str) -> str:
    found = read_properties(path, private=True).found.get(key)
    if found is not None and option:
        found = parse_jaas(found, str(path)).options.get(option)
    if found is None:
        raise ConfigError(f"{key} is no longer there", subject=str(path), remedy="give workers the same file")
    return found


def _run(argv: tuple[str, ...], defined_in: OriginFile) -> str:
    subject = f"token command {argv[0]}"
    secret_reading.refuse_command(defined_in)
    return secret_reading.as_text(secret_reading.run_command(argv, subject=subject), subject).strip()
