"""`logkeep zookeeper repair`: what can honestly be made of a backup with damaged objects."""

import click
import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.backup_rows import seen
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.cli.wiring import STORE_EXITS, chosen_source
from logkeep.config.options import (
    ACCEPT_LOSS,
    LEASE_TTL,
    PROGRESS,
    REPO,
    RETRY_FOR,
    SOURCE,
    ZK_DATA_DIRS,
    ZK_HOSTS,
    ZK_LOG_DIRS,
)
from logkeep.errors import UsageError
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId
from logkeep.repository.backups.source import read_facts
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain.commits import SourceRef


class RepairedObject(msgspec.Struct, frozen=True, kw_only=True):
    file: str
    """Of which member's file it is a piece."""
    object: str
    """The damaged one, which stays until all backups are pruned that were committed with it."""
    kind: str
    """`trimmed`, `repacked`, `header-rewritten`, `spliced`: nothing is lost; `split`: the good parts are logs of their
    own; `copied`: a snapshot that another backup has, or that is whole itself; `dropped`: one that nobody has; `left`:
    it stays as it is."""
    what: str
    """How it was mended, and from what; of what is left: what could be made of it."""
    why: str = ""
    """Why it is left as it is."""
    lost: tuple[str, ...] = ()
    """Transactions that are gone, from and to."""
    new_objects: tuple[str, ...] = ()
    """Empty on a dry run."""


class RepairedToo(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    verdict: str


class ZooKeeperRepairReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    id: int
    objects: tuple[RepairedObject, ...]
    lost: tuple[str, ...]
    verdict: str | None
    """Of the verification afterwards; null when nothing was changed."""
    findings: tuple[Finding, ...]
    """Of that verification."""
    also: tuple[RepairedToo, ...]
    """Backups that shared a damaged object and were called damaged for it, verified again."""
    unread: int = 0
    """Other backups that may have what is lost and were not looked at: they cannot be read, or there are too many."""
    dry_run: bool


def _text(report: ZooKeeperRepairReport, look: TerminalStyle) -> str:
    if not report.objects:
        return look.text(f"nothing is damaged in backup {report.id} of {report.source}")
    would = "would be " if report.dry_run else ""
    lines = [
        look.line(f"{would}{one.kind}: {one.what}" + (f"; {one.why}" if one.why else "")) for one in report.objects
    ]
    lines += [look.line(f"lost transactions: {lost}") for lost in report.lost]
    if report.unread:
        lines.append(look.line(f"{report.unread} other backups may have some of it and were not looked at"))
    if report.verdict is not None:
        state = look.state("OK") if report.verdict == GOOD else look.state("FAIL")
        lines.append(f"{state}  backup {report.id} of {report.source}: {report.verdict} after the repair")
    lines += [look.line(f"backup {one.id}, which needs the same objects: {one.verdict}") for one in report.also]
    return "\n".join([*lines, *finding_lines(report.findings, look, every=False)])


def _code(report: ZooKeeperRepairReport) -> int:
    """2: repaired without loss; 10: something is lost, or damaged still."""
    bad = report.verdict not in (None, GOOD) or any(one.verdict != GOOD for one in report.also)
    if bad or any(one.lost or one.kind == "left" for one in report.objects):
        return 10
    return 2 if any(one.kind != "trimmed" for one in report.objects) else 0


@verb(
    report=ZooKeeperRepairReport,
    text=_text,
    options=(REPO, SOURCE, ZK_DATA_DIRS, ZK_LOG_DIRS, ZK_HOSTS, ACCEPT_LOSS, RETRY_FOR, LEASE_TTL, PROGRESS),
    arguments=(click.Argument(["backup"], metavar="[ID]", default="latest"),),
    exits=(2, 10, 20, 50, *STORE_EXITS),
    exit_code=_code,
    changes=True,
    examples=(
        "logkeep zookeeper repair --dry-run",
        "logkeep zookeeper repair latest --data-dir zk2=/data/zk2",
        "logkeep zookeeper repair 20261116031500 --accept-loss --yes",
    ),
)
def repair(run: Run, backup: str) -> ZooKeeperRepairReport:
    """Mend a backup of which objects are damaged, as far as that can honestly be done.

    Every object is read. Records that are lost are taken, byte for byte, from another member, from another backup of
    the source, or from a server's directories (--data-dir): from whoever agrees with the damaged log wherever both have
    anything. Bytes behind the last record are trimmed. What nobody has is named as lost, and left as it is; with
    --accept-loss the good parts around it become logs of their own, and snapshots that nobody has are not used any
    more. New objects are written beside the damaged ones and serve all backups that need them; the damaged ones stay
    until those are pruned. Then everything is verified again.
    """
    place = chosen_source(run)
    _check_kind(place)
    backup_id = BackupId(seen(place, run.clock()).completed(backup).id)
    from logkeep.cli.verbs.zookeeper.repair_run import mend  # noqa: PLC0415 - numba is only needed here

    return mend(run, place, backup_id)


def _check_kind(place: SourceRef) -> None:
    facts = read_facts(place)
    if facts is not None and facts.kind != "zookeeper":
        raise UsageError(f"it is a source of kind {facts.kind}, not zookeeper", subject=place.source)
