"""Plans a table: which ranges of which archived logs it reads, in which units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from logkeep.errors import DataGap, UsageError
from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.kafka.registry.schema_source import RegistrySchemas
from logkeep.kafka.scan.plan import (
    ScanSelection,
    loss_text,
    lost_in_ranges,
    narrowed,
    plan_scan,
    selected_cuts,
    split,
)
from logkeep.kafka.scan.times import first_offset_at
from logkeep.kafka.scan.values import ScanIsolation, ScanRange
from logkeep.kafka.tables.decoded_columns import archived_schemas
from logkeep.kafka.tables.filters import Bounds
from logkeep.kafka.tables.offsets import wanted_ranges
from logkeep.kafka.tables.options import TableOptions
from logkeep.model.plurals import plural
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName
from logkeep.repository.backups.manifest import KnownGap

_UNIT_BYTES = 128 << 20
"""Stored bytes that one task reads, where nothing else is asked for."""
_BUNDLE_BYTES = 16 << 20
"""Small logs are read together up to this size: a task costs some 50 ms."""


@dataclass(frozen=True)
class TableUnit:
    """What one task reads."""

    ranges: tuple[ScanRange, ...]
    columns: tuple[str, ...]
    schemas: RegistrySchemas | None = None
    """The schemas, if keys or values are decoded and the backup has a registry."""


def plan_units(view: KafkaBackupView, options: TableOptions, bounds: Bounds) -> list[TableUnit]:
    """The units of a table. Raises UsageError for topics, partitions or offsets that the backup does not have, and
    DataGap."""
    logs = _selected(view, options)
    whole = {each.log: each for each in plan_scan(view, _selection(view, options, logs, Bounds()))}

    def first_at(log: LogName, time_ms: int) -> int | None:
        return first_offset_at(whole[log], time_ms) if log in whole else None

    wanted = wanted_ranges(logs, options, first_at)
    kept = {log: _narrowed(span, bounds) for log, span in wanted.items() if bounds.has_log(log.name, log.partition)}
    if options.fail_on_data_loss:
        _refuse_gaps(lost_in_ranges(view, kept))
    ranges = plan_scan(view, _selection(view, options, kept, bounds))
    recent = [found for each in ranges if (found := without_older(each)) is not None]
    schemas = archived_schemas(view) if options.decoded else None
    return [TableUnit(some, options.columns, schemas) for some in bundles(recent, options.min_partitions)]


def _selected(view: KafkaBackupView, options: TableOptions) -> dict[LogName, Range]:
    """The logs of the chosen topics and partitions, each with the offsets that the backup holds."""
    assigned = options.assigned
    names = options.topics or (tuple(assigned) if assigned is not None else None)
    patterns = () if options.pattern is None else (options.pattern,)
    cuts = selected_cuts(view, ScanSelection(topics=names, patterns=patterns))
    there = {(c.log.name, c.log.partition) for c in cuts}
    for topic, partitions in (assigned or {}).items():
        for partition in sorted(partitions):
            if (topic, partition) not in there:
                raise UsageError(f"{topic} has no partition {partition} in the backup", remedy="change assign")
    return {c.log: Range(c.start, c.end) for c in cuts if assigned is None or c.log.partition in assigned[c.log.name]}


def _refuse_gaps(gaps: Sequence[KnownGap]) -> None:
    """Spark shows no warnings of a data source: rows would be missing silently."""
    for gap in gaps:
        others = f"; {plural(len(gaps) - 1, 'other gap')}" if len(gaps) > 1 else ""
        raise DataGap(
            f"{loss_text(gap)}{others}",
            subject=str(gap.log),
            remedy="set failOnDataLoss to false to read what is there, or read other offsets",
        )


def _selection(
    view: KafkaBackupView, options: TableOptions, kept: Mapping[LogName, Range], limits: Bounds
) -> ScanSelection:
    """Exactly these logs: a partition that is not among them gets no offsets."""
    nothing = Range(0, 0)
    return ScanSelection(
        topics=tuple(sorted({log.name for log in kept})),
        offsets={(c.log.name, c.log.partition): kept.get(c.log, nothing) for c in view.manifest.cut},
        since_ms=limits.since_ms,
        until_ms=limits.until_ms,
        isolation=ScanIsolation(options.isolation),
    )


def _narrowed(span: Range, bounds: Bounds) -> Range:
    start = span.start if bounds.start is None else max(span.start, bounds.start)
    end = span.end if bounds.end is None else min(span.end, bounds.end)
    return Range(start, end) if start < end else Range(span.start, span.start)


def without_older(wanted: ScanRange) -> ScanRange | None:
    """The range without the segments at both ends whose largest time is too early; None if nothing is left. Pure.

    The smallest time of a segment says less: a batch may hold records that are older than its first one.
    """
    since_ms = wanted.since_ms
    if since_ms is None:
        return wanted
    late = [s for s in wanted.own_segments if s.max_time_ms >= since_ms or s.max_time_ms < 0]
    if not late:
        return None
    start, end = max(wanted.start, late[0].start), min(wanted.end, late[-1].end)
    return narrowed(msgspec.structs.replace(wanted, start=start, end=end))


def bundles(ranges: Sequence[ScanRange], min_partitions: int) -> list[tuple[ScanRange, ...]]:
    """The ranges in at least `min_partitions` units, if there are enough offsets: large ranges are split, small ones
    joined. Pure."""
    total = sum(each.size_bytes for each in ranges)
    pieces = split(ranges, max(min_partitions, -(-total // _UNIT_BYTES)))
    found: list[list[ScanRange]] = []
    room = 0
    for index, piece in enumerate(pieces):
        left = len(pieces) - index
        if found and piece.size_bytes <= room and len(found) + left > min_partitions:
            found[-1].append(piece)
            room -= piece.size_bytes
        else:
            found.append([piece])
            room = _BUNDLE_BYTES - piece.size_bytes
    return [tuple(some) for some in found]
