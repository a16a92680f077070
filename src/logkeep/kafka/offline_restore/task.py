"""The task that restores one partition: write, prove, move into place. A restored partition is only proven again.

Several attempts may run, and an abandoned one may still be running: each has its own staging directory, all write the
same bytes, and the last step exchanges two names.
"""

import os
from pathlib import Path

import msgspec

from logkeep.directories.folder import Folder
from logkeep.errors import Damaged, ObjectMissing, UnsafeName
from logkeep.kafka.offline_restore.batches import LogBatches
from logkeep.kafka.offline_restore.files import SegmentFileWriter
from logkeep.kafka.offline_restore.locks import broker_stopped
from logkeep.kafka.offline_restore.log_folders import open_root, partition_folder
from logkeep.kafka.offline_restore.ownership_note import NOTE, OwnershipNote, encoded, matching_note, origin_of
from logkeep.kafka.offline_restore.proof import prove
from logkeep.kafka.offline_restore.staging import (
    discard,
    make_staged,
    metadata_status,
    put_file,
    put_in_place,
    recover_directory,
    staged_name,
)
from logkeep.kafka.offline_restore.values import LogWritten, OfflineUnit
from logkeep.model.time import random_token
from logkeep.model.work import Progress


def restore_log(unit: OfflineUnit, progress: Progress) -> LogWritten:
    """Restore one log. A damaged archive is reported in the result; then nothing was changed."""
    planned = unit.planned
    root = open_root(Path(planned.root))
    with broker_stopped([root]):
        try:
            directory = partition_folder(root, planned.name)
            return _prove_again(unit, directory, progress) or _restore(unit, root, directory, progress)
        except (Damaged, ObjectMissing, UnsafeName) as error:
            return _failed(unit, str(error))
        finally:
            recover_directory(root, planned.topic, planned.partition)
            discard(root, planned.topic, planned.partition, {file.name for file in planned.old_files})


def _prove_again(unit: OfflineUnit, directory: Folder, progress: Progress) -> LogWritten | None:
    """The result of an earlier run, proven again; None when the log has to be written."""
    note = matching_note(directory, origin_of(unit))
    if note is None:
        return None
    problem = prove(directory, note.files, progress)
    return None if problem and unit.replace else _answer(unit, note, problem, again=True)


def _restore(unit: OfflineUnit, root: Folder, directory: Folder, progress: Progress) -> LogWritten:
    planned, like = unit.planned, metadata_status(directory)
    staged = make_staged(root, directory, staged_name(planned.topic, planned.partition, random_token()))
    note = _write(unit, staged, like, progress)
    put_file(staged, NOTE, encoded(note), like)
    problem = prove(staged, note.files, progress)
    if problem:
        return _failed(unit, f"the written files do not read back: {problem}")
    put_in_place(root, staged, directory)
    return _answer(unit, note, "", again=False)


def _write(unit: OfflineUnit, staged: Folder, like: os.stat_result, progress: Progress) -> OwnershipNote:
    batches = LogBatches(unit.place, unit.planned, progress)
    files = SegmentFileWriter(staged, unit.planned.start, unit.segment_bytes, like)
    try:
        for stretch in batches.stretches():
            files.add(stretch)
        files.finish()
    finally:
        files.abort()
    return OwnershipNote(
        origin=origin_of(unit),
        end=batches.end,
        markers=batches.markers,
        cut_batch=batches.cut,
        emptied=batches.emptied,
        files=tuple(files.written),
    )


def _answer(unit: OfflineUnit, note: OwnershipNote, problem: str, *, again: bool) -> LogWritten:
    return msgspec.structs.replace(
        _failed(unit, problem),
        end=note.end,
        markers=note.markers,
        cut_batch=note.cut_batch,
        emptied=note.emptied,
        again=again,
        files=note.files,
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
