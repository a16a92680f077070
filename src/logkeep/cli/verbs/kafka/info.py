"""Text of `logkeep info` for Kafka: large and old topics, gaps, groups, what a restore needs.

Pure. Large items come first, and only as many as fit on a screen, unless --all is given.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from logkeep.cli.terminal.text import TerminalStyle, count, plural, size
from logkeep.kafka.record.contents import GapReport, GroupReport, KafkaReport, PartitionReport, TopicReport
from logkeep.kafka.record.restore_needs import RestoreNeeds
from logkeep.kafka.record.topic_sets import TopicSet

SHOWN = 15
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TOPICS = ("TOPIC", "PARTS", "RECORDS", "SIZE", "OLDEST", "NEWEST", "NOTES")
_LOGS = ("PART", "FROM", "TO", "STABLE", "RECORDS", "SIZE", "OLDEST", "NEWEST", "NOTES")
_GROUPS = ("GROUP", "KIND", "STATE", "TOPIC", "PARTS", "LAG", "NOTES")


def overview(report: KafkaReport, base: int | None) -> dict[str, str]:
    """The cluster and totals."""
    topics = report.topics
    sums = f"{plural(len(topics), 'topic')} · {plural(sum(t.partitions for t in topics), 'partition')}"
    acls = f"ACLs unknown ({report.acls_unknown})" if report.acls is None else plural(report.acls, "ACL")
    groups = plural(len(report.groups), "group") + (" with offsets in these topics" if report.chosen_topics else "")
    besides = [groups, acls, plural(report.quotas, "quota")]
    besides.append(f"configs of {plural(sum(bool(t.configs) for t in topics), 'topic')}")
    if report.scram_credentials is not None:
        besides.append(f"{plural(report.scram_credentials, 'SCRAM credential')}, encrypted")
    return {
        **_imported(report),
        "cluster": report.cluster_id,
        "continues": "none, it is independent" if base is None else str(base),
        "holds": f"{sums} · {plural(sum(t.records for t in topics), 'record')} · "
        f"{size(sum(t.stored_bytes for t in topics))}",
        "besides": " · ".join(besides),
    }


def _imported(report: KafkaReport) -> dict[str, str]:
    """Which tool wrote the dataset that a backup was imported from, and what it could not archive."""
    found = report.imported
    if found is None:
        return {}
    written = f"{found.format}, written by {found.tool} {found.tool_version}".rstrip()
    return {"imported": f"from {found.url} ({written})", "unknown": " · ".join(found.unknown) or "nothing"}


def topic_table(topics: Sequence[TopicReport], look: TerminalStyle, *, every: bool) -> Iterator[str]:
    shown = topics if every else topics[:SHOWN]
    rows = [
        (t.name, count(t.partitions), count(t.records), size(t.stored_bytes),
         moment(t.oldest_ms, look), moment(t.newest_ms, look), ", ".join(_topic_notes(t)))
        for t in shown
    ]  # fmt: skip
    yield look.table(_TOPICS, rows, right="PARTS,RECORDS,SIZE", spare="PARTS,OLDEST", free="NOTES")
    left = topics[len(shown) :]
    if left:
        rest = size(sum(t.stored_bytes for t in left))
        yield look.text(f"… and {plural(len(left), 'smaller topic')} with {rest}; --all shows them")
    old = oldest(topics)
    if old is not None and len(topics) > 1:
        zone = datetime.now(UTC).astimezone(look.zone).strftime("%z")
        yield look.line(f"oldest record: {moment(old.oldest_ms, look)} in {old.name}; times are {zone}")


def oldest(topics: Iterable[TopicReport]) -> TopicReport | None:
    known = [(t.oldest_ms, t.name, t) for t in topics if t.oldest_ms is not None]
    return min(known)[2] if known else None


def topic_details(topic: TopicReport, look: TerminalStyle) -> Iterator[str]:
    """One topic with all its partitions."""
    facts = {
        "topic": topic.name,
        "id": topic.id,
        "replication": str(topic.replication_factor),
        "configs": ", ".join(f"{k}={v}" for k, v in sorted(topic.configs.items())) or "all defaults",
        "open at cut": plural(topic.open_transactions, "transaction"),
    }
    yield look.pairs(facts)
    rows = [
        (str(p.partition), count(p.start), count(p.end), count(p.last_stable), count(p.records),
         size(p.stored_bytes), moment(p.oldest_ms, look), moment(p.newest_ms, look),
         ", ".join(_log_notes(p, topic.gaps)))
        for p in topic.logs
    ]  # fmt: skip
    flush = "PART,FROM,TO,STABLE,RECORDS,SIZE"
    yield look.table(_LOGS, rows, right=flush, spare="STABLE,OLDEST,RECORDS", free="NOTES")
    for log in topic.logs:
        if log.began:
            yield look.line(f"NEW   {topic.name}/{log.partition} {log.history}: {log.began}")


def gap_lines(topics: Iterable[TopicReport], look: TerminalStyle, *, every: bool) -> Iterator[str]:
    gaps = [(t.name, gap) for t in topics for gap in t.gaps]
    shown = gaps if every else gaps[:SHOWN]
    for name, gap in shown:
        missing = f"{plural(gap.end - gap.start, 'offset')} missing"
        yield look.line(f"GAP   {name}/{gap.partition} [{gap.start}, {gap.end}): {gap.reason}; {missing}")
    if len(gaps) > len(shown):
        yield look.text(f"… and {plural(len(gaps) - len(shown), 'more gap')}; --all shows them")


def group_table(groups: Sequence[GroupReport], look: TerminalStyle, *, every: bool) -> Iterator[str]:
    """One row for each group and topic, with its lag."""
    rows = [row for group in groups for row in _group_rows(group)]
    shown = rows if every else rows[:SHOWN]
    if rows:
        yield look.table(_GROUPS, shown, right="PARTS,LAG", spare="PARTS,STATE", free="NOTES")
    if len(rows) > len(shown):
        yield look.text(f"… and {plural(len(rows) - len(shown), 'more line')}; --all shows them")


def _group_rows(group: GroupReport) -> list[tuple[str, ...]]:
    if not group.topics:
        return [(group.name, group.kind, group.state, "-", "0", "-", "no positions")]
    return [
        (
            group.name,
            group.kind,
            group.state,
            t.topic,
            count(t.partitions),
            "?" if t.lag is None else count(t.lag),
            ", ".join(_position_notes(t.lag, t.below_start, t.clamped)),
        )
        for t in group.topics
    ]


def set_lines(sets: Sequence[TopicSet], look: TerminalStyle) -> Iterator[str]:
    """Topics that belong together, each set with what it lacks."""
    if sets:
        yield from ("", look.text("BELONG TOGETHER"))
    for each in sets:
        inputs = f"; reads {', '.join(each.inputs)}" if each.inputs else ""
        missing = f"; not in this backup: {', '.join(each.missing)}" if each.missing else ""
        yield look.prose(f"{each.kind} {each.name}: {', '.join(each.topics)}{inputs}{missing}", indent=2)


def needs_lines(needs: RestoreNeeds, backup_id: int, look: TerminalStyle) -> Iterator[str]:
    """What a restore would need."""
    batch = "unknown" if needs.largest_batch_bytes is None else f"{count(needs.largest_batch_bytes)} bytes"
    if needs.largest_batch_bytes is None and needs.max_message_bytes:
        batch += f"; the largest limit that a topic set is {count(max(needs.max_message_bytes.values()))} bytes"
    yield look.text("A RESTORE WOULD NEED")
    codecs = "unknown" if needs.codecs is None else ", ".join(needs.codecs) or "none"
    facts = {
        "disk": f"{size(needs.disk_bytes)} over all brokers, with {plural(needs.replicas, 'replica')}",
        "to create": f"{plural(needs.topics, 'topic')} with {plural(needs.partitions, 'partition')}",
        "brokers": f"at least {needs.brokers}",
        "largest batch": batch,
        "codecs": codecs,
        "check it first": f"logkeep verify {backup_id} --level data",
    }
    yield look.pairs(facts)
    for title, lines in (("special", needs.features), ("rights", needs.permissions)):
        yield from (look.line(f"{title:<14}  {line}") for line in lines)


def moment(time_ms: int | None, look: TerminalStyle) -> str:
    """To the minute, in the terminal's time zone. Producers choose timestamps, so any number is possible."""
    if time_ms is None:
        return "-"
    try:
        return (_EPOCH + timedelta(milliseconds=time_ms)).astimezone(look.zone).strftime("%Y-%m-%d %H:%M")
    except OverflowError:
        return f"{time_ms} ms"


