"""The `data` level for archived Kafka logs: besides its SHA-256, every batch of every object.

A hash says that an object is what was written; the batches say that what was written is a Kafka log: whole batches
back to back, offsets that rise, and the CRC-32C that the producer computed. One pass over the bytes serves both.
"""

import hashlib
from collections.abc import Iterator

from logkeep.errors import Damaged, ObjectMissing, UnsafeName
from logkeep.formats.kafka_log import Batches, Stop, first_broken, walk
from logkeep.kafka.segment_reading import stored_and_plain
from logkeep.model.work import Progress
from logkeep.repository.verify import Checked, HashResult, HashUnit
from logkeep.store.base import Store

_LARGEST_BATCH = 1 << 30
"""A broken length must not make us read on for ever."""
BRING_BACK = "bring the object back from the store's versions or from a copy, then verify again"


def check_logs(unit: HashUnit, progress: Progress) -> HashResult:
    """A task: read every object of the unit once, compare its hash, and walk its batches."""
    checked = Checked([])
    for name, size, expected in unit.objects:
        for _ in checked_batches(unit.store, name, size, expected, checked, progress):
            pass
    return HashResult(checked.findings, checked.objects, checked.bytes)


def checked_batches(
    store: Store, name: str, size: int, expected: str, checked: Checked, progress: Progress
) -> Iterator[tuple[bytes, Batches]]:
    """The good batches of an object, in buffers, as they are read. What is wrong with it is a finding at its end."""
    try:
        found = store.head(name).size
        if found != size:
            checked.damage("size-mismatch", name, f"has {found} bytes instead of {size}", BRING_BACK)
            return
        yield from _read(store, name, size, expected, checked, progress)
    except (ObjectMissing, Damaged, UnsafeName) as error:
        checked.damage("object-unreadable", name, error.what)
        return
    checked.objects += 1
    checked.bytes += size


def _read(
    store: Store, name: str, size: int, expected: str, checked: Checked, progress: Progress
) -> Iterator[tuple[bytes, Batches]]:
    digest, pieces = hashlib.sha256(), LogPieces()
    for stored, plain in stored_and_plain(store, name, size):
        digest.update(stored)
        yield pieces.take(plain)
        progress(len(stored))
    if digest.hexdigest() != expected:
        checked.damage("hash-mismatch", name, "the bytes are not those that were written", BRING_BACK)
    problem = pieces.problem or pieces.end_problem()
    if problem:
        checked.damage("batch-damaged", name, problem)


class LogPieces:
    """A log that comes in pieces: what is left of one is put before the next."""

    def __init__(self) -> None:
        self._rest, self._after = b"", -1
        self.problem = ""

    def take(self, piece: bytes) -> tuple[bytes, Batches]:
        """Walk as far as whole batches go. After the first problem nothing more can be told."""
        if self.problem:
            return b"", walk(b"").batches
        buffer = self._rest + piece if self._rest else piece
        walked = walk(buffer, self._after)
        batches, broken = walked.batches, first_broken(buffer, walked.batches)
        if broken is not None:
            offset, batches = int(batches.base_offsets[broken]), batches[:broken]
            self.problem = f"the batch at offset {offset} does not have the CRC-32C of its header"
        if len(batches):
            self._after = int(batches.last_offsets[-1])
        if not self.problem and walked.stop not in (Stop.END, Stop.TORN):
            self.problem = f"after offset {self._after}: {walked.reason}"
        self._rest = buffer[walked.stopped_at :]
        if len(self._rest) > _LARGEST_BATCH:
            self.problem = self.problem or f"after offset {self._after}: a batch without end"
        return buffer, batches

    def end_problem(self) -> str:
        return f"after offset {self._after}: the last batch is cut off" if self._rest else ""
