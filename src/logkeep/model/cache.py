"""Paths in the cache directory: class archives, jars, logs of servers, measured speeds. Touches no files.

Removing the whole directory is always safe.
"""

from collections.abc import Mapping
from pathlib import Path

CACHE_REMEDY = "remove this directory (a change of its mode keeps what others put there), or set LOGKEEP_CACHE_DIR"
"""What to do about a cache that others can change."""


def cache_dir(environ: Mapping[str, str], home: Path) -> Path:
    """`LOGKEEP_CACHE_DIR`, else `logkeep` below `XDG_CACHE_HOME`, else `~/.cache/logkeep`."""
    if own := environ.get("LOGKEEP_CACHE_DIR"):
        return Path(own).absolute()
    shared = environ.get("XDG_CACHE_HOME", "")
    # The XDG rules: a relative path is ignored.
    base = Path(shared) if shared.startswith("/") else home / ".cache"
    return base / "logkeep"


def log_dir(cache: Path) -> Path:
    return cache / "logs"


def archive_dir(cache: Path) -> Path:
    return cache / "classes"


def jars_dir(cache: Path) -> Path:
    return cache / "jars"


def speeds_dir(cache: Path) -> Path:
    return cache / "speeds"
