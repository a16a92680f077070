"""Reading secrets from where the settings say they lie.

A file that others can read is refused: a leaked password that still works is worse than a failed run. A command runs
without a shell and with a time limit; neither its output nor its error text is ever shown.
"""

import os
import stat
import subprocess
from pathlib import Path

from logkeep.errors import ConfigError
from logkeep.kafka.jaas import parse_jaas
from logkeep.kafka.java_properties import parse_properties
from logkeep.kafka.settings import CommandSecret, FileSecret, PropertySecret, SecretPlace
from logkeep.model.secret import Secret

_LARGEST_BYTES = 1024 * 1024
_COMMAND_TIMEOUT_S = 30.0


def reveal_place(place: SecretPlace) -> Secret:
    """The secret that lies there now. Raises `ConfigError`."""
    match place:
        case FileSecret(path):
            return Secret(_text(read_file(path, private=True), path).strip())
        case CommandSecret(argv, defined_in):
            return Secret(_run(argv, defined_in))
        case PropertySecret(path, key, option):
            return Secret(_property(path, key, option))


def read_file(path: Path, *, private: bool) -> bytes:
    """All of a small file; a `private` one must be readable by its owner alone."""
    try:
        with path.open("rb") as file:
            # Asked of the open file, so that nobody can swap it between the question and the read.
            mode = os.fstat(file.fileno()).st_mode
            if private:
                refuse_readable_by_others(mode, path)
            data = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"cannot be read: {error.strerror}", subject=str(path), remedy="check path and owner"
        ) from error
    if len(data) > _LARGEST_BYTES:
        raise ConfigError("is larger than 1 MiB", subject=str(path), remedy="check the path")
    return data


def refuse_readable_by_others(mode: int, path: Path) -> None:
    """Raises `ConfigError` if group or others have any right on a regular file."""
    if stat.S_ISREG(mode) and mode & 0o077:
        shown = f"{stat.S_IMODE(mode):04o}"
        raise ConfigError(
            f"the file holds secrets and can be read by others (mode {shown})",
            subject=str(path),
            remedy=f"chmod 600 {path}",
        )


def read_properties(path: Path, *, private: bool) -> dict[str, str]:
    """A properties file as a mapping. Java reads it as Latin-1, so a password must mean the same bytes here."""
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
    found = defined_in.stat()
    if found.st_uid not in {0, os.geteuid()} or found.st_mode & 0o022:
        raise ConfigError(
            "this file names a command to run, but others can change it",
            subject=str(defined_in),
            remedy=f"chown it to yourself and chmod go-w {defined_in}",
        )
    try:
        done = subprocess.run(
            argv, capture_output=True, timeout=_COMMAND_TIMEOUT_S, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"no answer within {_COMMAND_TIMEOUT_S:g} s", subject=subject, remedy="run it by hand"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot be run: {error.strerror}", subject=subject, remedy="check its path") from error
    if done.returncode != 0:
        raise ConfigError(f"ended with code {done.returncode}", subject=subject, remedy="run it by hand to see why")
    return _text(done.stdout, Path(argv[0])).strip()


def _text(data: bytes, path: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8 text", subject=str(path), remedy="store it as UTF-8") from None
