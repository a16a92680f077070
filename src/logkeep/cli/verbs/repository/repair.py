"""`logkeep unlock` and `logkeep repair`: remove a dead run's lease, and rebuild lost objects."""

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural
from logkeep.cli.wiring import STORE_EXITS, chosen_source, opened_repository, sources_of
from logkeep.config.options import ACCEPT_LOSS, LEASE_TTL, STORE_OPTIONS
from logkeep.repository.chain.lease import LeaseState, free, lease_state, read_lease
from logkeep.repository.chain.owner import this_process


class UnlockReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    holder: str | None
    """The process that holds the lease, its operation and times; null when the lease is free."""
    standing: str
    """`free`, `held`, `expired` or `owner_dead`, as it was found."""
    unlocked: bool
    dry_run: bool


def _unlock_text(report: UnlockReport, look: TerminalStyle) -> str:
    if report.holder is None:
        return look.text(f"{report.source} is free")
    done = "unlocked" if report.unlocked else "would unlock"
    return look.text(f"{report.source}: {report.holder} ({report.standing.replace('_', ' ')})\n{done}")


@verb(
    report=UnlockReport,
    text=_unlock_text,
    options=STORE_OPTIONS,
    exits=(10, 50, *STORE_EXITS),
    changes=True,
    examples=("logkeep unlock --dry-run",),
)
def unlock(run: Run) -> UnlockReport:
    """Remove the lease of a run that has died.

    Shows the holder first. Rarely needed: a lease ends by itself, and at once when its process died on this machine.
    A run that is still alive loses nothing that is committed: it notices before its next commit and ends with 50.
    """
    place = chosen_source(run)
    found = read_lease(place)
    state = lease_state(found[0], run.clock(), this_process(run.token())) if found else LeaseState.FREE
    if found is None or state is LeaseState.FREE:
        return UnlockReport(source=place.source, holder=None, standing="free", unlocked=False, dry_run=run.dry_run)
    document, version = found
    holder = f"{document.operation} by {document.owner}, since {document.acquired}, until {document.expires}"
    run.confirm(f"{place.source} is held: {holder}. Remove the lease?")
    if not run.dry_run:
        free(place, document, version)
    return UnlockReport(
        source=place.source, holder=holder, standing=state.name.lower(), unlocked=not run.dry_run, dry_run=run.dry_run
    )


class RepairStep(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    where: str


class RepairReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    steps: tuple[RepairStep, ...]
    dry_run: bool


def _repair_text(report: RepairReport, look: TerminalStyle) -> str:
    if not report.steps:
        return look.text(f"nothing to repair in {report.url}")
    would = "would " if report.dry_run else ""
    return "\n".join(look.line(f"{would}{step.what}: {step.where}") for step in report.steps)


@verb(
    report=RepairReport,
    text=_repair_text,
    options=(*STORE_OPTIONS, LEASE_TTL, ACCEPT_LOSS),
    exits=(2, 10, 50, *STORE_EXITS),
    exit_code=lambda report: 2 if report.steps else 0,
    changes=True,
    examples=("logkeep repair --dry-run", "logkeep repair --accept-loss"),
)
def repair(run: Run) -> RepairReport:
    """Rebuild checkpoints, the second format object, a source's document or a broken lease.

    Data is never touched. When commits are lost, restore their objects from the store's versions. Only if these
    are lost too, --accept-loss continues without them and commits again those lost backups whose manifests are intact.
    """
    from logkeep.repository.upkeep.repair import repair as repair_source  # noqa: PLC0415 - loads Arrow, which unlock can spare
    from logkeep.repository.upkeep.repair import repair_format  # noqa: PLC0415 - the same

    repository = opened_repository(run)
    steps = list(repair_format(repository.store, repository.document, dry_run=True))
    places = sources_of(repository, run)
    for place in places:
        steps += repair_source(place, run.clock, run.token, run[LEASE_TTL], accept_loss=run[ACCEPT_LOSS], dry_run=True)
    if steps and not run.dry_run:
        run.confirm(f"carry out {plural(len(steps), 'repair')}?")
        list(repair_format(repository.store, repository.document, dry_run=False))
        for place in places:
            repair_source(place, run.clock, run.token, run[LEASE_TTL], accept_loss=run[ACCEPT_LOSS], dry_run=False)
    return RepairReport(
        url=repository.store.url,
        steps=tuple(RepairStep(what=s.what, where=s.where) for s in steps),
        dry_run=run.dry_run,
    )
