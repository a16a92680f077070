"""The text of one configuration file, with who can change it.

A file in the working directory is read because it is there, not because the user named it. It counts only if the file
and the directory belong to root or to this user and no one else can write to them. Owners and modes are those of the
open descriptors that the text came from.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from logkeep.errors import ConfigError
from logkeep.file_owners import OriginFile, facts_of, origin_of, who_can_change

SEE_KEYS = "see docs/reference/options.md for the keys of this file"
_LARGEST = 256 * 1024
_READ = os.O_RDONLY | os.O_CLOEXEC
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True)
class ConfigText:
    text: str
    origin: OriginFile


def read_text(path: Path, *, required: bool = False, found: bool = False) -> ConfigText | None:
    """The text of a file; None when it does not exist. `found`: the user did not name it. Raises ConfigError."""
    try:
        with _open_found(path) if found else _open_named(path) as descriptor:
            origin = origin_of(descriptor, path)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                raw = file.read(_LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        if required:
            raise ConfigError(
                "there is no such configuration file", subject=str(path), remedy="check the path"
            ) from error
        return None
    except OSError as error:
        raise ConfigError(
            f"the configuration file cannot be read: {error.strerror}",
            subject=str(path),
            remedy="check its permissions",
        ) from error
    return ConfigText(_decoded(raw, path), origin)


@contextmanager
def _open_named(path: Path) -> Iterator[int]:
    descriptor = os.open(path, _READ)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _open_found(path: Path) -> Iterator[int]:
    """Open a file of the working directory, unless others can change the file or the directory."""
    directory = os.open(path.parent, _DIRECTORY)
    try:
        # A named pipe must not block us before its owner is known.
        descriptor = os.open(path.name, _READ | os.O_NONBLOCK, dir_fd=directory)
        try:
            _refuse_of_others(directory, descriptor, path)
            yield descriptor
        finally:
            os.close(descriptor)
    finally:
        os.close(directory)


def _refuse_of_others(directory: int, descriptor: int, path: Path) -> None:
    user = os.geteuid()
    reason = who_can_change(facts_of(descriptor), "it", user) or who_can_change(
        facts_of(directory), "its directory", user
    )
    if reason:
        raise ConfigError(
            f"the configuration file in the working directory is not used: {reason}",
            subject=str(path),
            remedy=f"read it, and pass --config ./{path.name} if you trust it",
        )


def _decoded(raw: bytes, path: Path) -> str:
    if len(raw) > _LARGEST:
        raise ConfigError(f"is larger than {_LARGEST} bytes", subject=str(path), remedy=SEE_KEYS)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"is not UTF-8 text (byte {error.start})", subject=str(path), remedy="save it as UTF-8"
        ) from None
