"""Verification at the level `records`: decodes and counts every record, and computes a digest of every log.

Besides what `data` checks, a batch must have as many records as its header says, with rising offsets and valid
lengths, and a segment as many as its row says. Units read segments in any order: digests are joined afterwards, in the
order of the log. Digests are of the records inside the backup's cut.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeVar

import msgspec

from logkeep.errors import Damaged
from logkeep.formats.compare.digest import NOTHING, Digest, digest_of, warm
from logkeep.formats.kafka.batches import Batches, Bytes
from logkeep.formats.kafka.buried_offsets import BuriedOffsets
from logkeep.formats.kafka.records import Malformed, decode
from logkeep.kafka.logs.batch_check import checked_batches
from logkeep.kafka.logs.burials import read_buried
from logkeep.model.findings import Finding
from logkeep.model.plurals import plural
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.model.work import Progress
from logkeep.repository.backups.burials import burials_by_log
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.verification import LogDigest
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import Burial
from logkeep.repository.parts import Expected
from logkeep.repository.verify.checks import CheckedObjects
from logkeep.repository.verify.run import BackupToCheck, DeeperCheck

T = TypeVar("T")
ReadBuried = Callable[[tuple[ObjectRef, ...]], BuriedOffsets | None]
_CACHED_LOGS = 8
"""A unit reads the segments of a log one after another: its buried offsets are read once."""
_UNIT_BYTES = 256 << 20
_UNIT_PIECES = 1_000
_MOST_FINDINGS = 20
"""How many malformed batches of one object are reported: a producer that wrote one such batch wrote many."""


class SegmentRange(msgspec.Struct, frozen=True):
    """One segment and the offsets of it that a backup covers."""

    segment: Segment
    name: str
    start: int
    end: int
    buried: tuple[ObjectRef, ...] = ()
    """Objects with offsets that the backup leaves out."""

    @property
    def expected(self) -> Expected:
        row = self.segment
        return Expected(self.name, row.stored_bytes, row.sha256, row.codec, row.plain_bytes, row.plain_sha256)


class RecordUnit(msgspec.Struct, frozen=True):
    """What one task decodes."""

    place: SourceRef
    pieces: list[SegmentRange]

    @property
    def bytes(self) -> int:
        return sum(p.segment.stored_bytes for p in self.pieces)


class RecordResult(msgspec.Struct, frozen=True):
    findings: list[Finding]
    digests: list[str]
    """One for each piece, empty if it could not be read to its end."""


@dataclass(frozen=True)
class Decoded:
    """The pieces of a backup, and the digests of those that were decoded without a finding, by name."""

    pieces: list[SegmentRange]
    taken: list[SegmentRange]
    """The pieces in the sample whose objects exist."""
    digests: dict[str, str]


def check_records(asked: BackupToCheck) -> DeeperCheck:
    """Decode all pieces of the sample. Logs that were read as a whole have a digest."""
    return DeeperCheck("records", log_digests(asked.manifest, decode_backup(asked)))


def decode_backup(asked: BackupToCheck) -> Decoded:
    warm()
    folded = read_chain(asked.place)
    burials = burials_by_log(folded, asked.manifest.id, [c.log for c in asked.manifest.cut])
    pieces = list(covered_segments(asked.place.source, asked.manifest, asked.rows.to_segments(), burials))
    missing = {f.where for f in asked.checked.findings if f.code == "object-missing"}
    taken = [p for p in pieces if p.name not in missing and asked.sample.takes(p.segment.token, asked.day)]
    stored = [p for p in taken if p.segment.has_object]
    pieces_of_units = bounded_lists(stored, lambda p: p.segment.stored_bytes, _UNIT_PIECES)
    units = [RecordUnit(asked.place, some) for some in pieces_of_units]
    asked.checked.read_objects = sum(len(unit.pieces) for unit in units)
    found: dict[str, str] = {}
    results = asked.engine.map(decode_pieces, units, RecordResult, label="verify records", weight=lambda u: u.bytes)
    for unit, result in zip(units, results, strict=True):
        asked.checked.findings.extend(result.findings)
        found |= {p.name: digest for p, digest in zip(unit.pieces, result.digests, strict=True)}
    return Decoded(pieces, taken, found)


def covered_segments(
    source: str,
    manifest: Manifest,
    segments: Iterator[Segment],
    burials: Mapping[LogName, Sequence[Burial]] | None = None,
) -> Iterator[SegmentRange]:
    """Every segment with the offsets of it that are inside the cut, in order of log and offset."""
    refs = {log: tuple(b.object for b in some) for log, some in (burials or {}).items()}
    cuts = {c.log: Range(c.start, c.end) for c in manifest.cut}
    for segment in segments:
        cut = cuts[segment.log]
        start, end = max(segment.start, cut.start), min(segment.end, cut.end)
        if start < end:
            yield SegmentRange(segment, layout.segment(source, segment), start, end, refs.get(segment.log, ()))


def bounded_lists(items: Iterable[T], stored_bytes: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Items in lists of bounded size, each small enough for one task."""
    unit: list[T] = []
    total = 0
    for item in items:
        size = stored_bytes(item)
        if unit and (total + size > _UNIT_BYTES or len(unit) >= most):
            yield unit
            unit, total = [], 0
        unit.append(item)
        total += size
    if unit:
        yield unit


