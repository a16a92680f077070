"""Fetching secrets that are given by reference: a file, a command, an environment variable.

A file that others can read is refused, because a leaked secret that still works is worse than a failed run. A
command is run without a shell, with a time limit, and its output is never shown. References hold no secret: they can
be printed, compared and pickled; only `fetch` returns a `Secret`.
"""

import os
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from logkeep.errors import ConfigError
from logkeep.model.secret import Secret

COMMAND_TIMEOUT_S = 30.0
_LARGEST = 64 * 1024
"""Room for a private key with its chain; a larger file is not a secret."""


@dataclass(frozen=True)
class FileReference:
    path: Path


@dataclass(frozen=True)
class CommandReference:
    argv: tuple[str, ...]
    defined_in: Path | None = None
    """The file that names the command: whoever can write there can run programs as us."""

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
    """The secret itself, without the newline that editors and `echo` leave at its end. Raises ConfigError."""
    match reference:
        case FileReference(path):
            plain = _read_private(path)
        case CommandReference(argv, defined_in):
            if defined_in is not None:
                _check_writers(defined_in)
            plain = _run(argv, environ, timeout_s)
        case EnvironmentReference(variable):
            plain = _variable(variable, environ)
    text = _decoded(plain, reference).removesuffix("\n").removesuffix("\r")
    if not text:
        raise ConfigError("the secret is empty", subject=_named(reference), remedy="put the secret there")
    return Secret(text)


def _read_private(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            # Asked of the open file, so that nobody can swap it between the question and the read.
            found = os.fstat(file.fileno())
            if stat.S_ISREG(found.st_mode) and found.st_mode & 0o077:
                mode = f"{stat.S_IMODE(found.st_mode):04o}"
                raise ConfigError(
                    f"the secret file can be read by others (mode {mode})",
                    subject=str(path),
                    remedy=f"chmod 600 {path}",
                )
            plain = file.read(_LARGEST + 1)
    except OSError as error:
        raise ConfigError(
            f"the secret file cannot be read: {error.strerror}", subject=str(path), remedy="check path and owner"
        ) from error
    if len(plain) > _LARGEST:
        raise ConfigError(
            f"the secret file is larger than {_LARGEST} bytes", subject=str(path), remedy="check the path"
        )
    return plain


def _check_writers(path: Path) -> None:
    found = path.stat()
    if found.st_uid not in {0, os.geteuid()} or found.st_mode & 0o022:
        raise ConfigError(
            "this file names a command to run, but others can change it",
            subject=str(path),
            remedy=f"chown it to yourself and chmod go-w {path}",
        )


def _run(argv: tuple[str, ...], environ: Mapping[str, str], timeout_s: float) -> bytes:
    import subprocess  # noqa: PLC0415  few runs have a secret command, and every run would pay for it

    subject = f"secret command {argv[0]}"
    try:
        done = subprocess.run(  # a user's own command from a file that only they can write, no shell
            argv, capture_output=True, timeout=timeout_s, env=dict(environ), stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"no answer within {timeout_s:g} s", subject=subject, remedy="run it by hand") from None
    except OSError as error:
        raise ConfigError(f"cannot be run: {error.strerror}", subject=subject, remedy="check its path") from error
    if done.returncode != 0:
        # Its error text may hold what it was asked for, so only the code is told.
        raise ConfigError(f"ended with code {done.returncode}", subject=subject, remedy="run it by hand to see why")
    return done.stdout


def _variable(variable: str, environ: Mapping[str, str]) -> bytes:
    if variable not in environ:
        raise ConfigError("this environment variable is not set", subject=variable, remedy=f"export {variable}")
    return environ[variable].encode("utf-8", "surrogateescape")


def _decoded(plain: bytes, reference: SecretReference) -> str:
    try:
        return plain.decode()
    except UnicodeDecodeError:
        raise ConfigError(
            "the secret is not UTF-8 text", subject=_named(reference), remedy="store it as text"
        ) from None


def _named(reference: SecretReference) -> str:
    match reference:
        case FileReference(path):
            return str(path)
        case CommandReference(argv):
            return f"secret command {argv[0]}"
        case EnvironmentReference(variable):
            return variable
