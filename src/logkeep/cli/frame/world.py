"""What a call gets from outside, in one value: time, randomness, environment, streams, configuration files.

`Program.real_world` makes it from the process; tests make their own. It also holds how errors of the current call are
shown, because an error may come before or after the settings are known.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from logkeep.cli.terminal.console import Console
from logkeep.config.places import Places
from logkeep.model.cache import cache_dir
from logkeep.model.findings import Finding
from logkeep.model.time import Clock, TokenSource, random_token, utc_now

if TYPE_CHECKING:
    from logkeep.engine.spark.directories import SharedDirectory
    from logkeep.engine.spark.engine import SparkEngine
    from logkeep.engine.speeds_file import SpeedsFile

PlacesOf = Callable[[Path | None], Places]
"""The configuration files to read, given the one that `--config` named, or None."""


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
    """The answer and errors are printed as JSON."""
    begun: bool = False
    """A command was called: until then, only --help and --version write anything."""
    log_file: Path | None = None
    verbose: int = 0
    streaming: bool = False
    """Lines of the answer were already printed, so with --json the last document is one line too."""
    spark: "SparkEngine | None" = None
    """The one Spark session of the call, for all of its phases; none before it is needed."""
    speeds: "SpeedsFile | None" = None
    """How fast the engines are on this machine; none before an engine is chosen."""
    directories: "list[SharedDirectory]" = field(default_factory=list)
    """Local directories that units use: every worker of a cluster must see them."""
    findings: list[Finding] = field(default_factory=list)
    """About the run itself, whatever the verb; they are added to the report's findings."""
    resources: ExitStack = field(default_factory=ExitStack)
    """Closed when the call ends, however it ends."""

    @property
    def cache(self) -> Path:
        """The user's cache directory; not created here."""
        return cache_dir(self.environ, Path(self.environ.get("HOME") or Path.home()))
