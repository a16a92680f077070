"""Checks archived Kafka logs at the `data` level: the SHA-256 of every object, and every batch in it.

The hash shows that an object is what was written. The batches show that what was written is a Kafka log: whole batches
back to back, rising offsets, and the CRC-32C that the producer computed. One pass over the bytes checks both. A log in
zstd frames is unpacked on the way: the stored bytes have one hash, the unpacked log another, and both are compared.
"""

import hashlib
from collections.abc import Iterator

import msgspec

from logkeep.errors import Damaged, ObjectMissing, UnsafeName
from logkeep.formats.kafka.batches import Batches, Bytes
from logkeep.model.segments import Codec
from logkeep.model.work import Progress
from logkeep.repository.chain import layout
from logkeep.repository.parts import Expected
from logkeep.repository.segments.log_batches import LogPieces
from logkeep.repository.segments.reader import StoredLog
from logkeep.repository.verify.checks import CheckedObjects, HashResult, HashUnit, hash_objects, stored_sha256
from logkeep.store.base import Store

BRING_BACK = "bring the object back from the store's versions or from a copy, then verify again"


def check_logs(unit: HashUnit, progress: Progress) -> HashResult:
    """A task: read every object of the unit once, compare its hash, and walk its batches."""
    checked = CheckedObjects([])
    for each in unit.objects:
        for _ in checked_batches(unit.store, each, checked, progress):
            pass
    return HashResult(checked.findings, checked.objects, checked.bytes)


def check_logs_and_files(unit: HashUnit, progress: Progress) -> HashResult:
    """The same for a source that has snapshots too: those are hashed."""
    logs = [each for each in unit.objects if layout.is_log(each.name)]
    others = [each for each in unit.objects if not layout.is_log(each.name)]
    results = [
        check_logs(msgspec.structs.replace(unit, objects=logs), progress),
        hash_objects(msgspec.structs.replace(unit, objects=others), progress),
    ]
    return HashResult(
        [f for r in results for f in r.findings], sum(r.objects for r in results), sum(r.bytes for r in results)
    )


def checked_batches(
    store: Store, wanted: Expected, checked: CheckedObjects, progress: Progress
) -> Iterator[tuple[Bytes, Batches]]:
    """The good batches of an object, in buffers, as they are read. Damage becomes a finding at the end."""
    try:
        found = store.head(wanted.name).size
        if found != wanted.stored_bytes:
            what = f"has {found} bytes instead of {wanted.stored_bytes}"
            checked.damage("size-mismatch", wanted.name, what, BRING_BACK)
            return
        yield from _read(store, wanted, checked, progress)
    except (ObjectMissing, Damaged, UnsafeName) as error:
        checked.damage("object-unreadable", wanted.name, error.what)
        return
    checked.objects += 1
    checked.bytes += wanted.stored_bytes


def _read(
    store: Store, wanted: Expected, checked: CheckedObjects, progress: Progress
) -> Iterator[tuple[Bytes, Batches]]:
    stored, plain, pieces = hashlib.sha256(), hashlib.sha256(), LogPieces()

    def watch(chunk: bytes) -> None:
        stored.update(chunk)
        progress(len(chunk))

    try:
        for piece in StoredLog.expected(store, wanted).pieces(watch):
            if wanted.codec is not Codec.NONE:
                plain.update(piece)
            yield from pieces.take(piece)
    except Damaged as error:
        _broken_frame(store, wanted, error.what, checked)
        return
    _compare(wanted, stored.hexdigest(), (stored if wanted.codec is Codec.NONE else plain).hexdigest(), checked)
    problem = pieces.problem or pieces.end_problem()
    if problem:
        checked.damage("batch-damaged", wanted.name, problem)


def _compare(wanted: Expected, stored: str, plain: str, checked: CheckedObjects) -> None:
    if stored != wanted.sha256:
        checked.damage("hash-mismatch", wanted.name, "the bytes are not those that were written", BRING_BACK)
    elif plain != wanted.plain_sha256:
        checked.damage("plain-hash-mismatch", wanted.name, "its content is not the log that was archived")


def _broken_frame(store: Store, wanted: Expected, what: str, checked: CheckedObjects) -> None:
    """The frames cannot be read to the end. The hash shows whether the object was changed after it was written."""
    checked.damage("frame-damaged", wanted.name, what)
    if stored_sha256(store, wanted.name, wanted.stored_bytes, lambda _: None) != wanted.sha256:
        checked.damage("hash-mismatch", wanted.name, "the bytes are not those that were written", BRING_BACK)
