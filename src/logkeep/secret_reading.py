"""Reads secrets from a file or from the output of a command.

A file that others can read is refused, because a leaked secret is worse than a failed run. A command runs without a
shell and with a time limit, and only if no other user could change the file that names it when it was read; neither its
output nor its error text is ever shown. The memory of a process that has read a secret is hidden from other processes.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from logkeep.errors import ConfigError
from logkeep.file_owners import OriginFile, origin_of
from logkeep.model.process_memory import hide_memory
from logkeep.model.shell_words import shell_word

COMMAND_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class FileContent:
    """What was read, and the mode and origin of the file at that moment."""

    data: bytes
    mode: int
    origin: OriginFile


def read_file(path: Path, *, private: bool, largest_bytes: int) -> bytes:
    """The content of a small file; only its owner may be able to read a `private` one. Raises ConfigError."""
    return read_content(path, private=private, largest_bytes=largest_bytes).data


def read_content(path: Path, *, private: bool, largest_bytes: int) -> FileContent:
    """The same with the file's mode, and with who can change it."""
    if private:
        hide_memory()
    try:
        with path.open("rb") as file:
            # Of the open file: it cannot be replaced between the check and the read.
            mode, origin = os.fstat(file.fileno()).st_mode, origin_of(file.fileno(), path)
            if private:
                refuse_readable_by_others(mode, path)
            data = file.read(largest_bytes + 1)
    except OSError as error:
        raise ConfigError(
            f"the file cannot be read: {error.strerror}", subject=str(path), remedy="check its path and owner"
        ) from error
    if len(data) > largest_bytes:
        raise ConfigError(f"the file is larger than {largest_bytes} bytes", subject=str(path), remedy="check the path")
    return FileContent(data, mode, origin)


def refuse_readable_by_others(mode: int, path: Path) -> None:
    """Raises `ConfigError` if group or others have any permission on a regular file."""
    if stat.S_ISREG(mode) and mode & 0o077:
        raise ConfigError(
            f"the file contains secrets and can be read by others (mode {stat.S_IMODE(mode):04o})",
            subject=str(path),
            remedy=f"chmod 600 {shell_word(path)}",
        )


def refuse_command(defined_in: OriginFile) -> None:
    """For a file that names a command or a library: who could change it when it was read can run code as us."""
    if defined_in.changeable:
        raise ConfigError(
            f"the file names a command or a library to run, but others can change it: {defined_in.changeable}",
            subject=str(defined_in.path),
            remedy="make yourself the owner of the file and its directories, and let no one else write to them",
        )


def run_command(
    argv: tuple[str, ...],
    *,
    subject: str,
    environ: Mapping[str, str] | None = None,
    timeout_s: float = COMMAND_TIMEOUT_S,
) -> bytes:
    """The output of a command. Without `environ` it gets our own environment. Raises ConfigError."""
    import subprocess  # noqa: PLC0415  slow to import, and few runs need it

    hide_memory()
    env = None if environ is None else dict(environ)
    try:
        done = subprocess.run(  # a user's own command from a file that only they can write, no shell
            argv, capture_output=True, timeout=timeout_s, env=env, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"the command did not end within {timeout_s:g} s", subject=subject, remedy="run it by hand"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"the command cannot be run: {error.strerror}", subject=subject, remedy="check its path"
        ) from error
    if done.returncode != 0:
        # Its error text may contain the secret, so only the code is shown.
        raise ConfigError(
            f"the command ended with code {done.returncode}", subject=subject, remedy="run it by hand to see why"
        )
    return done.stdout


def as_text(data: bytes, subject: str) -> str:
    """Decode a secret. Raises ConfigError without showing any of it."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError("the secret is not UTF-8 text", subject=subject, remedy="store it as UTF-8 text") from None
