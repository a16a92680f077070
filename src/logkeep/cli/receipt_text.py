"""How one restore looks to people: its facts, what became of each partition and each group, the findings."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from logkeep.cli.look import Look, count, duration, size
from logkeep.model.findings import Finding
from logkeep.repository.restores.documents import RestoredGroup, RestoredPartition, Target

SHOWN = 40
DONE = "done"
_RIGHT = "RECORDS,SIZE,END,PART,BEFORE,NOW,AGAIN"


def when(text: str | None, look: Look) -> str:
    return look.moment(datetime.fromisoformat(text)) if text else "-"


def took(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)


def target_text(target: Target) -> str:
    """`staging (cluster I_CW…)`"""
    cluster = f"cluster {target.cluster_id}"
    return f"{target.name} ({cluster})" if target.name else cluster


def rates_text(rates: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {rate:,.0f}" for name, rate in sorted(rates.items()))


def partition_lines(rows: Sequence[RestoredPartition], look: Look, *, every: bool) -> list[str]:
    """A table, what went wrong first. A column of details is there only when there are any."""
    ordered = sorted(rows, key=lambda r: (r.outcome == DONE, not r.detail, r.topic, r.partition))
    shown = ordered if every else ordered[:SHOWN]
    headers = ["FROM", "TO", "OFFSETS", "RECORDS", "SIZE", "END", "COMPARED", "OUTCOME", "DETAIL"]
    cells = [_partition(row) for row in shown]
    columns = len(headers) if any(row.detail for row in shown) else len(headers) - 1
    table = look.table(
        headers[:columns], [c[:columns] for c in cells], right=_RIGHT, spare="SIZE,OFFSETS,END,COMPARED", free="DETAIL"
    )
    return [table, *_more(len(rows) - len(shown), "partitions", look)]


def _partition(row: RestoredPartition) -> tuple[str, ...]:
    return (
        f"{row.source_topic}/{row.source_partition}",
        f"{row.topic}/{row.partition}",
        row.mode,
        count(row.records),
        size(row.bytes),
        count(row.end),
        "yes" if row.compared else "no",
        row.outcome,
        row.detail,
    )


def group_lines(rows: Sequence[RestoredGroup], look: Look, *, every: bool) -> list[str]:
    """A table, groups that were left alone or moved inexactly first."""
    ordered = sorted(rows, key=lambda r: (r.offset is not None, r.exact, r.group, r.topic, r.partition))
    shown = ordered if every else ordered[:SHOWN]
    headers = ["GROUP", "TOPIC", "PART", "BEFORE", "NOW", "EXACT", "AGAIN", "DETAIL"]
    cells = [_group(row) for row in shown]
    columns = len(headers) if any(row.detail for row in shown) else len(headers) - 1
    table = look.table(
        headers[:columns], [c[:columns] for c in cells], right=_RIGHT, spare="BEFORE,AGAIN", free="DETAIL"
    )
    return [table, *_more(len(rows) - len(shown), "positions of groups", look)]


def _group(row: RestoredGroup) -> tuple[str, ...]:
    return (
        row.group,
        row.topic,
        str(row.partition),
        "-" if row.previous_offset is None else count(row.previous_offset),
        "-" if row.offset is None else count(row.offset),
        "yes" if row.exact else "no",
        count(row.reread),
        row.detail,
    )


def finding_lines(findings: Sequence[Finding], look: Look, *, every: bool) -> list[str]:
    shown = findings if every else findings[:SHOWN]
    lines = [look.line(f"{f.severity.upper():8}{f.where}: {f.what}") for f in shown]
    return [*lines, *_more(len(findings) - len(shown), "findings", look)]


def _more(number: int, what: str, look: Look) -> list[str]:
    return [look.text(f"… and {count(number)} more {what}; --all shows them")] if number else []
