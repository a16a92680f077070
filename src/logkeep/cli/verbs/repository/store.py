"""`logkeep store probe`: what a store can do, before backups are written to it."""

import itertools

import click

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.config.options import PROGRESS, QUIET
from logkeep.store.access import open_store, provisional_place
from logkeep.store.base import Store
from logkeep.store.conformance.checks import CHECKS, CheckOutcome
from logkeep.store.conformance.probe import ProbeReport, ProbeResult
from logkeep.store.conformance.probe import probe as run_probe

_STATES = {ProbeResult.PASSED: "OK", ProbeResult.WARNING: "WARN", ProbeResult.FAILED: "FAIL"}


def _text(report: ProbeReport, look: TerminalStyle) -> str:
    lines = [report.url, ""]
    for check in report.checks:
        what = f": {check.what}" if check.what else ""
        lines.append(f"{look.state(_STATES[check.result])}{'':{6 - len(_STATES[check.result])}}{check.title}{what}")
    lines += ["", _verdict(report, look), *(f"  try: {remedy}" for remedy in report.remedies)]
    return look.text("\n".join(lines))


def _verdict(report: ProbeReport, look: TerminalStyle) -> str:
    if not report.commits_safe:
        return f"{look.state('FAIL')}  a repository here could lose backups; `init` refuses this store"
    if not report.lease_safe:
        return f"{look.state('WARN')}  backups are safe here, but two runs could work at the same time"
    return f"{look.state('OK')}    a repository is safe here"


def _exit_code(report: ProbeReport) -> int:
    if not report.commits_safe:
        return 40
    return 0 if all(check.result is ProbeResult.PASSED for check in report.checks) else 2


@verb(
    report=ProbeReport,
    text=_text,
    arguments=(click.Argument(["url"], metavar="URL"),),
    exits=(2, 20, 41, 51, 52),
    exit_code=_exit_code,
    examples=("logkeep store probe s3://bucket/prefix", "logkeep store probe file:///srv/backups"),
)
def probe(run: Run, url: str) -> ProbeReport:
    """Test what a store can do and report it in plain words.

    Writes, reads, races and deletes small objects below a random `probe/` prefix and removes them again. Ends with 40
    when commits would not be safe there, with 2 when something else needs attention.
    """
    with provisional_place(url, create=False):
        return probed_store(run, open_store(url))


def probed_store(run: Run, store: Store) -> ProbeReport:
    """Probe a store. A terminal shows each check as it is done; elsewhere one line says what takes a few seconds."""
    shown = "never" if run[QUIET] else run[PROGRESS]
    live = shown != "never" and run.console.err_look.width is not None
    if shown != "never" and not live and not store.url.startswith("file:"):
        run.console.note(f"testing what the store can do: {len(CHECKS)} checks")
    done = itertools.count(1)

    def show(outcome: CheckOutcome) -> None:
        run.console.live(f"testing the store: {next(done)} of {len(CHECKS)} checks; {outcome.check.title}")

    try:
        return run_probe(store, run.clock, run.token, watch=show if live else lambda _: None)
    finally:
        if live:
            run.console.live("")
