"""What a chapter of the demo works with: a directory, printed steps with their duration, real commands."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from logkeep.cli.terminal.text import duration
from logkeep.errors import HostFailed
from logkeep.model.shell_words import shell_line, shell_word

_TIMEOUT_S = 600


class DemoStep(msgspec.Struct, frozen=True, kw_only=True):
    """A finished step and its duration."""

    title: str
    seconds: float


@dataclass
class Stage:
    """Passed from chapter to chapter. What a chapter puts on `resources` is closed at the end of the demo."""

    directory: Path
    cache: Path
    say: Callable[[str], None]
    resources: ExitStack
    exported: dict[str, str] = field(default_factory=dict)
    steps: list[DemoStep] = field(default_factory=list)

    @property
    def repository(self) -> Path:
        return self.directory / "repository"

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Announce a step, do it, report how long it took."""
        self.say(f"== {title}")
        started = time.monotonic()
        yield
        seconds = time.monotonic() - started
        self.steps.append(DemoStep(title=title, seconds=round(seconds, 3)))
        self.say(f"   done in {duration(seconds)}")
        self.say("")

    def export(self, name: str, value: str) -> None:
        """Set an environment variable for later commands, as a user would."""
        self.say(f"$ export {name}={shell_word(value)}")
        self.exported[name] = value

    def logkeep(self, *arguments: str) -> str:
        """Run a real command the way a user would, and show it with what it printed."""
        self.say(f"$ {shell_line('logkeep', *arguments)}")
        done = subprocess.run(
            [sys.executable, "-m", "logkeep.cli", *arguments],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            env={**os.environ, "LOGKEEP_CACHE_DIR": str(self.cache), **self.exported},
        )
        for line in (done.stdout + done.stderr).splitlines():
            self.say(f"  {line}".rstrip())
        if done.returncode not in {0, 2}:
            raise HostFailed(
                f"the command ended with exit code {done.returncode}", subject=shell_line("logkeep", *arguments)
            )
        return done.stdout
