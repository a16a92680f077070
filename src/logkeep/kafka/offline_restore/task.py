"""The task that restores one partition: write, prove, put in place. What is there already is only proven again.

It may be tried several times, and an attempt that was given up may still be running: each has a staging directory of
its own, all write the same bytes, and the last step is one exchange of names.
"""

from pathlib import Path

from logkeep.errors import Damaged, ObjectMissing, UnsafeName
from logkeep.kafka.offline_restore.batches import Passing
from logkeep.kafka.offline_restore.existing_files import note_of_this
from logkeep.kafka.offline_restore.files import SegmentFiles
from logkeep.kafka.offline_restore.locks import broker_stopped
from logkeep.kafka.offline_restore.ownership_note import NOTE, Note, encoded, origin_of
from logkeep.kafka.offline_restore.proof import prove
from logkeep.kafka.offline_restore.staging import METADATA, bring_back, discard, make, put, put_in_place, staged_name
from logkeep.kafka.offline_restore.values import LogWritten, OfflineUnit
from logkeep.model.time import TokenSource, random_token
from logkeep.model.work import Progress


def restore_log(unit: OfflineUnit, progress: Progress) -> LogWritten:
    """Restore one log. Foreseen trouble with the archive comes back as a value; then nothing was changed."""
    return restore_log_with(unit, progress, random_token)


def restore_log_with(unit: OfflineUnit, progress: Progress, tokens: TokenSource) -> LogWritten:
    """The same with chance handed in."""
    planned = unit.planned
    root = Path(planned.root)
    with broker_stopped([root]):
        try:
            return _proven(unit, progress) or _restore(unit, tokens, progress)
        except (Damaged, ObjectMissing, UnsafeName) as error:
            return _failed(unit, str(error))
        finally:
            bring_back(root, planned.topic, planned.partition)
            discard(root, planned.topic, planned.partition)


def _proven(unit: OfflineUnit, progress: Progress) -> LogWritten | None:
    """What an earlier run put there, read again; None when it has to be written."""
    directory = unit.planned.directory
    note = note_of_this(directory, origin_of(unit))
    if note is None:
        return None
    problem = prove(directory, note.files, progress)
    return None if problem and unit.replace else _answer(unit, note, problem, again=True)


def _restore(unit: OfflineUnit, tokens: TokenSource, progress: Progress) -> LogWritten:
    planned, directory = unit.planned, unit.planned.directory
    staged = directory.with_name(staged_name(planned.topic, planned.partition, tokens()))
    make(directory, staged)
    note = _write(unit, staged, progress)
    put(staged, NOTE, encoded(note), like=directory / METADATA)
    problem = prove(staged, note.files, progress)
    if problem:
        return _failed(unit, f"what was written does not read back: {problem}")
    put_in_place(staged, directory)
    return _answer(unit, note, "", again=False)


def _write(unit: OfflineUnit, staged: Path, progress: Progress) -> Note:
    passing = Passing(unit.place, unit.planned, progress)
    like = unit.planned.directory / METADATA
    files = SegmentFiles(staged, unit.planned.start, unit.segment_bytes, like)
    try:
        for stretch in passing.stretches():
            files.add(stretch)
        files.finish()
    finally:
        files.abort()
    return Note(
        origin=origin_of(unit),
        end=passing.end,
        markers=passing.markers,
        cut_batch=passing.cut,
        emptied=passing.emptied,
        files=tuple(files.written),
    )


def _answer(unit: OfflineUnit, note: Note, problem: str, *, again: bool) -> LogWritten:
    planned = unit.planned
    return LogWritten(
        log=planned.log,
        topic=planned.topic,
        partition=planned.partition,
        directory=str(planned.directory),
        start=planned.start,
        end=note.end,
        markers=note.markers,
        cut_batch=note.cut_batch,
        emptied=note.emptied,
        again=again,
        files=note.files,
        problem=problem,
    )


def _failed(unit: OfflineUnit, problem: str) -> LogWritten:
    planned = unit.planned
    return LogWritten(
        log=planned.log,
        topic=planned.topic,
        partition=planned.partition,
        directory=str(planned.directory),
        start=planned.start,
        end=planned.end,
        problem=problem,
    )
