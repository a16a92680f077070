"""Verbs that only tests have: each does one thing that the frame must cope with."""

import logging
import signal
import sys
from pathlib import Path

import click
import msgspec

from logkeep.cli.frame.catalogue import VERBS, VerbEntry
from logkeep.cli.frame.execute import CommandOutcome, Run
from logkeep.cli.frame.main import main
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.config.options import PROGRESS, REPO, SOURCE
from logkeep.config.secrets import CommandReference, EnvironmentReference, FileReference, SecretReference, fetch
from logkeep.errors import BackupFailed

_log = logging.getLogger("logkeep.trial")


class Done(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    code: int = 0


def _text(report: Done, look: TerminalStyle) -> str:
    return look.text(report.text)


@verb(report=Done, text=_text, options=(REPO, SOURCE), changes=True, exit_code=lambda r: r.code, exits=(2, 10))
def change(run: Run) -> Done:
    """Change something.

    After asking.
    """
    url = run.repo()
    run.confirm(f"change {url}?")
    return Done(text=f"{'would change' if run.dry_run else 'changed'} {url} …", code=0)


@verb(report=Done, text=_text, changes=True)
def overwrite(run: Run) -> Done:
    """Ask for a name to be typed."""
    run.confirm("overwrite the cluster prod?", typed="prod")
    return Done(text="overwritten")


@verb(
    report=Done, text=_text, arguments=(click.Argument(["code"], type=int),), exits=(2, 10), exit_code=lambda r: r.code
)
def end(_run: Run, code: int) -> Done:
    """End with a code."""
    return Done(text="x" * 70_000, code=code)


def _samples(outcome: CommandOutcome[Done]) -> list[MetricSample]:
    good = outcome.error is None
    found = [sample("logkeep_backup_success", good, source=outcome.source)]
    if good:
        ended = outcome.ended.timestamp()
        found.append(sample("logkeep_backup_last_success_timestamp_seconds", ended, source=outcome.source))
    return found


@verb(report=Done, text=_text, options=(SOURCE,), exits=(20,), metrics=_samples)
def backup(run: Run) -> Done:
    """Succeed or fail, with metrics."""
    if run[SOURCE] == "bad":
        raise BackupFailed("the disk is full", subject="bad")
    if run[SOURCE] == "spoiled":
        Path("x.prom").write_text("somebody else's\n")
    return Done(text="saved")


@verb(
    report=Done,
    text=_text,
    arguments=(
        click.Argument(["how"], type=click.Choice(["file", "command", "env"])),
        click.Argument(["where"]),
        click.Argument(["then"], type=click.Choice(["error", "crash", "log", "library", "cmdline"])),
    ),
    exits=(20,),
)
def leak(run: Run, how: str, where: str, then: str) -> Done:
    """Fetch a secret and then try to give it away."""
    made: dict[str, SecretReference] = {
        "file": FileReference(Path(where)),
        "command": CommandReference(("cat", where)),
        "env": EnvironmentReference(where),
    }
    plain = fetch(made[how], run.world.environ).reveal()
    if then == "error":
        what = f"login with {plain} failed: sasl.jaas.config=x required password={plain};"
        raise BackupFailed(what, subject=f"https://user:{plain}@host", remedy=f"not {plain}")
    if then == "crash":
        raise RuntimeError(f"boom {plain}")
    if then == "library":
        logging.getLogger("botocore").warning("request with %s", plain, extra={"headers": {"Authorization": plain}})
    if then == "cmdline":
        shown = [p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if p.exists()]
        return Done(text=str(any(plain.encode() in line for line in shown)))
    _log.warning("logged %s", plain, extra={"value": plain, "nested": {"list": [plain]}})
    run.console.note(f"noted {plain}")
    return Done(text="kept")


@verb(report=Done, text=_text, options=(SOURCE,), metrics=_samples)
def wait(run: Run) -> Done:
    """Wait for a signal."""
    run.closing(lambda: print("closed", file=sys.stderr))
    run.console.note("waiting")
    signal.pause()
    return Done(text="never")


@verb(report=Done, text=_text, options=(PROGRESS,))
def work(run: Run) -> Done:
    """Show progress."""
    sink = run.progress()
    sink.start("copy", 4096, 2)
    run.console.warn("one thing")
    sink.update(4096, 2, 0)
    sink.finish()
    return Done(text="worked")


HERE = "tests.support.cli.trial_verbs"
TRIAL_VERBS = (
    *VERBS,
    VerbEntry("change", f"{HERE}:change", "Change something."),
    VerbEntry("change twice", f"{HERE}:overwrite", "Ask for a name to be typed."),
    VerbEntry("end", f"{HERE}:end", "End with a code."),
    VerbEntry("backup", f"{HERE}:backup", "Succeed or fail, with metrics."),
    VerbEntry("leak", f"{HERE}:leak", "Fetch a secret and then try to give it away."),
    VerbEntry("wait", f"{HERE}:wait", "Wait for a signal."),
    VerbEntry("work", f"{HERE}:work", "Show progress."),
)

if __name__ == "__main__":
    main(TRIAL_VERBS)
