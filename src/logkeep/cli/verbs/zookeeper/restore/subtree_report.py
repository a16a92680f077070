"""The report of `logkeep zookeeper restore-subtree`: the plan, what is left out, the result."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from logkeep.cli.terminal.text import TerminalStyle, count, plural
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding
from logkeep.model.shell_words import shell_word
from logkeep.zookeeper.subtree.prepare import NEVER_RESTORED, PreparedSubtree
from logkeep.zookeeper.subtree.run import SubtreeRunEnd
from logkeep.zookeeper.timeline.plan import RestorePath

_SHOWN = 20
_WARNED = 2


class PlannedChange(msgspec.Struct, frozen=True):
    kind: str
    """`create`, `set`, `delete` or `acls`."""
    path: str


class LeftOutNode(msgspec.Struct, frozen=True):
    path: str
    why: str
    lost: bool
    """The live tree lacks something that the backup has."""


class SubtreeReport(msgspec.Struct, frozen=True, kw_only=True):
    verdict: str
    """`planned`, `done`, `nothing-to-do`; `resumed` or `undone`; `changed-since` when another client changed nodes."""
    hosts: str
    target: str
    """The path in the live tree."""
    source: str | None = None
    backup: int | None = None
    path: str | None = None
    """The path in the backup."""
    what: str | None = None
    """With --resume and --undo: the description in the journal."""
    zxid: str | None = None
    """The last transaction in the backup's tree."""
    proof: str | None = None
    changes: tuple[PlannedChange, ...] = ()
    multis: int = 0
    """Number of requests for the changes."""
    extra: int = 0
    """Live nodes that the backup does not have."""
    left_out: tuple[LeftOutNode, ...] = ()
    acls_not_shown: tuple[str, ...] = ()
    """Deleted nodes whose ACLs an undo cannot restore: the server shows only parts of them."""
    acls_not_compared: tuple[str, ...] = ()
    """Nodes whose ACLs may differ from the backup: without admin rights the server shows only parts of them."""
    not_restored: tuple[str, ...] = NEVER_RESTORED
    journal: str | None = None
    restore: int | None = None
    """The id for `logkeep receipts show`."""
    made: int = 0
    """Changes."""
    compared: int = 0
    """Nodes that were read again at the end."""
    unreadable: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    """Nodes that differed from the plan when they were read again."""
    left_alone: tuple[str, ...] = ()
    """Nodes that were not undone: another client has changed them, or nodes above or below them."""
    findings: tuple[Finding, ...] = ()
    dry_run: bool = False

    @property
    def exit_code(self) -> int:
        unlike = self.differing or self.left_alone or self.acls_not_compared
        return _WARNED if unlike or any(each.lost for each in self.left_out) else 0


def planned_report(
    source: str, backup: int, hosts: str, path: str, target: str, way: RestorePath, prepared: PreparedSubtree
) -> SubtreeReport:
    planned = prepared.planned
    return SubtreeReport(
        verdict="planned" if prepared.batches else "nothing-to-do",
        hosts=hosts,
        target=target,
        source=source,
        backup=backup,
        path=path,
        zxid=hex_zxid(way.until),
        proof=", ".join([way.proof, *way.labels]),
        changes=tuple(
            PlannedChange(str(change.__struct_config__.tag), shown(change.path)) for change in planned.changes
        ),
        multis=len(prepared.batches),
        extra=planned.extra,
        left_out=tuple(LeftOutNode(shown(each.path), each.why, each.lost) for each in planned.left_out),
        acls_not_shown=tuple(map(shown, planned.masked)),
        acls_not_compared=tuple(map(shown, planned.not_compared)),
    )


def ended_report(planned: SubtreeReport, ended: SubtreeRunEnd, verdict: str = "done") -> SubtreeReport:
    checked, left = ended.checked, ended.heading.left_alone or ()
    return msgspec.structs.replace(
        planned,
        verdict="changed-since" if checked.differing or left else verdict,
        multis=ended.batches,
        journal=str(ended.journal),
        made=ended.changes,
        compared=checked.nodes,
        unreadable=tuple(map(shown, checked.unreadable)),
        differing=tuple(map(shown, checked.differing)),
        left_alone=left,
    )


def subtree_text(report: SubtreeReport, look: TerminalStyle) -> str:
    if report.journal is None:
        return plan_text(report, look)
    return "\n".join(_ended_lines(report, look))


