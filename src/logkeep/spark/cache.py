"""Where Logkeep keeps what it can make again: class archives, resolved jars, logs of servers.

Pure path logic: nothing here touches the disk. Removing the whole directory is always safe.
"""

from pathlib import Path

from logkeep.model.cache import cache_dir

__all__ = ["archive_dir", "cache_dir", "jars_dir", "log_dir"]


def log_dir(cache: Path) -> Path:
    return cache / "logs"


def archive_dir(cache: Path) -> Path:
    return cache / "classes"


def jars_dir(cache: Path) -> Path:
    return cache / "jars"
