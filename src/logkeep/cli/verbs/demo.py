"""`logkeep demo`: backup and restore with real servers on this machine, in a few minutes."""

import shutil
import tempfile
import time
from pathlib import Path

import msgspec

from logkeep.cli.demo.stage import DemoStep, Stage
from logkeep.cli.demo.story import BEGINNING, CHAPTERS
from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, duration
from logkeep.config.options import DIRECTORY, KEEP, ONLY
from logkeep.errors import UsageError


class DemoReport(msgspec.Struct, frozen=True, kw_only=True):
    directory: str
    kept: bool
    cache: str
    """Directory of downloaded jars and the class archive, kept for the next run."""
    steps: tuple[DemoStep, ...]
    seconds: float


def _text(report: DemoReport, look: TerminalStyle) -> str:
    rows = [(step.title, duration(step.seconds)) for step in report.steps]
    place = f"kept in {report.directory}" if report.kept else f"removed from {report.directory}"
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
    options=(DIRECTORY, KEEP, ONLY),
    examples=("logkeep demo", "logkeep demo --only zookeeper", "logkeep demo --directory ./demo --keep"),
)
def demo(run: Run) -> DemoReport:
    """Demonstrate backup and restore with real servers that it starts and stops itself.

    Needs Java 17 or newer. The servers' jars are fetched by Maven coordinates into the user's cache directory, the
    first time; everything else lies in one directory and is removed at the end.
    """
    started = time.monotonic()
    directory = _demo_directory(run[DIRECTORY])
    stage = Stage(directory, run.cache, run.console.note, run.world.resources)
    if not run[KEEP]:
        run.closing(lambda: shutil.rmtree(directory, ignore_errors=True))
    stage.say(f"working in {directory}; caches in {run.cache}\n")
    chosen = run[ONLY]
    for chapter in (BEGINNING, *(each for kind, each in CHAPTERS.items() if chosen in (None, kind))):
        chapter(stage)
    return DemoReport(
        directory=str(directory),
        kept=run[KEEP],
        cache=str(run.cache),
        steps=tuple(stage.steps),
        seconds=round(time.monotonic() - started, 3),
    )


def _demo_directory(wanted: Path | None) -> Path:
    """The demo directory. One that holds anything is refused, because the demo would remove it."""
    if wanted is None:
        return Path(tempfile.mkdtemp(prefix="logkeep-demo-"))
    if wanted.exists() and (not wanted.is_dir() or any(wanted.iterdir())):
        raise UsageError("the demo needs an empty or new directory", subject=str(wanted))
    wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
    return wanted.resolve()
