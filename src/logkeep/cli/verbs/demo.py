"""`logkeep demo`: backup and restore with real servers on this machine, in a few minutes."""

import shutil
import tempfile
import time
from pathlib import Path

import msgspec

from logkeep.cli.demo.stage import DemoStep, Stage
from logkeep.cli.demo.stay import SERVERS, stay
from logkeep.cli.demo.story import BEGINNING, CHAPTERS
from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, duration
from logkeep.config.options import DIRECTORY, KEEP, ONLY, STAY
from logkeep.errors import UsageError


class DemoReport(msgspec.Struct, frozen=True, kw_only=True):
    directory: str
    kept: bool
    cache: str
    """Directory of downloaded jars and the class archive, kept for the next run."""
    steps: tuple[DemoStep, ...]
    seconds: float
    stayed: bool = False
    """Its servers ran until a signal, for a user; it made no backup."""


def _text(report: DemoReport, look: TerminalStyle) -> str:
    rows = [(step.title, duration(step.seconds)) for step in report.steps]
    place = f"kept in {report.directory}" if report.kept else f"removed from {report.directory}"
    if report.stayed:
        return look.text(f"{look.state('OK')}  the servers have ended; what they wrote was {place}")
    return "\n".join(
        [
            look.table(("STEP", "TOOK"), rows, right="TOOK"),
            "",
            look.text(f"{look.state('OK')}  all {len(rows)} steps in {duration(report.seconds)}"),
            look.text(f"what the demo made was {place}; caches stay in {report.cache}"),
        ]
    )


@verb(
    report=DemoReport,
    text=_text,
    options=(DIRECTORY, KEEP, ONLY, STAY),
    exits=(20, 51),
    examples=(
        "logkeep demo",
        "logkeep demo --only zookeeper",
        "logkeep demo --only sets",
        "logkeep demo --directory ./demo --keep",
        "logkeep demo --stay --only kafka --directory ./shop",
    ),
)
def demo(run: Run) -> DemoReport:
    """Demonstrate backup and restore with real servers that it starts and stops itself.

    Needs Java 17 or newer. The servers' jars are fetched by Maven coordinates into the user's cache directory, the
    first time; everything else is in one directory and is removed at the end.

    With --stay it starts the servers, fills them and makes no backup: that is up to the user. When they can be used,
    the directory has a file `env` to be read by a shell (`. shop/env`): it names the servers and a repository, and puts
    Apache's own scripts on the path. Ctrl-C or SIGTERM ends it with 0.
    """
    started = time.monotonic()
    directory = _demo_directory(run[DIRECTORY])
    stage = Stage(directory, run.cache, run.console.note, run.world.resources)
    if not run[KEEP]:
        run.closing(lambda: shutil.rmtree(directory, ignore_errors=True))
    stage.say(f"working in {directory}; caches in {run.cache}")
    stage.say("")
    kinds = [kind for kind in CHAPTERS if run[ONLY] in (None, kind)]
    if run[STAY]:
        stay(stage, kinds if run[ONLY] in SERVERS else SERVERS)
    else:
        for chapter in (BEGINNING, *(CHAPTERS[kind] for kind in kinds)):
            chapter(stage)
    return DemoReport(
        directory=str(directory),
        kept=run[KEEP],
        cache=str(run.cache),
        steps=tuple(stage.steps),
        seconds=round(time.monotonic() - started, 3),
        stayed=run[STAY],
    )


def _demo_directory(wanted: Path | None) -> Path:
    """The demo directory. One that holds anything is refused, because the demo would remove it."""
    if wanted is None:
        return Path(tempfile.mkdtemp(prefix="logkeep-demo-"))
    if wanted.exists() and (not wanted.is_dir() or any(wanted.iterdir())):
        raise UsageError("the demo needs an empty or new directory", subject=str(wanted))
    wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
    return wanted.resolve()
