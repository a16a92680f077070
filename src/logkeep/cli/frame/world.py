"""Everything outside a run, handed in at one place: time, randomness, environment, streams, files.

`real_world` is the process as it is; tests make their own. A world also remembers how the current run wants its errors
shown, because an error may come before or after the settings are known.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from logkeep.cli.terminal.console import Console, standard_console
from logkeep.config.places import Places, standard_places
from logkeep.model.cache import cache_dir
from logkeep.model.time import Clock, TokenSource, random_token, utc_now

PlacesOf = Callable[[Path | None], Places]
"""The configuration files to read, when `--config` named one or none."""


@dataclass
class World:
    """One call of the program."""

    environ: Mapping[str, str]
    console: Console
    places: PlacesOf
    clock: Clock = utc_now
    token: TokenSource = random_token
    monotonic: Callable[[], float] = time.monotonic
    json: bool = False
    """Errors are wanted as JSON."""
    log_file: Path | None = None
    verbose: int = 0
    streaming: bool = False
    """Lines of the answer were printed already: with --json the last document is a line too."""
    resources: ExitStack = field(default_factory=ExitStack)
    """Closed when the call ends, whichever way it ends."""

    @property
    def cache(self) -> Path:
        """The user's cache directory; not created here."""
        return cache_dir(self.environ, Path(self.environ.get("HOME") or Path.home()))


def real_world(argv: list[str]) -> World:
    environ = dict(os.environ)
    words = argv[: argv.index("--")] if "--" in argv else argv
    return World(
        environ=environ,
        console=standard_console(environ),
        places=lambda named: standard_places(environ, directory=Path(), named=named),
        json="--json" in words,
        verbose=sum(word == "-vv" for word in words) * 2,
    )
