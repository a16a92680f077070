"""The `data` level for archived Kafka logs: besides its SHA-256, every batch of every object.

A hash says that an object is what was written; the batches say that what was written is a Kafka log: whole batches
back to back, offsets that rise, and the CRC-32C that the producer computed. One pass over the bytes serves both.
"""

import hashlib

from logkeep.errors import Damaged, ObjectMissing, UnsafeName
from logkeep.formats.kafka_log import Stop, first_broken, walk
from logkeep.model.work import Progress
from logkeep.repository.verify import Checked, HashResult, HashUnit
from logkeep.store.base import Store

_CHUNK = 8 << 20
_LARGEST_BATCH = 1 << 30
"""A broken length must not make us read on for ever."""


def check_logs(unit: HashUnit, progress: Progress) -> HashResult:
    """A task: read every object of the unit once, compare its hash, and walk its batches."""
    checked = Checked([])
    for name, size, expected in unit.objects:
        try:
            found = unit.store.head(name).size
            if found != size:
                checked.damage("size-mismatch", name, f"has {found} bytes instead of {size}")
                continue
            _check(unit.store, name, size, expected, checked, progress)
        except (ObjectMissing, Damaged, UnsafeName) as error:
            checked.damage("object-unreadable", name, error.what)
            continue
        checked.objects += 1
        checked.bytes += size
    return HashResult(checked.findings, checked.objects, checked.bytes)


def _check(store: Store, name: str, size: int, expected: str, checked: Checked, progress: Progress) -> None:
    digest, batches = hashlib.sha256(), _Batches(name)
    for start in range(0, size, _CHUNK):
        chunk = store.get_range(name, start, min(_CHUNK, size - start))
        digest.update(chunk)
        batches.take(chunk)
        progress(len(chunk))
    if digest.hexdigest() != expected:
        checked.damage("hash-mismatch", name, "the bytes are not those that were written")
    problem = batches.problem or batches.end_problem()
    if problem:
        checked.damage("batch-damaged", name, problem)


class _Batches:
    """A log that comes in pieces: what is left of one is put before the next."""

    def __init__(self, name: str) -> None:
        self._name, self._rest, self._after = name, b"", -1
        self.problem = ""

    def take(self, chunk: bytes) -> None:
        """Walk as far as whole batches go. After the first problem nothing more can be told."""
        if self.problem:
            return
        buffer = self._rest + chunk if self._rest else chunk
        walked = walk(buffer, self._after)
        broken = first_broken(buffer, walked.batches)
        if broken is not None:
            offset = int(walked.batches.base_offsets[broken])
            self.problem = f"the batch at offset {offset} does not have the CRC-32C of its header"
        elif walked.stop not in (Stop.END, Stop.TORN):
            self.problem = f"after offset {self._last(walked.batches.last_offsets.tolist())}: {walked.reason}"
        self._after = self._last(walked.batches.last_offsets.tolist())
        self._rest = buffer[walked.stopped_at :]
        if len(self._rest) > _LARGEST_BATCH:
            self.problem = f"after offset {self._after}: a batch without end"

    def end_problem(self) -> str:
        return f"after offset {self._after}: the last batch is cut off" if self._rest else ""

    def _last(self, offsets: list[int]) -> int:
        return offsets[-1] if offsets else self._after
