"""Report and text of `logkeep kafka show`."""

import json
from collections.abc import Iterator

import msgspec

from logkeep.cli.terminal.text import TerminalStyle, plural, size
from logkeep.cli.verbs.kafka.groups_report import instant
from logkeep.kafka.registry.decoding import DecodedBytes

_HEADERS = ("PART", "OFFSET", "TIME", "KEY", "VALUE", "HEADERS")


class ShownHeader(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """In hexadecimal where it is not text."""
    value: DecodedBytes | None


class ShownRecord(msgspec.Struct, frozen=True, kw_only=True):
    partition: int
    offset: int
    timestamp_ms: int
    """Since 1970; -1: the record has no time."""
    append_time: bool
    """Whether the broker set the time."""
    key: DecodedBytes | None
    value: DecodedBytes | None
    headers: tuple[ShownHeader, ...]


class ShowReport(msgspec.Struct, frozen=True, kw_only=True):
    id: int | None
    """The backup; null: a dataset."""
    source: str
    """The source of the backup, or the tool that wrote the dataset."""
    topic: str
    offset: int | None
    """The only offset that was asked for; null: several."""
    records: tuple[ShownRecord, ...]
    more: bool
    """Whether others fit that are not shown."""
    searched: tuple[int, ...]
    """The partitions that were read, in order."""
    notes: tuple[str, ...]
    stored_bytes: int | None
    """Read from the store; null: a dataset."""
    requests: int | None


def show_text(report: ShowReport, look: TerminalStyle) -> str:
    lines = (
        [_alone(report.records[0], look)] if report.offset is not None and report.records else [*_table(report, look)]
    )
    lines += [look.prose(f"NOTE  {note}", indent=6) for note in report.notes]
    return "\n".join(lines)


def _table(report: ShowReport, look: TerminalStyle) -> Iterator[str]:
    if report.records:
        rows = [
            (str(r.partition), str(r.offset), instant(r.timestamp_ms, look), cell(r.key), cell(r.value), _pairs(r))
            for r in report.records
        ]
        headers = _HEADERS if any(r.headers for r in report.records) else _HEADERS[:-1]
        yield look.table(headers, [row[: len(headers)] for row in rows], right="PART,OFFSET", free="VALUE,HEADERS")
    more = "; there are more: --limit or --last shows them" if report.more else ""
    where = f"dataset of {report.source}"
    if report.stored_bytes is not None:
        where = f"backup {report.id}, {size(report.stored_bytes)} read"
    yield look.text(f"{plural(len(report.records), 'record')} of {report.topic}, {where}{more}")


def cell(found: DecodedBytes | None) -> str:
    """One line; what could not be decoded is said first."""
    if found is None:
        return "null"
    shown = found.text if found.text is not None else json.dumps(found.json, ensure_ascii=False)
    if found.form == "hex":
        shown = f"0x{shown}"
    return f"({found.problem}) {shown}" if found.problem else shown


def _pairs(record: ShownRecord) -> str:
    return ", ".join(f"{h.name}={cell(h.value)}" for h in record.headers)


def _alone(record: ShownRecord, look: TerminalStyle) -> str:
    """One record with all of its fields."""
    kind = "append time" if record.append_time else "create time"
    pairs = {
        "partition": str(record.partition),
        "offset": str(record.offset),
        "time": f"{instant(record.timestamp_ms, look)} ({kind}, {record.timestamp_ms} ms)",
        "key": _described(record.key),
        "value": _described(record.value),
    }
    pairs |= {f"header {number}": f"{h.name} = {_described(h.value)}" for number, h in enumerate(record.headers, 1)}
    return look.pairs(pairs)


def _described(found: DecodedBytes | None) -> str:
    if found is None:
        return "null"
    by = "" if found.schema_id is None else f", schema {found.schema_id}"
    return f"{cell(found)}  ({found.form}, {plural(found.bytes, 'byte')}{by})"
