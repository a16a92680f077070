"""`logkeep init` and `logkeep check`: create a repository, and check one."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural
from logkeep.cli.verbs.next_steps import after_init
from logkeep.cli.verbs.repository.store import probed_store
from logkeep.cli.wiring import STORE_EXITS, opened_store
from logkeep.config.options import LIMIT_DOWNLOAD, LIMIT_UPLOAD, REPO
from logkeep.errors import Damaged, LogkeepError, RepositoryMissing, StoreFull, StoreUnsafe
from logkeep.repository.access import Repository, create_repository, open_repository
from logkeep.repository.backups.source import view
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.owner import this_process
from logkeep.store.access import place_exists, provisional_place
from logkeep.store.address import parse_address
from logkeep.store.base import Store
from logkeep.store.conformance.probe import VERSIONS, ProbeReport, ProbeResult

State = Literal["OK", "WARN", "FAIL"]


class InitReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    repository: str
    """The id of the new repository; empty on a dry run."""
    commits_safe: bool
    """As the probe found; also false where a dry run could not probe because the directory does not exist yet."""
    leases_safe: bool
    remarks: tuple[str, ...]
    """Warnings of the probe."""
    dry_run: bool


def _init_text(report: InitReport, look: TerminalStyle) -> str:
    done = "a repository can be created at" if report.dry_run else f"created repository {report.repository} at"
    return look.text("\n".join([f"{done} {report.url}", *(f"  note: {r}" for r in report.remarks)]))


@verb(
    report=InitReport,
    text=_init_text,
    options=(REPO,),
    next_step=after_init,
    exits=(20, 41, 51, 52),
    changes=True,
    examples=("logkeep init -r file:///srv/backups", "logkeep init -r s3://bucket/logkeep"),
)
def init(run: Run) -> InitReport:
    """Create a repository.

    The store is probed first, and what it can do is recorded; a store on which two writers could both believe that
    they committed is refused. A local directory is created; a bucket must exist.
    """
    url = run.repo()
    if run.dry_run and not place_exists(url):
        return _not_yet_made(url)
    with provisional_place(url, create=not run.dry_run) as place:
        store = opened_store(run, url)
        probed = probed_store(run, store)
        if not (probed.commits_safe and probed.lease_safe):
            raise StoreUnsafe(_unsafe(probed), subject=store.url, remedy=_SAFER)
        created = "" if run.dry_run else _created(run, store)
        if created:
            place.pop_all()
    remarks = tuple(c.remedy or c.what for c in probed.checks if c.result is ProbeResult.WARNING)
    return InitReport(
        url=store.url, repository=created, commits_safe=True, leases_safe=True, remarks=remarks, dry_run=run.dry_run
    )


_SAFER = "use another store, or a newer release of this one; `logkeep store probe URL` shows all checks"


def _created(run: Run, store: Store) -> str:
    facts = StoreFacts(put_new=True, replace=True, durable=store.abilities.durable)
    return create_repository(store, facts, run.clock(), run.token).document.repository


def _unsafe(probed: ProbeReport) -> str:
    """The first reason: checks of commits come first."""
    first, *others = probed.reasons
    more = f" (and {plural(len(others), 'more failed check')})" if others else ""
    return f"commits would not be safe here: {first}{more}"


def _not_yet_made(url: str) -> InitReport:
    remarks = ("the run creates the directory and probes it then",)
    url = parse_address(url).url
    return InitReport(url=url, repository="", commits_safe=False, leases_safe=False, remarks=remarks, dry_run=True)


class CheckLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `check`."""

    what: str
    state: State
    detail: str
    remedy: str = ""
    exit_code: int = 0
    """Of a failure: that of the runs which it makes fail."""


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    checks: tuple[CheckLine, ...]


def _check_text(report: CheckReport, look: TerminalStyle) -> str:
    lines = [look.text(report.url)]
    for one in report.checks:
        lines.append(f"{look.state(one.state)}{'':{6 - len(one.state)}}{look.text(f'{one.what}: {one.detail}')}")
        if one.remedy:
            lines.append(look.text(f"        try: {one.remedy}"))
    return "\n".join(lines)


def _check_code(report: CheckReport) -> int:
    failures = (c.exit_code for c in report.checks if c.state == "FAIL")
    return next(failures, 2 if any(c.state == "WARN" for c in report.checks) else 0)


def _failed(what: str, error: LogkeepError, detail: str = "") -> CheckLine:
    return CheckLine(
        what=what, state="FAIL", detail=detail or error.what, remedy=error.remedy, exit_code=error.exit_code
    )


@verb(
    report=CheckReport,
    text=_check_text,
    options=(REPO, LIMIT_UPLOAD, LIMIT_DOWNLOAD),
    exits=(2, 10, 20, *STORE_EXITS),
    exit_code=_check_code,
)
def check(run: Run) -> CheckReport:
    """Check whether configuration, store and repository are ready for the next run.

    Writes nothing but small objects below a `probe-…` prefix, which it removes again. When something would make a run
    fail, it ends with the code of such a run; with 2 when something needs attention.
    """
    store = opened_store(run, run.repo())
    files = ", ".join(map(str, run.files)) or "no file; flags, environment and defaults"
    found = [CheckLine(what="configuration", state="OK", detail=files), *_store_lines(run, store)]
    found += list(_repository_lines(run, store))
    return CheckReport(url=store.url, checks=tuple(found))


def _store_lines(run: Run, store: Store) -> Iterator[CheckLine]:
    try:
        probed = probed_store(run, store)
    except StoreFull as error:
        yield _failed("store", error)
        return
    yield _store_line(probed)
    for c in probed.checks:
        if c.result is ProbeResult.WARNING:
            yield CheckLine(what=c.title, state="WARN", detail=c.what or "needs attention", remedy=c.remedy)
    for c in probed.checks:
        if c.slug == VERSIONS:
            yield CheckLine(what=c.title, state="OK", detail=c.what)


def _store_line(probed: ProbeReport) -> CheckLine:
    if probed.commits_safe and probed.lease_safe:
        checks = plural(len(probed.checks), "check")
        return CheckLine(what="store", state="OK", detail=f"{checks}; commits and leases are safe")
    return _failed("store", StoreUnsafe("; ".join(probed.reasons), remedy="; ".join(probed.remedies)))


def _repository_lines(run: Run, store: Store) -> Iterator[CheckLine]:
    try:
        repository = open_repository(store)
    except RepositoryMissing as error:
        yield _failed("repository", error)
        return
    yield CheckLine(what="repository", state="OK", detail=f"{repository.document.repository}, format 1")
    for warning in repository.warnings:
        yield CheckLine(what="repository", state="WARN", detail=warning, remedy="run `logkeep repair`")
    for name in repository.sources():
        yield _source_line(run, repository, name)


def _source_line(run: Run, repository: Repository, name: str) -> CheckLine:
    try:
        seen = view(repository.place(name), run.clock(), this_process(run.token()))
    except LogkeepError as error:
        return _failed(f"source {name}", error, str(error))
    if seen.warnings:
        return _failed(f"source {name}", Damaged(seen.warnings[0], remedy="run `logkeep verify`"))
    backups = plural(len(seen.folded.completed), "backup")
    return CheckLine(what=f"source {name}", state="OK", detail=f"{backups}, chain whole")