def decode_pieces(unit: RecordUnit, progress: Progress) -> RecordResult:
    """A task: read every object once, check its hash and batches, decode its records."""
    checked = CheckedObjects([])
    buried_of = lru_cache(_CACHED_LOGS)(partial(read_buried, unit.place))
    digests = [_decode(unit.place, piece, buried_of, checked, progress) for piece in unit.pieces]
    return RecordResult(checked.findings, digests)


def _decode(
    place: SourceRef, piece: SegmentRange, buried_of: ReadBuried, checked: CheckedObjects, progress: Progress
) -> str:
    before = len(checked.findings)
    try:
        reading = _Reading(piece, buried_of(piece.buried))
    except Damaged as error:
        checked.from_error("buried-offsets-damaged", error)
        return ""
    segment = piece.segment
    for buffer, batches in checked_batches(place.store, piece.expected, checked, progress):
        reading.take(buffer, batches)
    for problem in reading.problems[:_MOST_FINDINGS]:
        checked.damage("record-malformed", piece.name, f"{segment.log}: {problem}")
    if len(reading.problems) > _MOST_FINDINGS:
        more = len(reading.problems) - _MOST_FINDINGS
        like = plural(more, "more batch", "more batches")
        checked.damage("record-malformed", piece.name, f"{segment.log}: and {like} like these")
    if len(checked.findings) == before and reading.records != segment.records:
        what = f"{segment.log}: holds {plural(reading.records, 'record')}, its row says {segment.records}"
        checked.damage("count-mismatch", piece.name, what)
    return "" if len(checked.findings) > before else str(reading.digest)


class _Reading:
    """The digest, count and problems of one object so far."""

    def __init__(self, piece: SegmentRange, buried: BuriedOffsets | None) -> None:
        self._start, self._end, self._buried = piece.start, piece.end, buried
        self.digest, self.records = NOTHING, 0
        self.problems: list[Malformed] = []

    def take(self, buffer: Bytes, batches: Batches) -> None:
        for part in decode(buffer, batches):
            if isinstance(part, Malformed):
                self.problems.append(part)
            else:
                self.records += len(part)
                within = part.within(self._start, self._end)
                if self._buried is not None:
                    within = within.chosen(~self._buried.hides(within.offsets))
                self.digest = self.digest.then(digest_of(within))


def log_digests(manifest: Manifest, decoded: Decoded) -> tuple[LogDigest, ...]:
    """The digests of logs of which every piece has one."""
    by_log: dict[LogName, Digest | None] = {c.log: NOTHING for c in manifest.cut}
    for piece in decoded.pieces:
        text = decoded.digests.get(piece.name, "") if piece.segment.has_object else str(NOTHING)
        known = by_log[piece.segment.log]
        by_log[piece.segment.log] = known.then(Digest.parse(text)) if known is not None and text else None
    return tuple(
        LogDigest(log=cut.log, start=cut.start, end=cut.end, records=digest.records, digest=str(digest))
        for cut in manifest.cut
        if (digest := by_log[cut.log]) is not None
    )
