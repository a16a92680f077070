"""Divides the ranges to copy into units. Pure.

Ranges are cut between files, so that no two units read the same bytes, and at the end of the proven part, so that
unproven segments are marked. Small ranges share a unit.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from logkeep.kafka.backup.plan import BUNDLE_RANGES, Plan, PlannedUnit
from logkeep.kafka.backup.units import CopyRange
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.salvage.copy_task import SalvageRange
from logkeep.kafka.salvage.decide import FoundLog, LogDecision
from logkeep.kafka.salvage.groups_task import FileRange
from logkeep.kafka.salvage.replicas import ReplicaRange
from logkeep.model.ranges import Range
from logkeep.model.segments import Proof

UNIT_BYTES = 256 << 20


@dataclass(frozen=True)
class PlannedSalvageUnit:
    ranges: tuple[SalvageRange, ...]

    @property
    def name(self) -> str:
        return PlannedUnit(0, tuple(r.wanted for r in self.ranges)).name


def sources_of(found: FoundLog, span: Range) -> list[FileRange]:
    """The file ranges of a span. Offsets without a file are lost; a hole belongs to the file before it."""
    sources = [s for piece in found.choice.pieces for s in _of_piece(found, piece)]
    return [_clipped(s, span) for s in sources if s.lo < span.end and s.hi > span.start]


def _clipped(source: FileRange, span: Range) -> FileRange:
    lo, hi = max(source.lo, span.start), min(source.hi, span.end)
    size_bytes = source.size_bytes * (hi - lo) // (source.hi - source.lo)
    return FileRange(source.path, source.from_byte, source.to_byte, lo, hi, size_bytes)


def _of_piece(found: FoundLog, piece: ReplicaRange) -> Iterator[FileRange]:
    scan = found.scans[piece.replica]
    inside = [s for s in scan.stretches if s.first < piece.end and s.end > piece.start]
    if not inside:
        yield FileRange(scan.directory, 0, 0, piece.start, piece.end, 0)
    edges = [piece.start, *(s.first for s in inside[1:]), piece.end]
    for index, stretch in enumerate(inside):
        path = f"{scan.directory}/{stretch.file}"
        size_bytes = stretch.to_byte - stretch.from_byte
        yield FileRange(path, stretch.from_byte, stretch.to_byte, edges[index], edges[index + 1], size_bytes)


def plan_units(plan: Plan, decided: Iterable[LogDecision]) -> list[PlannedSalvageUnit]:
    """The plan's ranges as units of about `UNIT_BYTES`."""
    by_log = {d.found.log: d for d in decided}
    pieces = [
        piece
        for unit in plan.units
        for wanted in unit.ranges
        for piece in _split(wanted, by_log[TopicPartition(wanted.topic, wanted.partition)])
    ]
    return [PlannedSalvageUnit(tuple(some)) for some in _bundles(pieces)]


def _split(wanted: CopyRange, decided: LogDecision) -> Iterator[SalvageRange]:
    """A proven and an unproven range, cut between files where they are large."""
    edge = min(max(decided.proven_end, wanted.lo), wanted.hi)
    for span, proof in ((Range(wanted.lo, edge), Proof.PROVEN), (Range(edge, wanted.hi), Proof.UNPROVEN)):
        for part in _parts(span, sources_of(decided.found, span)) if len(span) else ():
            sources = sources_of(decided.found, part)
            cut = replace(
                wanted,
                lo=part.start,
                hi=part.end,
                first=wanted.first and part.start == wanted.lo,
                size_bytes=sum(s.size_bytes for s in sources),
            )
            yield SalvageRange(cut, tuple(sources), proof)


def _parts(span: Range, sources: Sequence[FileRange]) -> list[Range]:
    """Parts of limited size, cut between files."""
    edges, size = [span.start], 0
    for source in sources:
        if size and size + source.size_bytes > UNIT_BYTES and source.lo > edges[-1]:
            edges.append(source.lo)
            size = 0
        size += source.size_bytes
    return [Range(start, end) for start, end in zip(edges, [*edges[1:], span.end], strict=True)]


def _bundles(pieces: Iterable[SalvageRange]) -> Iterator[list[SalvageRange]]:
    bundle, size = list[SalvageRange](), 0
    for piece in pieces:
        if bundle and (len(bundle) >= BUNDLE_RANGES or size + piece.wanted.size_bytes > UNIT_BYTES):
            yield bundle
            bundle, size = [], 0
        bundle.append(piece)
        size += piece.wanted.size_bytes
    if bundle:
        yield bundle
