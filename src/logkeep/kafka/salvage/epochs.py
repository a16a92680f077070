"""Where leader epochs begin, noted batch after batch."""

import numpy as np

from logkeep.formats.kafka_log import Batches
from logkeep.kafka.units import EpochStart


def note_epochs(known: list[EpochStart], batches: Batches) -> None:
    """Add the epochs that begin in these batches, which follow those that were noted before."""
    epochs, bases = batches.headers["leader_epoch"].astype(np.int64), batches.base_offsets
    last = known[-1].epoch if known else -2
    for index in np.flatnonzero(np.diff(epochs, prepend=last)).tolist():
        known.append(EpochStart(int(epochs[index]), int(bases[index])))
