"""The report of `logkeep zookeeper repair`: what became of each damaged object."""

import msgspec

from logkeep.cli.terminal.text import TerminalStyle, plural
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.model.findings import Finding
from logkeep.repository.backups.verdicts import GOOD


class RepairedObject(msgspec.Struct, frozen=True, kw_only=True):
    file: str
    """The member's file that it is part of."""
    object: str
    """The damaged object, which stays until all backups that were committed with it are pruned."""
    kind: str
    """`trimmed`, `repacked`, `header-rewritten`, `spliced`: nothing is lost; `split`: the good parts are separate
    logs; `copied`: a snapshot from another backup, or undamaged itself; `dropped`: a snapshot without a copy; `left`:
    not changed."""
    what: str
    """How it was repaired, and from what; with `left`, how it could be repaired."""
    why: str = ""
    """Why it was not changed."""
    lost: tuple[str, ...] = ()
    """Ranges of lost transactions."""
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
    """Backups that shared a damaged object and were found damaged, verified again."""
    unread: int = 0
    """Other backups that may have lost records and were not read: they are unreadable, or too many."""
    dry_run: bool


def repair_text(report: ZooKeeperRepairReport, look: TerminalStyle) -> str:
    if not report.objects:
        return look.text(f"nothing is damaged in backup {report.id} of {report.source}")
    would = "would be " if report.dry_run else ""
    lines = [
        look.line(f"{would}{one.kind}: {one.what}" + (f"; {one.why}" if one.why else "")) for one in report.objects
    ]
    lines += [look.line(f"lost transactions: {lost}") for lost in report.lost]
    if report.unread:
        some = "may have some of it and"
        unread = plural(report.unread, f"other backup {some} was", f"other backups {some} were")
        lines.append(look.line(f"{unread} not read"))
    if report.verdict is not None:
        state = look.state("OK") if report.verdict == GOOD else look.state("FAIL")
        lines.append(f"{state}  backup {report.id} of {report.source}: {report.verdict} after the repair")
    lines += [look.line(f"backup {one.id}, which needs the same objects: {one.verdict}") for one in report.also]
    return "\n".join([*lines, *finding_lines(report.findings, look, every=False)])


def repair_code(report: ZooKeeperRepairReport) -> int:
    """2: repaired without loss; 10: something is lost, or still damaged."""
    bad = report.verdict not in (None, GOOD) or any(one.verdict != GOOD for one in report.also)
    if bad or any(one.lost or one.kind == "left" for one in report.objects):
        return 10
    return 2 if any(one.kind != "trimmed" for one in report.objects) else 0
