"""Which snapshot a backup of one partition is made of, and which snapshots must not be kept. Pure.

A snapshot fits if its last position is below the create: one at or after it has what the cut leaves out. Without any
snapshot the log from its very beginning is enough.
"""

from collections.abc import Callable, Sequence

import msgspec


class KeptSnapshot(msgspec.Struct, frozen=True):
    """A snapshot: the last position in it, and the first position of the log that a replay on top of it needs."""

    position: int
    size_bytes: int
    log_from: int


class UseSnapshot(msgspec.Struct, frozen=True):
    """Copy the log from `log_from`, and this snapshot unless it is archived. None: the log alone."""

    snapshot: KeptSnapshot | None
    log_from: int
    archived: bool = False


class NoSnapshotFits(msgspec.Struct, frozen=True):
    reason: str


def choose(
    snapshots: Sequence[KeptSnapshot], create: int, log_start: int, reserve: Callable[[KeptSnapshot], bool]
) -> UseSnapshot | NoSnapshotFits:
    """The newest snapshot below the create that can be reserved and whose log is still there."""
    reasons: list[str] = []
    for each in sorted(snapshots, key=lambda found: found.position, reverse=True):
        unusable = _unusable(each, create, log_start)
        if not unusable and reserve(each):
            return UseSnapshot(each, each.log_from)
        reasons.append(f"snapshot {each.position}: {unusable or 'it cannot be reserved'}")
    if log_start == 0:
        return UseSnapshot(None, 0)
    reasons.append(f"the log begins at {log_start}")
    return NoSnapshotFits("; ".join(reasons))


def reuse(
    chosen: UseSnapshot,
    archived: KeptSnapshot | None,
    archived_log_end: int,
    log_bytes_since: int,
    archived_log_start: int = 0,
) -> UseSnapshot:
    """The archived snapshot instead, while the log since it is smaller than a new one and archived without a gap.

    It is also used where the archived log begins after what the chosen one needs: a leader that has only just got the
    partition replays its whole log, and has no snapshot of its own, or an old one.
    """
    if archived is not None and chosen.log_from < archived_log_start:
        return UseSnapshot(archived, archived.log_from, archived=True)
    if archived is None or chosen.snapshot is None or archived.position > chosen.snapshot.position:
        return chosen
    if archived_log_end < chosen.log_from and archived.position != chosen.snapshot.position:
        return chosen
    if log_bytes_since >= chosen.snapshot.size_bytes:
        return chosen
    return UseSnapshot(archived, archived.log_from, archived=True)


def must_abort(processed: int, last_written: int, checkpoint_position: int) -> bool:
    """Whether a new snapshot straddles a checkpoint: all before it processed, results from after it inside."""
    return processed <= checkpoint_position < last_written


def _unusable(snapshot: KeptSnapshot, create: int, log_start: int) -> str:
    if snapshot.position >= create:
        return f"it is not below the checkpoint at {create}"
    return f"the log begins at {log_start}" if snapshot.log_from < log_start else ""
