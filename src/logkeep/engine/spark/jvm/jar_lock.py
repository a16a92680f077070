"""The jars that servers are started from, pinned by SHA-256.

`jars.lock` has a line for each jar: the coordinates that were resolved together (joined by commas), the file's name and
the SHA-256 of its content. `make lock` writes it. The jars that PySpark contains have the coordinates
`pyspark:VERSION`; only those that servers need are listed.
"""

import hashlib
import importlib.resources
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from logkeep.errors import JarsUntrusted

_HEAD = "# Made by `make lock`: coordinates, jar, SHA-256. Servers are started from these files only.\n"
Pins = Mapping[str, str]
"""SHA-256 by file name."""


def set_name(coordinates: Iterable[str]) -> str:
    """The name of a set of coordinates in the lock."""
    return ",".join(sorted(coordinates))


def parse_lock(text: str) -> dict[str, dict[str, str]]:
    """The pins of each set. Raises ValueError."""
    pins: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, jar, digest = line.split()
            pins.setdefault(name, {})[jar] = digest
    return pins


def render_lock(sets: Mapping[str, Pins]) -> str:
    rows = [f"{name} {jar} {digest}\n" for name, pins in sorted(sets.items()) for jar, digest in sorted(pins.items())]
    return _HEAD + "".join(rows)


def differences(pins: Pins, found: Pins) -> list[str]:
    """How the jars that were found differ from the pinned ones, in words. Pure."""
    return [
        *(f"{jar} has another content" for jar in sorted(pins.keys() & found.keys()) if pins[jar] != found[jar]),
        *(f"{jar} is missing" for jar in sorted(pins.keys() - found.keys())),
        *(f"{jar} does not belong there" for jar in sorted(found.keys() - pins.keys())),
    ]


def pins_of(name: str) -> Pins:
    """The pins of a set. Raises JarsUntrusted when it has none."""
    found = _lock().get(name)
    if found is None:
        raise JarsUntrusted(
            "no hashes of these jars are pinned", subject=name, remedy="use a version that is supported"
        )
    return found


def hashes(files: Sequence[Path]) -> dict[str, str]:
    """SHA-256 by file name."""
    found = {}
    for file in files:
        with file.open("rb") as opened:
            found[file.name] = hashlib.file_digest(opened, "sha256").hexdigest()
    return found


def check_directory(directory: Path, name: str, *, remedy: str) -> None:
    """Compare all that a directory holds with the pins of a set. Raises JarsUntrusted."""
    refuse(differences(pins_of(name), hashes(sorted(directory.iterdir()))), directory, remedy)


def check_files(files: Sequence[Path], name: str, *, remedy: str) -> None:
    """Compare some files with the pins of a set, which may have more. Raises JarsUntrusted."""
    pins, found = pins_of(name), hashes(files)
    refuse(differences({jar: digest for jar, digest in pins.items() if jar in found}, found), files[0].parent, remedy)


def refuse(problems: Sequence[str], directory: Path, remedy: str) -> None:
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise JarsUntrusted(f"not the jars that are pinned: {problems[0]}{more}", subject=str(directory), remedy=remedy)


@cache
def _lock() -> dict[str, dict[str, str]]:
    return parse_lock((importlib.resources.files("logkeep.engine.spark.jvm") / "jars.lock").read_text())
