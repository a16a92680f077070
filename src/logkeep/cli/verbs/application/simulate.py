"""`logkeep app simulate`: schedules of an application with faults, and what the judge found."""

import re
import sys
import time
from contextlib import redirect_stdout

import msgspec

from logkeep.application.simulation import SimulatedApplication, load_application
from logkeep.checkpoint.simulator.schedules import ScheduleTotals, run_seeds, shorten
from logkeep.checkpoint.simulator.workload import SHOP, Workload
from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, duration
from logkeep.config.options import REPLAY, SEEDS, SIMULATED_APPLICATION
from logkeep.errors import UsageError
from logkeep.model.plurals import plural

_RANGE = re.compile(r"(\d{1,12})\.\.(\d{1,12})")


class SimulatedFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule after which something was wrong, and the shortest one found that ends in the same way."""

    seed: int
    findings: tuple[str, ...]
    shortest: str


class SimulateReport(msgspec.Struct, frozen=True, kw_only=True):
    schedules: int
    completed: int
    """Backups that completed; each was restored and drained."""
    failed: int
    """Backups that ended as failed, with a reason."""
    forced_checkpoints: int
    with_messages_under_way: int
    crashes: int
    seconds: float
    failure: SimulatedFailure | None = None
    application: str | None = None
    """Of the user; null: the shop."""
    rejected: int = 0
    """Calls of the user's handlers that raised: their commands changed nothing."""
    first_rejection: str = ""


def _text(report: SimulateReport, look: TerminalStyle) -> str:
    done = f"{plural(report.schedules, 'schedule')} in {duration(report.seconds)}"
    under_way = f"{plural(report.with_messages_under_way, 'cut')} with messages under way"
    lines = [
        f"{plural(report.completed, 'backup')} completed, restored and drained; {report.failed:,} failed with a reason",
        f"{under_way}, {plural(report.forced_checkpoints, 'forced checkpoint')}",
        f"{plural(report.crashes, 'crash', 'crashes')} and changes of leaders",
    ]
    if report.rejected:
        lines.append(f"{plural(report.rejected, 'call')} of handlers raised, the first one: {report.first_rejection}")
    if report.failure is None:
        return "\n".join(look.text(line) for line in (f"{look.state('OK')}  {done}", *lines))
    head = f"{look.state('FAILED')}  seed {report.failure.seed}, after {done}"
    found = [f"  {text}" for text in report.failure.findings]
    shortest = ["the shortest schedule found that fails in this way:", *report.failure.shortest.splitlines()]
    return "\n".join(look.text(line) for line in (head, *found, *shortest))


@verb(
    report=SimulateReport,
    text=_text,
    options=(SIMULATED_APPLICATION, SEEDS, REPLAY),
    exits=(10,),
    exit_code=lambda report: 10 if report.failure else 0,
    examples=(
        "logkeep app simulate",
        "logkeep app simulate --application shop.py --seeds 1000..3000",
        "logkeep app simulate --replay 1234",
    ),
)
def simulate(run: Run) -> SimulateReport:
    """Run partitions of an application under seeded faults in virtual time, and judge every backup.

    Leaders crash and change, messages are lost, doubled and reordered, bytes that were not synced vanish, and the store
    fails before and after a call. Each completed backup is restored and run until its messages have arrived. It needs
    no server and writes temporary files only. The first failure ends it, with its seed and the shortest schedule found.

    The rules are those of the product: what a partition does with each message and record, which snapshot a backup
    uses, and when it is complete. Every sixteenth schedule also copies, completes and restores with the product's own
    code. The log, the store and the processes around them are simulated.

    The application is a small shop, or that of --application: its handlers process the commands that its function
    @sample_command makes, and its functions @invariant must hold after each run and after each restore. The program is
    loaded as `python FILE` loads it, without a call of `main`.
    """
    replay, file, began = run[REPLAY], run[SIMULATED_APPLICATION], time.monotonic()
    seeds = range(replay, replay + 1) if replay is not None else _seeds(run[SEEDS])
    if file is None:
        return _report(run_seeds(seeds), time.monotonic() - began)
    with redirect_stdout(sys.stderr):  # what the program prints is not the report
        application = load_application(file)
        simulated = SimulatedApplication(application)
        report = _report(run_seeds(seeds, simulated.workload), time.monotonic() - began, simulated.workload)
    return msgspec.structs.replace(
        report,
        application=application.name,
        rejected=simulated.rejected,
        first_rejection=simulated.first_rejection,
    )


def _seeds(text: str) -> range:
    found = _RANGE.fullmatch(text)
    if found is None or int(found[1]) >= int(found[2]):
        what = f"{text!r} is not a range of seeds"
        raise UsageError(what, subject="--seeds", remedy="write two numbers, the second one larger: --seeds 0..500")
    return range(int(found[1]), int(found[2]))


def _report(totals: ScheduleTotals, seconds: float, workload: Workload = SHOP) -> SimulateReport:
    counts = totals.counts
    return SimulateReport(
        schedules=totals.schedules,
        completed=counts.get("completed", 0),
        failed=counts.get("failed", 0),
        forced_checkpoints=counts.get("forced", 0),
        with_messages_under_way=counts.get("with messages under way", 0),
        crashes=counts.get("crashes", 0),
        seconds=round(seconds, 3),
        failure=_failure(totals, workload),
    )


def _failure(totals: ScheduleTotals, workload: Workload) -> SimulatedFailure | None:
    if not totals.failed:
        return None
    first = totals.failed[0]
    findings = tuple(f"{found.what}: {found.text}" for found in first.findings)
    return SimulatedFailure(seed=first.plan.seed, findings=findings, shortest=str(shorten(first, workload).plan))
