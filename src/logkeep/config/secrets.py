"""Secrets that are given by reference: a file, a command, an environment variable.

`secret_reading` reads files and commands safely. References contain no secret: they can be printed, compared and
pickled; only `fetch` returns a `Secret`.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from logkeep.errors import ConfigError
from logkeep.file_owners import OriginFile
from logkeep.model.secret import Secret
from logkeep.secret_reading import COMMAND_TIMEOUT_S, as_text, read_file, refuse_command, run_command

_LARGEST_BYTES = 64 * 1024
"""Enough for a private key with its chain; a larger file is not a secret."""


@dataclass(frozen=True)
class FileReference:
    path: Path


@dataclass(frozen=True)
class CommandReference:
    argv: tuple[str, ...]
    defined_in: OriginFile | None = None
    """The file that names the command: a user who can change it can run programs as this user."""

    @classmethod
    def split(cls, text: str) -> "CommandReference":
        argv = tuple(shlex.split(text))
        if not argv:
            raise ValueError("must not be empty")
        return cls(argv)


@dataclass(frozen=True)
class EnvironmentReference:
    variable: str


SecretReference = FileReference | CommandReference | EnvironmentReference


def fetch(reference: SecretReference, environ: Mapping[str, str], *, timeout_s: float = COMMAND_TIMEOUT_S) -> Secret:
    """The secret, without the newline that editors and `echo` append. Raises ConfigError."""
    match reference:
        case FileReference(path):
            plain = read_file(path, private=True, largest_bytes=_LARGEST_BYTES)
        case CommandReference(argv, defined_in):
            if defined_in is not None:
                refuse_command(defined_in)
            plain = run_command(argv, subject=_describe(reference), environ=environ, timeout_s=timeout_s)
        case EnvironmentReference(variable):
            plain = _variable(variable, environ)
    text = as_text(plain, _describe(reference)).removesuffix("\n").removesuffix("\r")
    if not text:
        raise ConfigError("the secret is empty", subject=_describe(reference), remedy="put the secret there")
    return Secret(text)


def _variable(variable: str, environ: Mapping[str, str]) -> bytes:
    if variable not in environ:
        raise ConfigError("this environment variable is not set", subject=variable, remedy=f"export {variable}")
    return environ[variable].encode("utf-8", "surrogateescape")


def _describe(reference: SecretReference) -> str:
    match reference:
        case FileReference(path):
            return str(path)
        case CommandReference(argv):
            return f"secret command {argv[0]}"
        case EnvironmentReference(variable):
            return variable
