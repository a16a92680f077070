"""Crash logs: where the traceback of a bug goes, redacted, readable by its owner alone."""

import os
import platform
import traceback
from datetime import datetime
from pathlib import Path

from logkeep import __version__
from logkeep.cli.frame.logs import open_private
from logkeep.errors import LogkeepError
from logkeep.model.redaction import redact
from logkeep.model.time import rfc3339


def redacted_traceback(error: BaseException) -> str:
    return redact("".join(traceback.format_exception(error)))


def keep_traceback(error: BaseException, argv: list[str], cache: Path, now: datetime) -> Path | None:
    """Write a crash log below the cache directory and return its path; None when that is not possible."""
    path = cache / "crashes" / f"{now:%Y%m%dT%H%M%S}-{os.getpid()}.log"
    head = f"logkeep {__version__}, Python {platform.python_version()}, {platform.platform()}, {rfc3339(now)}\n"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open_private(path) as file:
            file.write(head + redact(f"arguments: {argv}\n") + redacted_traceback(error))
    except (OSError, LogkeepError):
        return None
    return path
