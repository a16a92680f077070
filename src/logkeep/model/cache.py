"""Where Logkeep keeps what it can make again. Pure path logic: nothing here touches the disk."""

from collections.abc import Mapping
from pathlib import Path


def cache_dir(environ: Mapping[str, str], home: Path) -> Path:
    """`LOGKEEP_CACHE_DIR`, else `logkeep` below `XDG_CACHE_HOME`, else `~/.cache/logkeep`."""
    if own := environ.get("LOGKEEP_CACHE_DIR"):
        return Path(own).absolute()
    shared = environ.get("XDG_CACHE_HOME", "")
    # The XDG rules: a relative path there is to be ignored.
    base = Path(shared) if shared.startswith("/") else home / ".cache"
    return base / "logkeep"
