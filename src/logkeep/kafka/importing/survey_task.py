"""The task that reads one partition of a dataset completely before anything is written.

It finds what cannot be read, what is doubtful and what is lost, and compares records that are archived already.
"""

from logkeep.kafka.importing.reader import ReadNotes
from logkeep.kafka.importing.values import DatasetSurveyUnit, PartitionSurvey
from logkeep.model.work import Progress


def survey_partition(unit: DatasetSurveyUnit, progress: Progress) -> PartitionSurvey:
    """Read a partition. Raises what its reader raises for a dataset that cannot be used."""
    from logkeep.formats.datasets.binary_spans import numbers  # noqa: PLC0415 - pyarrow loads late
    from logkeep.kafka.importing.overlap import ArchivedOverlap  # noqa: PLC0415
    from logkeep.kafka.importing.writer_notes import noted_records  # noqa: PLC0415

    reader, notes, note = unit.reader, ReadNotes(), unit.note
    overlap = ArchivedOverlap(unit.archived) if unit.archived is not None else None
    first, last, records = -1, -1, 0
    for batch in noted_records(reader, note, notes):
        offsets = numbers(batch, "offset")
        first, last, records = int(offsets[0]) if first < 0 else first, int(offsets[-1]), records + batch.num_rows
        if overlap is not None:
            overlap.compare(batch)
        progress(batch.nbytes)
    notes.add("aborted-records", records if unit.has_aborted else 0, f"offset {first}")
    start, end = _span(first, last, reader.span.start if reader.span else -1, reader.span.end if reader.span else -1)
    return PartitionSurvey(
        topic=reader.topic,
        partition=reader.partition,
        start=min([start, *(g.start for g in notes.lost)]) if end or not notes.lost else notes.lost[0].start,
        end=max([end, note.covered_after(last) if note is not None and records else 0, *(g.end for g in notes.lost)]),
        records=records,
        size_bytes=reader.size_bytes,
        gaps=tuple(sorted(notes.lost)),
        doubts=notes.doubts,
        differs_at=overlap.differs_at if overlap else -1,
        unarchived=overlap.unarchived if overlap else 0,
    )


def _span(first: int, last: int, claimed_start: int, claimed_end: int) -> tuple[int, int]:
    """What the partition covers: what its manifest claims, and every record."""
    if first < 0:
        return (claimed_start, claimed_end) if claimed_end >= 0 else (0, 0)
    return min(first, claimed_start) if claimed_start >= 0 else first, max(last + 1, claimed_end)
