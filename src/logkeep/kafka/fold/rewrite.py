"""Writes segments of a log again without the records that the fold removes. Segments that keep all are not written."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.compaction.barriers import KeptRecords
from logkeep.formats.compaction.thin_batches import kept_per_batch, thinned
from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL, Batches, BatchStretch, walk
from logkeep.formats.kafka.records import Flags, Malformed, decode
from logkeep.formats.kafka.transactions import ABORT, COMMIT
from logkeep.kafka.fold.fold_input import FoldInput, FoldSurvey
from logkeep.model.segments import Segment
from logkeep.model.time import TokenSource
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter

_MOST_BATCHES = 1 << 30
"""No limit: the batches of a new object were in one object before."""
_MARKER_TYPE = slice(2, 4)


@dataclass
class MarkerFilter:
    """Decides which markers stay: those of a transaction of which a batch stays. The log is read once, in order."""

    survey: FoldSurvey
    _alive: set[int] = field(default_factory=set)
    """Producers with a batch that stays since their last marker."""

    def chosen(self, stretch: BatchStretch, left: Flags) -> Flags:
        """Which batches stay. `left`: the batches with a record that stays. Batches without records stay too."""
        batches, chosen = stretch.batches, left.copy()
        attributes = batches.headers["attributes"]
        chosen |= batches.headers["records"] == 0
        control = (attributes & CONTROL) != 0
        ours = np.flatnonzero((attributes & (TRANSACTIONAL | CONTROL)) != 0)
        if not len(ours):
            return chosen
        types = _marker_types(stretch, control)
        anchored = self._anchored(batches)
        producers = batches.headers["producer_id"].tolist()
        for at in ours.tolist():
            if not control[at]:
                if left[at]:
                    self._alive.add(producers[at])
            elif types.get(at) in (ABORT, COMMIT):
                stays = producers[at] in self._alive
                self._alive.discard(producers[at])
                chosen[at] = stays or anchored[at]
            else:
                chosen[at] = True
        return chosen

    def _anchored(self, batches: Batches) -> Flags:
        """The batches that stay, whatever the fold removes."""
        firsts = np.array([first for first, _ in self.survey.anchors], np.int64)
        found: Flags = (batches.last_offsets >= self.survey.fold_end) | np.isin(batches.base_offsets, firsts)
        return found


def _marker_types(stretch: BatchStretch, control: Flags) -> dict[int, int]:
    """The type of each marker, by the number of its batch."""
    found: dict[int, int] = {}
    batches = Batches(stretch.batches.headers[control], stretch.batches.positions[control])
    numbers = dict(zip(batches.base_offsets.tolist(), np.flatnonzero(control).tolist(), strict=True))
    for part in decode(stretch.buffer, batches) if len(batches) else ():
        if isinstance(part, Malformed):
            raise Damaged(f"a transaction marker cannot be read: {part}")
        for row, base in enumerate(part.batches.base_offsets[part.batch].tolist()):
            key = part.key(row)
            if key is not None and len(key) >= _MARKER_TYPE.stop:
                found[numbers[base]] = int.from_bytes(key[_MARKER_TYPE], "big", signed=True)
    return found


@dataclass(frozen=True)
class LogRewriter:
    """Writes the rows of one log again."""

    archived: FoldInput
    survey: FoldSurvey
    kept: KeptRecords
    tokens: TokenSource

    def run(self) -> list[tuple[str, Segment]]:
        """Write the rows that lose a record; returns each new row with the token of the old one. Raises Damaged and
        StoreError: then nothing new is left behind."""
        markers, replaced, first = MarkerFilter(self.survey), list[tuple[str, Segment]](), 0
        writers: list[SegmentWriter] = []
        try:
            for row in self.archived.rows:
                writer = self._writer(row) if self._shrinks(first, row) else None
                if writer is not None:
                    writers.append(writer)
                first = self._copy(row, first, markers, writer)
                if writer is not None:
                    writer.finish(row.end)
                    replaced.append((row.token, self._new_row(row, writer.segments)))
        except BaseException:
            for writer in writers:
                writer.delete_segments()
            raise
        return replaced

    def _shrinks(self, first: int, row: Segment) -> bool:
        """Whether the row loses a record. It has at least as many records as the headers of its batches say."""
        return row.has_object and not bool(self.kept.flags(first, self._numbers(row)).all())

    def _numbers(self, row: Segment) -> int:
        """How many records the row has, and so how many record numbers it takes."""
        return self.survey.row_records[row.token]

    def _writer(self, row: Segment) -> SegmentWriter:
        limits = SegmentLimits(row.plain_bytes + 1, _MOST_BATCHES)
        return SegmentWriter(self.archived.place, row.log, row.start, limits, row.stored_bytes, self.tokens, row.codec)

    def _copy(self, row: Segment, first: int, markers: MarkerFilter, writer: SegmentWriter | None) -> int:
        if writer is None and not self.survey.transactions.any:
            return first + self._numbers(row)  # no marker depends on its batches
        for stretch in self.archived.of_row(row):
            counts = stretch.batches.headers["records"].astype(np.int64)
            kept = self.kept.flags(first, int(counts.sum()))
            chosen = markers.chosen(stretch, kept_per_batch(counts, kept) > 0)
            if writer is not None:
                _write(writer, thinned(stretch.buffer, stretch.batches, chosen, kept))
            first += len(kept)
        return first

    def _new_row(self, row: Segment, made: Sequence[Segment]) -> Segment:
        if len(made) != 1 or (made[0].start, made[0].end) != (row.start, row.end):
            raise Damaged("its batches reach beyond the offsets that it covers", subject=self.archived.name(row))
        return msgspec.structs.replace(made[0], proof=row.proof)


def _write(writer: SegmentWriter, data: bytes) -> None:
    if data:
        writer.write(memoryview(data), walk(data).batches)
