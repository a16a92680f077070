"""`logkeep zookeeper diff`: how two archived trees differ."""

from contextlib import ExitStack

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, count, plural
from logkeep.cli.verbs.zookeeper.declarations import DIFF
from logkeep.cli.verbs.zookeeper.moment import opened_side
from logkeep.config.options import BELOW, MOST_ROWS
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.time import Rfc3339
from logkeep.zookeeper.history.compare import TreeComparison, TreeSide, compare
from logkeep.zookeeper.history.log_task import wanted_path
from logkeep.zookeeper.history.tree_diff import DifferenceKind, NodeDifference
from logkeep.zookeeper.timeline.plan import RestorePath, shown_time


class DiffSide(msgspec.Struct, frozen=True, kw_only=True):
    backup: str
    zxid: str
    time: Rfc3339 | None
    """A number that is not a date is in milliseconds, such as `9000000000000000 ms`."""
    labels: tuple[str, ...] = ()
    """What weakens the proof of this tree: an unproven end of an epoch, or digests of one member that contradict its
    files."""


class DiffReport(msgspec.Struct, frozen=True, kw_only=True):
    before: DiffSide
    after: DiffSide
    path: str
    equal: bool
    by: str
    """`digest`: both come from the same archived bytes and end with the same digest; `replay`: every node was
    compared."""
    counts: dict[str, int]
    """Nodes by what differs; one may differ in several ways."""
    total: int
    differences: tuple[NodeDifference, ...]
    """The first `limit` of them, by path."""


def _text(report: DiffReport, look: TerminalStyle) -> str:
    lines = [look.line(f"A: {_side_text(report.before)}"), look.line(f"B: {_side_text(report.after)}")]
    if report.equal:
        how = "the same bytes with the same digest" if report.by == "digest" else "every node was compared"
        return "\n".join([*lines, look.line(f"equal below {report.path}: {how}")])
    rows = [(", ".join(one.kinds), _change(one), one.path) for one in report.differences]
    lines.append(look.table(("WHAT", "CHANGE", "PATH"), rows, whole="PATH"))
    if report.total > len(rows):
        lines.append(look.line(f"{count(report.total - len(rows))} more are not shown: --limit shows more"))
    counted = ", ".join(f"{kind} {count(number)}" for kind, number in report.counts.items())
    return "\n".join([*lines, look.line(f"{plural(report.total, 'difference')}: {counted}")])


def _side_text(side: DiffSide) -> str:
    text = f"{side.backup} at {side.zxid}" + (f" ({side.time})" if side.time else "")
    return ", ".join([text, *side.labels])


def _change(one: NodeDifference) -> str:
    if DifferenceKind.DATA in one.kinds:
        versions = f"version {one.version_before} → {one.version_after}"
        return f"{_bytes(one.bytes_before)} → {_bytes(one.bytes_after)}, {versions}"
    if DifferenceKind.CREATED in one.kinds:
        return _bytes(one.bytes_after)
    return _bytes(one.bytes_before) if DifferenceKind.DELETED in one.kinds else ", ".join(one.stat)


def _bytes(size_bytes: int | None) -> str:
    return "null" if size_bytes is None else plural(size_bytes, "byte")


@verb(DIFF, report=DiffReport, text=_text)
def diff(run: Run, before: str, after: str) -> DiffReport:
    path = wanted_path(run[BELOW])
    below = b"" if path == b"/" else path
    with ExitStack() as stack:
        one, other = (stack.enter_context(opened_side(run, named)) for named in (before, after))
        return _report(run[BELOW], one, other, compare(one, other, below, run[MOST_ROWS]))


def _report(path: str, one: TreeSide, other: TreeSide, found: TreeComparison) -> DiffReport:
    return DiffReport(
        before=_side(one, found.before),
        after=_side(other, found.after),
        path=path,
        equal=found.total == 0,
        by=found.by,
        counts={str(kind): found.counted[kind] for kind in DifferenceKind if found.counted[kind]},
        total=found.total,
        differences=found.differences,
    )


def _side(side: TreeSide, path: RestorePath) -> DiffSide:
    moment = path.last_restored
    time = None if moment.time_ms is None else shown_time(moment.time_ms)
    return DiffSide(backup=side.view.name, zxid=hex_zxid(moment.zxid), time=time, labels=path.labels)
