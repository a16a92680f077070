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
    """A table, what went wrong first, and below it every detail in full."""
    ordered = sorted(rows, key=lambda r: (r.outcome == DONE, not r.detail, r.topic, r.partition))
    shown = ordered if every else ordered[:SHOWN]
    headers = ("FROM", "TO", "OFFSETS", "RECORDS", "SIZE", "END", "COMPARED", "OUTCOME")
    table = look.table(headers, map(_partition, shown), right=_RIGHT, spare="SIZE,OFFSETS,END,COMPARED")
    details = [look.line(f"{row.topic}/{row.partition}: {row.detail}") for row in shown if row.detail]
    return [table, *_more(len(rows) - len(shown), "partitions", look), *details]


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
    )


def group_lines(rows: Sequence[RestoredGroup], look: Look, *, every: bool) -> list[str]:
    """A table, groups that were left alone or moved inexactly first, and below it every detail in full."""
    ordered = sorted(rows, key=lambda r: (r.offset is not None, r.exact, r.group, r.topic, r.partition))
    shown = ordered if every else ordered[:SHOWN]
    headers = ("GROUP", "TOPIC", "PART", "BEFORE", "NOW", "EXACT", "AGAIN")
    table = look.table(headers, map(_group, shown), right=_RIGHT, spare="BEFORE,AGAIN")
    details = [look.line(f"{r.group} in {r.topic}/{r.partition}: {r.detail}") for r in shown if r.detail]
    return [table, *_more(len(rows) - len(shown), "positions of groups", look), *details]


def _group(row: RestoredGroup) -> tuple[str, ...]:
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


def finding_lines(findings: Sequence[Finding], look: Look, *, every: bool) -> list[str]:
    shown = findings if every else findings[:SHOWN]
    lines = [look.line(f"{f.severity.upper():8}{f.where}: {f.what}") for f in shown]
    return [*lines, *_more(len(findings) - len(shown), "findings", look)]


def _more(number: int, what: str, look: Look) -> list[str]:
    return [look.text(f"… and {count(number)} more {what}; --all shows them")] if number else []