def plan_text(report: SubtreeReport, look: TerminalStyle) -> str:
    return "\n".join(_plan_lines(report, look))


def _plan_lines(report: SubtreeReport, look: TerminalStyle) -> Iterator[str]:
    kinds = Counter(change.kind for change in report.changes)
    kinds_text = [f"{count(kinds[kind])} {word}" for kind, word in _WORDS.items() if kinds[kind]]
    facts = {
        "subtree": f"{report.path} of backup {report.backup} of {report.source}" if report.path else report.what or "",
        "tree at": f"{report.zxid} ({report.proof})" if report.zxid else "",
        "into": f"{report.target} at {report.hosts}",
        "changes": f"{', '.join(kinds_text)}; in {plural(report.multis, 'request')}"
        if kinds_text
        else _no_changes(report),
        "extra": f"{plural(report.extra, 'live node')} that the backup does not have" if report.extra else "",
    }
    yield look.pairs({name: value for name, value in facts.items() if value})
    for change in report.changes[:_SHOWN]:
        yield look.line(f"  {change.kind:6}  {change.path}")
    if len(report.changes) > _SHOWN:
        yield look.line(f"  … and {count(len(report.changes) - _SHOWN)} more; --json has all")
    yield from _left_out_lines(report, look)
    for path in report.acls_not_shown[:_SHOWN]:
        yield look.line(f"an undo cannot restore the ACLs of {path}: the server shows only parts of them")
    yield from _other_lines(report, look)


_WORDS = {"create": "created", "set": "set", "delete": "deleted", "acls": "with other ACLs"}


def _no_changes(report: SubtreeReport) -> str:
    if not report.path:
        return ""
    unknown = bool(report.acls_not_compared)
    return "none: the live tree has all that can be compared" if unknown else "none: the live tree has all of it"


def _other_lines(report: SubtreeReport, look: TerminalStyle) -> Iterator[str]:
    paths = report.acls_not_compared
    if paths:
        yield from _not_compared_lines(paths, look)
    if report.path:
        yield from (look.prose(f"not restored: {each}", indent=len("not restored: ")) for each in report.not_restored)
    yield from finding_lines(report.findings, look, every=True)


def _not_compared_lines(paths: Sequence[str], look: TerminalStyle) -> Iterator[str]:
    yield look.line(f"ACLs that cannot be compared: {plural(len(paths), 'node')}")
    yield from (look.line(f"  {path}") for path in paths[:_SHOWN])
    if len(paths) > _SHOWN:
        yield look.line(f"  … and {count(len(paths) - _SHOWN)} more; --json has all")
    yield look.line("name credentials that have admin rights there with --auth-file, and run it again")


def _left_out_lines(report: SubtreeReport, look: TerminalStyle) -> Iterator[str]:
    for each in report.left_out[:_SHOWN]:
        yield look.line(f"{'LEFT OUT' if each.lost else 'left out'}  {each.path}: {each.why}")
    if len(report.left_out) > _SHOWN:
        yield look.line(f"… and {count(len(report.left_out) - _SHOWN)} more are left out; --json has all")


def _ended_lines(report: SubtreeReport, look: TerminalStyle) -> Iterator[str]:
    state = look.state("WARN" if report.exit_code else "OK")
    yield look.line(f"{state}  {report.target}: {report.verdict}, {plural(report.made, 'change')}")
    yield look.line(f"read again: {plural(report.compared, 'node')}, {count(len(report.differing))} differ")
    yield from (look.line(f"  another client has changed {path} since") for path in report.differing[:_SHOWN])
    for path in report.left_alone[:_SHOWN]:
        yield look.line(f"NOT UNDONE  {path}: another client has changed it, or a node above or below it")
    if len(report.left_alone) > _SHOWN:
        yield look.line(f"… and {count(len(report.left_alone) - _SHOWN)} more are not undone; --json has all")
    if report.unreadable:
        yield look.line(f"not read again: {plural(len(report.unreadable), 'node')} hidden by ACLs")
    yield from _left_out_lines(report, look)
    yield from _other_lines(report, look)
    if report.restore is not None:
        yield look.line(f"receipt:     logkeep receipts show {report.restore}")
    yield look.line(f"to undo it:  logkeep zookeeper restore-subtree --undo {shell_word(report.journal or '')}")
