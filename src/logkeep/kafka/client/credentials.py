"""Reads secrets from the places that the settings name, by the safe ways of `secret_reading`."""

from pathlib import Path

from logkeep import secret_reading
from logkeep.errors import ConfigError
from logkeep.kafka.client.jaas import parse_jaas
from logkeep.kafka.client.java_properties import parse_properties
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


def read_properties(path: Path, *, private: bool) -> dict[str, str]:
    """A properties file as a mapping, read as Latin-1 like in Java, so that passwords have the same bytes."""
    return parse_properties(read_file(path, private=private).decode("latin-1"), str(path))


def _property(path: Path, key: str, option: str) -> str:
    found = read_properties(path, private=True).get(key)
    if found is not None and option:
        found = parse_jaas(found, str(path)).options.get(option)
    if found is None:
        raise ConfigError(f"{key} is no longer there", subject=str(path), remedy="give workers the same file")
    return found


def _run(argv: tuple[str, ...], defined_in: Path) -> str:
    subject = f"token command {argv[0]}"
    secret_reading.refuse_writable_by_others(defined_in)
    return secret_reading.as_text(secret_reading.run_command(argv, subject=subject), subject).strip()
