"""A restore for people: its facts and findings, its partitions and groups, the last one of a backup.

Partitions and groups are listed one by one where they are few, and summed where they are many. Bad news comes first
and is never summed up: a restore of ten thousand partitions fits on a screen.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from logkeep.cli.terminal.text import TerminalStyle, count, duration, plural, size
from logkeep.model.findings import Finding, Severity
from logkeep.reports.restores import LastRestore
from logkeep.repository.restores.documents import RestoredGroup, RestoredPartition, RestoreTargetRef

SHOWN = 40
FEW = 12
"""Up to this many rows are shown one by one."""
DONE = "done"
_COMPARED, _DONE = "COMPARED", "DONE"
_RIGHT = "PARTS,RECORDS,SIZE,END,PART,BEFORE,NOW,REREAD"
_INDENT = 8
_BYTES, _PER_S = "_bytes_per_s", "_per_s"


def when(text: str | None, look: TerminalStyle) -> str:
    return look.moment(datetime.fromisoformat(text)) if text else "-"


def took(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)


def target_text(target: RestoreTargetRef) -> str:
    """`staging (cluster I_CW…)`; a target that is not a cluster has only a name."""
    if not target.cluster_id and target.name:
        return target.name
    cluster = f"cluster {target.cluster_id}"
    return f"{target.name} ({cluster})" if target.name else cluster


def rates_text(rates: Mapping[str, float]) -> str:
    """`records 12,345/s, sent 11.2 MiB/s`."""
    return ", ".join(_rate(name, rate) for name, rate in sorted(rates.items()))


def _rate(name: str, rate: float) -> str:
    if name.endswith(_BYTES):
        return f"{name.removesuffix(_BYTES)} {size(rate)}/s"
    return f"{name.removesuffix(_PER_S)} {rate:,.0f}/s"


def finding_lines(findings: Sequence[Finding], look: TerminalStyle, *, every: bool) -> list[str]:
    """Each with what to do about it, unless it is only a note."""
    shown = findings if every else findings[:SHOWN]
    lines = [line for finding in shown for line in _finding(finding, look)]
    left = len(findings) - len(shown)
    return [*lines, *([look.text(f"… and {plural(left, 'more finding')}; --json has all")] if left else [])]


def _finding(finding: Finding, look: TerminalStyle) -> list[str]:
    text = look.prose(f"{finding.severity.upper():{_INDENT}}{finding.where}: {finding.what}", indent=_INDENT)
    if not finding.remedy or finding.severity is Severity.NOTE:
        return [text]
    return [text, look.prose(f"{'':{_INDENT}}try: {finding.remedy}", indent=_INDENT + 5)]


def restore_cell(last: LastRestore | None, look: TerminalStyle) -> str:
    """`drill: proven 2026-11-16 RTO 12 s`: for a table."""
    if last is None:
        return ""
    day = look.moment(datetime.fromisoformat(last.finished))[:10]
    return f"{_restore_or_drill(last)}: {last.state} {day}{_recovery(last)}"


def restore_line(last: LastRestore | None, look: TerminalStyle) -> str:
    """`drill of 20261116001348: proven 2026-11-16 02:15:12 +0000 RTO 12 s`."""
    if last is None:
        return "never"
    when = look.moment(datetime.fromisoformat(last.finished))
    return f"{_restore_or_drill(last)} of {last.backup}: {last.state} {when}{_recovery(last)}"


def _restore_or_drill(last: LastRestore) -> str:
    return "drill" if last.drill else "restore"


def _recovery(last: LastRestore) -> str:
    """Only a complete restore has a recovery time."""
    reached = last.duration_s is not None and last.state in {"proven", "unproven"}
    return f" RTO {duration(last.duration_s)}" if reached and last.duration_s is not None else ""


def planned_lines(rows: Sequence[RestoredPartition], look: TerminalStyle) -> list[str]:
    """What is going to be restored: offsets where partitions are few, otherwise topics, the largest first."""
    if len(rows) > FEW:
        return _topics(rows, look, "--json has every one", (_COMPARED, _DONE))
    columns = (*_names(rows), "OFFSETS", "RECORDS", "SIZE")
    cells = [(*_places(rows, row), row.detail, count(row.records), size(row.bytes)) for row in rows]
    return [look.table(columns, cells, right=_RIGHT, spare="OFFSETS")]


def partition_lines(
    rows: Sequence[RestoredPartition],
    look: TerminalStyle,
    *,
    every: bool,
    hint: str,
    compared: bool = True,
    details: bool = True,
) -> list[str]:
    """What was restored, and below it every detail; `hint` says where all rows are shown.

    Without `compared` the column COMPARED is left out, for restores with another proof. Without `details` only
    findings report them.
    """
    left_out = () if compared else (_COMPARED,)
    ordered = sorted(rows, key=lambda r: (r.outcome == DONE, not r.detail, r.topic, r.partition))
    if every or len(rows) <= FEW:
        return [_partitions(ordered, look, left_out), *(_details(ordered, look) if details else [])]
    bad = [row for row in ordered if row.outcome != DONE]
    shown = bad[:SHOWN]
    more = _more(len(bad) - len(shown), "partitions", hint, look)
    lines = [_partitions(shown, look, left_out), *more] if bad else []
    text = _details(shown, look) if details else []
    return [*lines, *text, *_topics(rows, look, hint, left_out)]


def _partitions(rows: Sequence[RestoredPartition], look: TerminalStyle, left_out: Sequence[str]) -> str:
    columns = (*_names(rows), "RECORDS", "SIZE", "END", _COMPARED, "OUTCOME")
    return _without(left_out, columns, [_partition(rows, row) for row in rows], look, f"SIZE,END,{_COMPARED}")


def _partition(rows: Sequence[RestoredPartition], row: RestoredPartition) -> tuple[str, ...]:
    compared = "yes" if row.compared else "no"
    return (*_places(rows, row), count(row.records), size(row.bytes), count(row.end), compared, row.outcome)


def _without(
    left_out: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[str]], look: TerminalStyle, spare: str
) -> str:
    kept = [i for i, name in enumerate(columns) if name not in left_out]
    spared = ",".join(name for name in spare.split(",") if name not in left_out)
    return look.table([columns[i] for i in kept], [[row[i] for i in kept] for row in rows], right=_RIGHT, spare=spared)


def _renamed(rows: Iterable[RestoredPartition]) -> bool:
    return any((r.source_topic, r.source_partition) != (r.topic, r.partition) for r in rows)


def _names(rows: Sequence[RestoredPartition]) -> tuple[str, ...]:
    return ("FROM", "TO") if _renamed(rows) else ("PARTITION",)


def _places(rows: Sequence[RestoredPartition], row: RestoredPartition) -> tuple[str, ...]:
    target = f"{row.topic}/{row.partition}"
    return (f"{row.source_topic}/{row.source_partition}", target) if _renamed(rows) else (target,)


def _details(rows: Sequence[RestoredPartition], look: TerminalStyle) -> list[str]:
    return [look.line(f"{row.topic}/{row.partition}: {row.detail}") for row in rows if row.detail]


def _topics(rows: Sequence[RestoredPartition], look: TerminalStyle, hint: str, left_out: Sequence[str]) -> list[str]:
    topics: defaultdict[tuple[str, str], list[RestoredPartition]] = defaultdict(list)
    for row in rows:
        topics[row.source_topic, row.topic].append(row)
    largest = sorted(topics.items(), key=lambda item: (-sum(r.bytes for r in item[1]), item[0]))
    renamed = any(source != target for source, target in topics)
    cells = [(*(names if renamed else names[1:]), *_topic(some)) for names, some in largest[:SHOWN]]
    columns = (*(("FROM", "TO") if renamed else ("TOPIC",)), "PARTS", "RECORDS", "SIZE", _COMPARED, _DONE)
    table = _without(left_out, columns, cells, look, "SIZE")
    return [table, *_more(len(largest) - len(cells), "topics", hint, look)]


def _topic(rows: Sequence[RestoredPartition]) -> tuple[str, ...]:
    """A partition that got records of several others has several rows: it is good when all of them are."""
    targets: defaultdict[int, list[RestoredPartition]] = defaultdict(list)
    for row in rows:
        targets[row.partition].append(row)
    sums = (count(len(targets)), count(sum(r.records for r in rows)), size(sum(r.bytes for r in rows)))
    compared = _share(all(r.compared for r in some) for some in targets.values())
    return (*sums, compared, _share(all(r.outcome == DONE for r in some) for some in targets.values()))


def _share(each: Iterable[bool]) -> str:
    """`all`, `none` or `3 of 4`."""
    found = list(each)
    return "all" if all(found) else f"{sum(found):,} of {len(found):,}" if any(found) else "none"


def group_lines(rows: Sequence[RestoredGroup], look: TerminalStyle, *, every: bool, hint: str) -> list[str]:
    """Offsets that were not set or not exact come first, and below them every detail."""
    ordered = sorted(rows, key=lambda r: (r.offset is not None, r.exact, r.group, r.topic, r.partition))
    if every or len(rows) <= FEW:
        return [_positions(ordered, look), *_reasons(ordered, look)]
    odd = [row for row in ordered if row.offset is None or not row.exact]
    shown = odd[:SHOWN]
    lines = [_positions(shown, look), *_more(len(odd) - len(shown), "positions", hint, look)] if odd else []
    return [*lines, *_reasons(shown, look), *_groups(rows, look, hint)]


def _positions(rows: Sequence[RestoredGroup], look: TerminalStyle) -> str:
    columns = ("GROUP", "TOPIC", "PART", "BEFORE", "NOW", "EXACT", "REREAD")
    return look.table(columns, map(_position, rows), right=_RIGHT, spare="BEFORE,REREAD")


def _position(row: RestoredGroup) -> tuple[str, ...]:
    left_alone = row.offset is None
    return (
        row.group,
        row.topic,
        str(row.partition),
        "-" if row.previous_offset is None else count(row.previous_offset),
        "-" if row.offset is None else count(row.offset),
        "-" if left_alone else "yes" if row.exact else "no",
        "-" if left_alone else count(row.reread),
    )


def _reasons(rows: Sequence[RestoredGroup], look: TerminalStyle) -> list[str]:
    """One line for all partitions of a topic with the same detail."""
    found: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for row in rows:
        if row.detail:
            found[row.group, row.topic, row.detail].append(row.partition)
    return [
        look.line(f"{group} in {topic}{_partitions_text(which)}: {detail}")
        for (group, topic, detail), which in found.items()
    ]


def _partitions_text(which: Sequence[int]) -> str:
    return f"/{which[0]}" if len(which) == 1 else f", {plural(len(which), 'partition')}"


def _groups(rows: Sequence[RestoredGroup], look: TerminalStyle, hint: str) -> list[str]:
    found: defaultdict[tuple[str, str], list[RestoredGroup]] = defaultdict(list)
    for row in rows:
        found[row.group, row.topic].append(row)
    named = sorted(found.items())
    cells = [
        (
            *names,
            count(len(some)),
            _share(r.offset is not None and r.exact for r in some),
            count(sum(r.reread for r in some if r.offset is not None)),
        )
        for names, some in named[:SHOWN]
    ]
    table = look.table(("GROUP", "TOPIC", "PARTS", "EXACT", "REREAD"), cells, right=_RIGHT)
    return [table, *_more(len(named) - len(cells), "groups and topics", hint, look)]


def _more(number: int, what: str, hint: str, look: TerminalStyle) -> list[str]:
    return [look.text(f"… and {count(number)} more {what}; {hint}")] if number else []