def _topic_notes(topic: TopicReport) -> Iterator[str]:
    if topic.missing:
        yield f"{count(topic.missing)} missing"
    if any(log.began for log in topic.logs):
        yield "new history"
    if any(log.unproven_from is not None for log in topic.logs):
        yield "unproven end"
    if any(log.at_most for log in topic.logs):
        yield "at most"
    if topic.open_transactions:
        yield f"{topic.open_transactions} open tx"
    if "compact" in topic.configs.get("cleanup.policy", ""):
        yield "compacted"
    if topic.internal:
        yield "internal"


def _log_notes(log: PartitionReport, gaps: Iterable[GapReport]) -> Iterator[str]:
    missing = sum(gap.end - gap.start for gap in gaps if gap.partition == log.partition)
    if missing:
        yield f"{count(missing)} missing"
    if log.began:
        yield "new history"
    elif log.histories > 1:
        yield f"history {log.histories}"
    if log.at_most:
        yield "at most"
    if log.folded_to is not None:
        yield f"folded to {count(log.folded_to)}"
    if log.unproven_from is not None:
        yield f"unproven from {log.unproven_from}"
    if log.last_stable < log.end:
        yield "open tx"
    if log.buried:
        yield f"{count(log.buried)} buried"


def _position_notes(lag: int | None, below_start: int, clamped: int) -> Iterator[str]:
    if lag is None:
        yield "topic not in this backup"
    if below_start:
        yield f"{plural(below_start, 'position')} before the log start"
    if clamped:
        yield f"{plural(clamped, 'position')} set to the cut"
