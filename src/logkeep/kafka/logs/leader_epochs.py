"""Leader epochs of a log: runs of batches with one epoch, and the offsets at which epochs begin. Pure."""

import msgspec
import numpy as np

from logkeep.formats.kafka.batches import Batches


class Gap(msgspec.Struct, frozen=True):
    """Offsets `[start, end)` that retention removed before they were read."""

    start: int
    end: int


class EpochRun(msgspec.Struct, frozen=True):
    """Batches of one leader epoch in a row: the first offset, and the end of the last batch.

    Two logs with a batch of the same epoch at the same offset are the same up to there: so the end of a run shows later
    whether the log is still the one that was read.
    """

    epoch: int
    offset: int
    end: int


def note_epochs(known: list[EpochRun], batches: Batches) -> None:
    """Add the runs of these batches, which follow those added before."""
    for run in _runs(batches):
        last = known[-1] if known else None
        if last is not None and last.epoch == run.epoch:
            known[-1] = EpochRun(run.epoch, last.offset, run.end)
        else:
            known.append(run)


def _runs(batches: Batches) -> list[EpochRun]:
    if not len(batches):
        return []
    epochs, bases, lasts = batches.headers["leader_epoch"], batches.base_offsets, batches.last_offsets
    changes = np.flatnonzero(epochs[1:] != epochs[:-1]).tolist()
    firsts, ends = [0, *(index + 1 for index in changes)], [*changes, len(batches) - 1]
    return [EpochRun(int(epochs[a]), int(bases[a]), int(lasts[b]) + 1) for a, b in zip(firsts, ends, strict=True)]


class EpochStart(msgspec.Struct, frozen=True):
    """The first offset of a leader epoch, from a batch or from the broker's own checkpoint file."""

    epoch: int
    offset: int


def note_starts(known: list[EpochStart], batches: Batches) -> None:
    """Add the epochs that begin in these batches, which follow those added before."""
    epochs, bases = batches.headers["leader_epoch"].astype(np.int64), batches.base_offsets
    last = known[-1].epoch if known else -2
    for index in np.flatnonzero(np.diff(epochs, prepend=last)).tolist():
        known.append(EpochStart(int(epochs[index]), int(bases[index])))
