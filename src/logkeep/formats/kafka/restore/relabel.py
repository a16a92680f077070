"""Changes archived batches for the log files of a broker in another cluster, and back.

Two fields of a batch are valid only in the cluster that wrote it. The leader epoch becomes 0: followers never catch up
with a leader whose log has epochs above its own. (It is outside of the CRC-32C.) Producer ids are moved far up: a new
cluster assigns 0, 1, 2, …, and would take a new producer's records for duplicates of the old one's. The CRC is computed
again if an id was moved.

Ids up to 2**56, more than any cluster assigns, go to the first range above 2**62, and those of a range (the log was
restored like this before) to the next one: two producers stay two. Nothing else changes, so `original` returns every
archived batch with the CRC that its producer computed.
"""

import google_crc32c
import numpy as np
import numpy.typing as npt

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import CRC_FROM, Batches, Longs

MOVED = 1 << 62
"""The first producer id that no cluster assigns."""
ROOM = 1 << 56
"""Number of ids in one range."""
_LAST_ROOM = 2**63 - ROOM

Plain = npt.NDArray[np.uint8]
_EPOCH_BYTES, _CRC_BYTES, _PRODUCER_BYTES = np.arange(12, 16), np.arange(17, CRC_FROM), np.arange(43, 51)


def moved(producers: Longs) -> Longs:
    """The moved ids. -1 (no producer) stays. Raises Damaged if there is no range left."""
    if len(producers) and int(producers.max()) >= _LAST_ROOM:
        raise Damaged(f"producer id {int(producers.max())} cannot be moved any further")
    first = (producers >= 0) & (producers < ROOM)
    return producers + np.where(first, MOVED, np.where(producers >= MOVED, ROOM, 0))


def moved_back(producers: Longs) -> Longs:
    """The inverse of `moved`."""
    first = (producers >= MOVED) & (producers < MOVED + ROOM)
    return producers - np.where(first, MOVED, np.where(producers >= MOVED, ROOM, 0))


def relabel(data: Plain, batches: Batches) -> None:
    """Change the batches in place."""
    data[batches.positions[:, None] + _EPOCH_BYTES] = 0
    old = _producers(batches)
    _write_producers(data, batches, old, moved(old))


def original(data: Plain, batches: Batches) -> Longs:
    """Restore the original producer ids in place; returns the CRC-32C of each batch."""
    old = _producers(batches)
    new = moved_back(old)
    data[batches.positions[:, None] + _PRODUCER_BYTES] = _bytes(new, ">i8")
    return _crcs(data, batches, np.arange(len(batches)))


def _producers(batches: Batches) -> Longs:
    return batches.headers["producer_id"].astype(np.int64)


def _write_producers(data: Plain, batches: Batches, old: Longs, new: Longs) -> None:
    changed = np.flatnonzero(old != new)
    starts = batches.positions[changed][:, None]
    data[starts + _PRODUCER_BYTES] = _bytes(new[changed], ">i8")
    data[starts + _CRC_BYTES] = _bytes(_crcs(data, batches, changed), ">u4")


def _crcs(data: Plain, batches: Batches, chosen: npt.NDArray[np.intp]) -> Longs:
    starts = batches.positions[chosen]
    ends = starts + batches.sizes[chosen]
    crc_of = google_crc32c.value
    found = [crc_of(data[a + CRC_FROM : b]) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    return np.array(found, np.int64)


def _bytes(numbers: Longs, form: str) -> Plain:
    """One row of bytes per number."""
    wide = np.dtype(form)
    return np.ascontiguousarray(numbers.astype(wide)).view(np.uint8).reshape(len(numbers), wide.itemsize)
