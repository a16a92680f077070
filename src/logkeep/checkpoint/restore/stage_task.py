"""A task: writes the log and the snapshot of one partition into a directory, byte for byte as they were archived.

Every batch is checked (CRC-32C, positions without a hole), every object against its hash. The log ends after the
create of the checkpoint. Then the files are read again: their state must be the one that was backed up. A repeated
attempt begins anew.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from logkeep.checkpoint.durable_directory import sync_directory
from logkeep.checkpoint.restore.state_proof import staged_digest
from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import Batches, Bytes
from logkeep.model.segments import Segment
from logkeep.model.work import Progress
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.log_batches import proven_batches
from logkeep.repository.segments.reader import proven_pieces


class StageUnit(msgspec.Struct, frozen=True, kw_only=True):
    place: SourceRef
    partition: int
    log: tuple[Segment, ...]
    snapshot: Segment | None
    log_start: int
    cut_end: int
    directory: str
    state_digest: str = ""
    """Of the state at the checkpoint, as its backup recorded it; empty if no backup did."""

    @property
    def bytes(self) -> int:
        return sum(s.plain_bytes for s in (*self.log, *((self.snapshot,) if self.snapshot else ())))


class StagedPartition(msgspec.Struct, frozen=True, kw_only=True):
    partition: int
    records: int
    """Positions of the log that was written."""
    log_bytes: int
    snapshot_bytes: int
    state_digest: str
    """Of snapshot and events up to the checkpoint; empty if the state backend has snapshots of its own format."""
    proven: bool
    """It is the digest that the backup recorded."""


def stage_partition(unit: StageUnit, progress: Progress) -> StagedPartition:
    """Write `log/<20 digits>.log` and `snapshots/<20 digits>.sqlite`. Raises Damaged."""
    root = Path(unit.directory)
    shutil.rmtree(root, ignore_errors=True)
    (root / "log").mkdir(parents=True, mode=0o700)
    (root / "snapshots").mkdir(mode=0o700)
    first, log_bytes = _write_log(unit, root / "log", progress)
    snapshot_bytes = _write_snapshot(unit, root / "snapshots", progress)
    for directory in (root / "log", root / "snapshots", root):
        sync_directory(directory)
    digest = _proven_state(unit, root)
    return StagedPartition(
        partition=unit.partition,
        records=unit.cut_end - first,
        log_bytes=log_bytes,
        snapshot_bytes=snapshot_bytes,
        state_digest=digest,
        proven=digest != "" and digest == unit.state_digest,
    )


def _proven_state(unit: StageUnit, root: Path) -> str:
    """Raises Damaged if the staged files do not give the state that was backed up."""
    position = unit.snapshot.start if unit.snapshot is not None else -1
    found = staged_digest(root, position, secrets.randbits(63)) or ""
    if found and unit.state_digest and found != unit.state_digest:
        raise Damaged(
            "snapshot and events do not give the state that was backed up",
            subject=f"partition {unit.partition}",
            remedy="restore another backup; `logkeep verify --level cut` names the records",
        )
    return found


def _write_log(unit: StageUnit, directory: Path, progress: Progress) -> tuple[int, int]:
    """One file for each archived object; the first position and the bytes written."""
    reached, first, written = unit.log_start, -1, 0
    for segment in unit.log:
        if reached >= unit.cut_end:
            break
        pieces = _batches(unit, segment, progress)
        begun = next(((data, base, end) for data, base, end in pieces if end > reached), None)
        if begun is None:
            continue
        first = begun[1] if first < 0 else first
        with (directory / f"{begun[1]:020}.log").open("wb") as file:
            reached, size = _append(file, begun, pieces, reached, unit)
            written += size
    if reached != unit.cut_end:
        raise Damaged(
            f"the archived log ends at {reached}, not at {unit.cut_end}", subject=f"partition {unit.partition}"
        )
    return first, written


def _append(
    file: BinaryIO, begun: tuple[bytes, int, int], rest: Iterator[tuple[bytes, int, int]], reached: int, unit: StageUnit
) -> tuple[int, int]:
    size, piece = 0, begun
    while True:
        data, base, end = piece
        if base > reached:
            raise Damaged(f"positions [{reached}, {base}) are missing", subject=f"partition {unit.partition}")
        file.write(data)
        reached, size = end, size + len(data)
        found = next(rest, None)
        if found is None:
            break
        piece = found
    file.flush()
    os.fsync(file.fileno())
    return reached, size


def _batches(unit: StageUnit, segment: Segment, progress: Progress) -> Iterator[tuple[bytes, int, int]]:
    """Runs of whole batches below the cut: bytes, first position, end. The hash is compared after the last one."""
    for buffer, batches in proven_batches(unit.place, segment, -1, progress):
        yield from _runs(buffer, batches, unit)


def _runs(buffer: Bytes, batches: Batches, unit: StageUnit) -> Iterator[tuple[bytes, int, int]]:
    for i in range(len(batches)):
        one = batches[i : i + 1]
        end = int(one.last_offsets[0]) + 1
        if unit.log_start < end <= unit.cut_end:
            yield bytes(buffer[one.start : one.end]), int(one.base_offsets[0]), end


def _write_snapshot(unit: StageUnit, directory: Path, progress: Progress) -> int:
    if unit.snapshot is None:
        return 0
    path, size = directory / f"{unit.snapshot.start:020}.sqlite", 0
    with path.open("wb") as file:
        for piece in proven_pieces(unit.place, unit.snapshot, progress):
            size += file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return size
