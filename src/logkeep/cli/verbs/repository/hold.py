"""`logkeep hold` and `logkeep release`: protect a backup from deletion, and end that."""

import click
import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.wiring import STORE_EXITS, chosen_source
from logkeep.config.options import REASON, STORE_OPTIONS
from logkeep.reports.backups import read_source
from logkeep.repository.chain.actions import HoldAction, ReleaseAction
from logkeep.repository.chain.write_session import pin


class PinReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    id: int
    held: str | None
    """The reason of the hold; null when it is not held."""
    changed: bool
    dry_run: bool


def _text(report: PinReport, look: TerminalStyle) -> str:
    state = "is released" if report.changed else "was not held"
    if report.held is not None:
        state = f"is held: {report.held}" if report.held else "is held"
    would = "" if not report.dry_run else " (dry run: nothing was changed)"
    return look.text(f"backup {report.id} of {report.source} {state}{would}")


_ARGUMENTS = (click.Argument(["backup"], metavar="ID"),)


@verb(
    report=PinReport,
    text=_text,
    options=(*STORE_OPTIONS, REASON),
    arguments=_ARGUMENTS,
    exits=(10, 50, *STORE_EXITS),
    changes=True,
    examples=("logkeep hold latest --reason 'before the migration'",),
)
def hold(run: Run, backup: str) -> PinReport:
    """Hold a backup: neither `prune` nor `delete` removes it until it is released.

    Works while another run holds the lease of the source. Holding a held backup replaces the reason.
    """
    place = chosen_source(run)
    entry = read_source(place, run.clock()).completed(backup)
    reason = run[REASON]
    changed = entry.hold != reason
    if changed and not run.dry_run:
        pin(place, HoldAction(entry.id, reason), run.clock, run.token)
    return PinReport(source=place.source, id=entry.id, held=reason, changed=changed, dry_run=run.dry_run)


@verb(
    report=PinReport,
    text=_text,
    options=STORE_OPTIONS,
    arguments=_ARGUMENTS,
    exits=(10, 50, *STORE_EXITS),
    changes=True,
)
def release(run: Run, backup: str) -> PinReport:
    """Release a held backup: `prune` and `delete` may remove it again."""
    place = chosen_source(run)
    entry = read_source(place, run.clock()).completed(backup)
    changed = entry.hold is not None
    if changed and not run.dry_run:
        pin(place, ReleaseAction(entry.id), run.clock, run.token)
    return PinReport(source=place.source, id=entry.id, held=None, changed=changed, dry_run=run.dry_run)
