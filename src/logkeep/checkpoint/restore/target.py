"""What a restore drops of the target: how far the logs reach that are there now. Reads only."""

from pathlib import Path
from typing import Final

from logkeep.checkpoint.restore.plan import PartitionRestorePlan
from logkeep.repository.segments.log_batches import LogPieces

_PIECE_BYTES: Final = 4 << 20


def log_end(partition: Path) -> int | None:
    """After the last whole batch of a partition's log; None without a log, or if its last file is damaged."""
    files = sorted((partition / "log").glob("*.log"))
    if not files or not files[-1].stem.isdecimal():
        return None
    end, pieces = int(files[-1].stem), LogPieces()
    with files[-1].open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            for _, batches in pieces.take(piece):
                end = int(batches.last_offsets[-1]) + 1 if len(batches) else end
    return None if pieces.problem else end


def dropped(directory: Path, of: PartitionRestorePlan, target_history: int | None, history: int) -> int | None:
    """Records of the target after the checkpoint; None if that cannot be said.

    Positions are compared, so the target must be in the history that is restored. An empty target loses nothing.
    """
    if target_history is None:
        return 0
    end = log_end(directory / f"p{of.partition}") if target_history == history else None
    return None if end is None else max(0, end - of.cut_end)
