"""Where leader epochs begin on a disk, noted batch after batch."""

import msgspec
import numpy as np

from logkeep.formats.kafka_log import Batches


class EpochStart(msgspec.Struct, frozen=True):
    """The first offset of a leader epoch, from a batch or from the broker's own checkpoint file."""

    epoch: int
    offset: int


def note_starts(known: list[EpochStart], batches: Batches) -> None:
    """Add the epochs that begin in these batches, which follow those that were noted before."""
    epochs, bases = batches.headers["leader_epoch"].astype(np.int64), batches.base_offsets
    last = known[-1].epoch if known else -2
    for index in np.flatnonzero(np.diff(epochs, prepend=last)).tolist():
        known.append(EpochStart(int(epochs[index]), int(bases[index])))
