"""Which ranges of which logs a scan reads. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise

import msgspec

from logkeep.errors import UsageError
from logkeep.kafka.client.topology import is_internal
from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.kafka.scan.values import ScanIsolation, ScanRange
from logkeep.kafka.topic_selection import topic_filter
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName
from logkeep.repository.backups.manifest import KnownGap, LogCut

_SHOWN = 5
_AHEAD = 2
"""Segments after a range in which its transactions usually end."""


@dataclass(frozen=True)
class ScanSelection:
    """What is wanted of a backup."""

    topics: tuple[str, ...] | None = None
    """Names; None: all, or what the patterns select. An internal topic is read where it is named."""
    patterns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    """Patterns of whole names."""
    internal: bool = False
    """Whether patterns select internal topics too."""
    partitions: frozenset[int] | None = None
    offsets: Mapping[tuple[str, int], Range] = field(default_factory=dict)
    """The offsets to read, by topic and partition; those outside of the backup are left out. Other partitions are read
    completely."""
    since_ms: int | None = None
    until_ms: int | None = None
    isolation: ScanIsolation = ScanIsolation.COMMITTED


def plan_scan(view: KafkaBackupView, wanted: ScanSelection) -> tuple[ScanRange, ...]:
    """One range for each selected log with an offset to read, by topic and partition.

    Raises UsageError for a topic or a partition that the backup does not have, and for a wrong pattern.
    """
    cuts = sorted(selected_cuts(view, wanted), key=lambda c: c.log)
    ranges = {c.log: _range(c, wanted.offsets.get((c.log.name, c.log.partition))) for c in cuts}
    read = [c for c in cuts if ranges[c.log].start < ranges[c.log].end]
    traits = {(r.topic, r.partition): r.traits for r in view.record.logs}
    segments = view.segments({c.log: Range(ranges[c.log].start, c.end) for c in read})
    return tuple(
        narrowed(
            ScanRange(
                place=view.place,
                log=c.log,
                start=ranges[c.log].start,
                end=ranges[c.log].end,
                segments=segments[c.log],
                backup=view.entry.id,
                settled_to=c.end,
                transactional=(own := traits.get((c.log.name, c.log.partition))) is None or own.transactional,
                isolation=wanted.isolation,
                buried=tuple(each.object for each in view.burials.get(c.log, ())),
                since_ms=wanted.since_ms,
                until_ms=wanted.until_ms,
            )
        )
        for c in read
    )


def selected_cuts(view: KafkaBackupView, wanted: ScanSelection) -> list[LogCut]:
    """The logs that are selected, also empty ones. Raises UsageError."""
    topics = _topics(view, wanted)
    chosen = [c for c in view.manifest.cut if c.log.name in topics]
    if wanted.partitions is not None:
        there = {c.log.partition for c in chosen}
        for number in sorted(wanted.partitions - there):
            raise UsageError(
                f"{', '.join(sorted(topics))} has no partition {number} in the backup",
                subject=f"backup {view.entry.id}",
                remedy="`logkeep info` lists them",
            )
        chosen = [c for c in chosen if c.log.partition in wanted.partitions]
    return chosen


def lost_offsets(view: KafkaBackupView, wanted: ScanSelection) -> list[KnownGap]:
    """What a scan of the selection lacks, because it was lost before it could be archived. Raises UsageError."""
    return lost_in_ranges(
        view, {c.log: _range(c, wanted.offsets.get((c.log.name, c.log.partition))) for c in selected_cuts(view, wanted)}
    )


def lost_in_ranges(view: KafkaBackupView, ranges: Mapping[LogName, Range]) -> list[KnownGap]:
    """The same for known ranges; a range without offsets lacks none."""
    return view.gaps({log: span for log, span in ranges.items() if span.start < span.end})


def loss_text(gap: KnownGap, of: str = "") -> str:
    """`of` names the log, where that is not said otherwise."""
    return f"offsets {gap.start} to {gap.end - 1}{of} were lost before they could be archived: {gap.reason}"


def _topics(view: KafkaBackupView, wanted: ScanSelection) -> set[str]:
    there = {t.name: t.internal for t in view.record.topics} | {c.log.name: False for c in view.manifest.cut}
    for name in wanted.topics or ():
        if name not in there:
            raise no_topic(name, there, f"backup {view.entry.id}")
    if wanted.topics is not None:
        return set(wanted.topics)
    selects = topic_filter(wanted.patterns, wanted.exclude, internal=wanted.internal)
    internal = {t.name: t.internal for t in view.record.topics}
    return {name for name in there if selects(name, is_internal(name, internal.get(name, False)))}


def no_topic(name: str, there: Iterable[str], subject: str, where: str = "the backup") -> UsageError:
    """Names the nearest topics."""
    known = sorted(there)
    near = get_close_matches(name, known, n=_SHOWN, cutoff=0.5) or known[:_SHOWN]
    return UsageError(
        f"there is no topic {name!r} in {where}",
        subject=subject,
        remedy=f"the nearest are: {', '.join(near)}" if near else f"{where} has no topics",
    )


def _range(cut: LogCut, wanted: Range | None) -> Range:
    if wanted is None:
        return Range(cut.start, cut.end)
    start = min(max(wanted.start, cut.start), cut.end)
    return Range(start, max(min(wanted.end, cut.end), start))


def narrowed(wanted: ScanRange) -> ScanRange:
    """The range without the segments that it cannot need. Where a transaction may end later, the next segments after
    the range stay, and the reader finds the others; if the reader cannot find them, all stay."""
    own = [s for s in wanted.segments if s.end > wanted.start and s.start < wanted.end]
    later = [s for s in wanted.segments if s.start >= wanted.end]
    if not wanted.transactional or wanted.isolation is not ScanIsolation.COMMITTED:
        later = []
    elif wanted.backup is not None:
        later = later[:_AHEAD]
    return msgspec.structs.replace(wanted, segments=(*own, *later))


def split(ranges: Sequence[ScanRange], parts: int) -> tuple[ScanRange, ...]:
    """The same records in at least `parts` ranges where there are enough offsets, of about equal size in bytes."""
    whole = sum(each.size_bytes for each in ranges)
    target = max(-(-whole // max(parts, 1)), 1)
    return tuple(piece for each in ranges for piece in _pieces(each, target))


def _pieces(wanted: ScanRange, target: int) -> list[ScanRange]:
    borders, held = [wanted.start], 0
    for segment in wanted.own_segments:
        start, end = max(segment.start, wanted.start), min(segment.end, wanted.end)
        if held and held + segment.stored_bytes > target:
            borders.append(start)
            held = 0
        cuts = min(-(-segment.stored_bytes // target), end - start)
        borders += [start + (end - start) * n // cuts for n in range(1, cuts)]
        held += segment.stored_bytes // max(cuts, 1)
    edges = sorted({*borders, wanted.end})
    return [narrowed(msgspec.structs.replace(wanted, start=a, end=b)) for a, b in pairwise(edges)]
