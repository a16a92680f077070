"""The `data` level for archived Kafka logs: besides its SHA-256, every batch of every object.

A hash says that an object is what was written; the batches say that what was written is a Kafka log: whole batches
back to back, offsets that rise, and the CRC-32C that the producer computed. One pass over the bytes serves both. A log
in zstd frames is unpacked on the way: the stored bytes have one hash, the log that they mean has another, and both are
compared.
"""

import hashlib

from logkeep.errors import Damaged, ObjectMissing, UnsafeName
from logkeep.formats.kafka_log import Bytes, Stop, first_broken, walk
from logkeep.model.segments import Codec
from logkeep.model.work import Progress
from logkeep.repository.parts import Expected
from logkeep.repository.segment_bytes import StoredLog
from logkeep.repository.verify import Checked, HashResult, HashUnit, stored_sha256
from logkeep.store.base import Store

_LARGEST_BATCH = 1 << 30
"""A broken length must not make us read on for ever."""


def check_logs(unit: HashUnit, progress: Progress) -> HashResult:
    """A task: read every object of the unit once, compare its hash, and walk its batches."""
    checked = Checked([])
    for each in unit.objects:
        try:
            found = unit.store.head(each.name).size
            if found != each.stored_bytes:
                checked.damage("size-mismatch", each.name, f"has {found} bytes instead of {each.stored_bytes}")
                continue
            _check(unit.store, each, checked, progress)
        except (ObjectMissing, Damaged, UnsafeName) as error:
            checked.damage("object-unreadable", each.name, error.what)
            continue
        checked.objects += 1
        checked.bytes += each.stored_bytes
    return HashResult(checked.findings, checked.objects, checked.bytes)


def _check(store: Store, wanted: Expected, checked: Checked, progress: Progress) -> None:
    stored, plain, batches = hashlib.sha256(), hashlib.sha256(), _Batches(wanted.name)

    def watch(chunk: bytes) -> None:
        stored.update(chunk)
        progress(len(chunk))

    try:
        for piece in StoredLog.expected(store, wanted).pieces(watch):
            if wanted.codec is not Codec.NONE:
                plain.update(piece)
            batches.take(piece)
    except Damaged as error:
        _broken_frame(store, wanted, error.what, checked)
        return
    _compare(wanted, stored.hexdigest(), (stored if wanted.codec is Codec.NONE else plain).hexdigest(), checked)
    problem = batches.problem or batches.end_problem()
    if problem:
        checked.damage("batch-damaged", wanted.name, problem)


def _compare(wanted: Expected, stored: str, plain: str, checked: Checked) -> None:
    if stored != wanted.sha256:
        checked.damage("hash-mismatch", wanted.name, "the bytes are not those that were written")
    elif plain != wanted.plain_sha256:
        checked.damage("plain-hash-mismatch", wanted.name, "its content is not the log that was archived")


def _broken_frame(store: Store, wanted: Expected, what: str, checked: Checked) -> None:
    """Frames cannot be read to the end. Whether the object was changed later is told by its hash alone."""
    checked.damage("frame-damaged", wanted.name, what)
    if stored_sha256(store, wanted.name, wanted.stored_bytes, lambda _: None) != wanted.sha256:
        checked.damage("hash-mismatch", wanted.name, "the bytes are not those that were written")


class _Batches:
    """A log that comes in pieces: what is left of one is put before the next."""

    def __init__(self, name: str) -> None:
        self._name, self._after = name, -1
        self._rest: Bytes = b""
        self.problem = ""

    def take(self, chunk: Bytes) -> None:
        """Walk as far as whole batches go. After the first problem nothing more can be told."""
        if self.problem:
            return
        buffer = b"".join((self._rest, chunk)) if len(self._rest) else chunk
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
        return f"after offset {self._after}: the last batch is cut off" if len(self._rest) else ""

    def _last(self, offsets: list[int]) -> int:
        return offsets[-1] if offsets else self._after
