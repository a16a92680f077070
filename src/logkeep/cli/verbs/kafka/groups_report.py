"""Report and text of `logkeep kafka groups`: offsets of groups, at a time or all their history, and raw records."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from logkeep.cli.terminal.text import TerminalStyle, count, plural
from logkeep.cli.verbs.kafka.info import moment
from logkeep.kafka.group_history.answers import CompleteTimes
from logkeep.kafka.group_history.values import ArchivedCommit, RawRecord

_SHOWN = 40
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PositionRow(msgspec.Struct, frozen=True, kw_only=True):
    """The last position of a group in one partition; times in ms since 1970."""

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    erased_ms: int | None
    """When the cluster deleted it, with its topic or group or because it expired; null when it did not."""
    topic_id: str | None = None
    """In hexadecimal, as it was committed; null if the broker did not record it."""
    share: bool = False
    """The start offset of a share group."""
    sure: bool = True
    """Whether no record is missing that could have changed it before the time."""


class CompleteInterval(msgspec.Struct, frozen=True, kw_only=True):
    """For which times the answer is complete, in ms since 1970, both ends included."""

    complete: bool
    """False: the answer is what is archived, at least."""
    from_ms: int | None
    """Null: from the beginning of the log, or not complete."""
    to_ms: int | None
    until_ms: int
    """The archive ends here."""
    nearest_ms: tuple[int, ...] = ()
    """The nearest complete times, if the asked one is not."""


class GroupsReport(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    source: str
    erased: int
    positions: tuple[PositionRow, ...]
    all: bool
    at_ms: int | None = None
    """The asked time; null: the end of the backup."""
    complete: CompleteInterval | None = None
    history: tuple[ArchivedCommit, ...] | None = None
    """Every archived commit, by time; null without --history."""
    raw: tuple[RawRecord, ...] | None = None
    """Every archived record, by time; null without --raw."""
    unknown: dict[str, int] = {}
    """Archived records of types and versions that this release does not know."""


def interval_of(found: CompleteTimes) -> CompleteInterval:
    return CompleteInterval(
        complete=found.span is not None,
        from_ms=found.from_ms,
        to_ms=found.to_ms,
        until_ms=found.until_ms,
        nearest_ms=() if found.span is not None else found.nearest,
    )


def groups_text(report: GroupsReport, look: TerminalStyle) -> str:
    if report.history is not None:
        lines = [*_history(report.history, look, every=report.all)]
    elif report.raw is not None:
        lines = [*_raw(report.raw, look, every=report.all)]
    else:
        lines = [*_positions(report, look)]
    if report.unknown:
        listed = ", ".join(f"{what}: {count(number)}" for what, number in report.unknown.items())
        lines.append(look.prose(f"NOTE  records that this release does not know: {listed}; --raw shows them", indent=6))
    if report.complete is not None and (report.at_ms is not None or report.positions == ()):
        lines += [look.prose(line, indent=6) for line in interval_lines(report.complete, report.at_ms, look)]
    return "\n".join(lines)


def _positions(report: GroupsReport, look: TerminalStyle) -> Iterator[str]:
    if not report.positions:
        when = "" if report.at_ms is None else f" at {instant(report.at_ms, look)}"
        yield look.text(f"no offset of a group is archived in backup {report.id}{when}")
        return
    shown = report.positions if report.all else report.positions[:_SHOWN]
    rows = [
        (r.group, r.topic, str(r.partition), count(r.offset), moment(_known_time(r.committed_ms), look),
         moment(r.erased_ms, look) if report.at_ms is None else _note(r))
        for r in shown
    ]  # fmt: skip
    headers = ("GROUP", "TOPIC", "PART", "OFFSET", "COMMITTED", "ERASED" if report.at_ms is None else "NOTES")
    yield look.table(headers, rows, right="PART,OFFSET", free="NOTES")
    if len(report.positions) > len(shown):
        yield look.text(f"… and {count(len(report.positions) - len(shown))} more; --all shows them")
    if report.at_ms is None:
        what = plural(len(report.positions), "position")
        yield look.text(f"{what}, {count(report.erased)} of them erased since")
    else:
        yield look.text(f"{plural(len(report.positions), 'position')} at {instant(report.at_ms, look)}")


def _known_time(time_ms: int) -> int | None:
    """Updates of share groups have no time."""
    return time_ms if time_ms >= 0 else None


def _note(row: PositionRow) -> str:
    notes = [*(["share group"] if row.share else []), *([] if row.sure else ["a later one may be missing"])]
    return ", ".join(notes)


def _history(commits: tuple[ArchivedCommit, ...], look: TerminalStyle, *, every: bool) -> Iterator[str]:
    shown = commits if every else commits[-_SHOWN:]
    if len(commits) > len(shown):
        yield look.text(f"… and {plural(len(commits) - len(shown), 'earlier commit')}; --all shows all")
    rows = [
        (instant(c.written_ms, look), c.group, c.topic, str(c.partition),
         "?" if c.offset is None else count(c.offset), _ending(c, look))
        for c in shown
    ]  # fmt: skip
    yield look.table(("WRITTEN", "GROUP", "TOPIC", "PART", "OFFSET", "ENDED"), rows, right="PART,OFFSET", free="ENDED")
    yield look.text(plural(len(commits), "commit"))


def _ending(commit: ArchivedCommit, look: TerminalStyle) -> str:
    when = "" if commit.ended_ms is None else f" {instant(commit.ended_ms, look)}"
    return f"{commit.ending}{when}{', in a transaction' if commit.transactional else ''}"


def _raw(records: tuple[RawRecord, ...], look: TerminalStyle, *, every: bool) -> Iterator[str]:
    shown = records if every else records[-_SHOWN:]
    if len(records) > len(shown):
        yield look.text(f"… {plural(len(records) - len(shown), 'earlier record')}; --all shows them")
    rows = [
        (instant(r.time_ms, look), f"{r.topic}/{r.partition}", str(r.offset), str(r.type), r.name,
         _fields(r.key, r.key_hex), r.unknown or ("erased" if r.value is None else _fields(r.value, r.value_hex)))
        for r in shown
    ]  # fmt: skip
    headers = ("WRITTEN", "LOG", "OFFSET", "TYPE", "NAME", "KEY", "VALUE")
    yield look.table(headers, rows, right="OFFSET,TYPE", spare="LOG", free="VALUE,KEY")
    yield look.text(plural(len(records), "record"))


def _fields(fields: Mapping[str, object], undecoded: str | None) -> str:
    return undecoded or json.dumps(fields, ensure_ascii=False)


def interval_lines(found: CompleteInterval, at_ms: int | None, look: TerminalStyle) -> Iterator[str]:
    """For which times an answer is complete, for people."""
    if found.complete:
        since = "the beginning of the log" if found.from_ms is None else instant(found.from_ms, look)
        yield f"complete for times from {since} to {instant(found.to_ms, look)}"
        return
    if at_ms is not None and at_ms > found.until_ms:
        yield f"AT LEAST  the backup ends at {instant(found.until_ms, look)}: it does not know what came later"
    else:
        yield "AT LEAST  compaction removed records before a backup read them: others may have been there"
    if found.nearest_ms:
        yield f"complete at {' and '.join(instant(each, look) for each in found.nearest_ms)}"


def instant(time_ms: int | None, look: TerminalStyle) -> str:
    """To the second, in the terminal's time zone."""
    if time_ms is None or time_ms < 0:
        return "-"
    try:
        return look.moment(_EPOCH + timedelta(milliseconds=time_ms))
    except (OverflowError, ValueError):
        return f"{time_ms} ms"
