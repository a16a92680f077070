"""What does `verify` cost per core? Its tasks against SHA-256 alone over the same objects, in turns.

    python -m benchmarks.kafka_verify [--megabytes 512] [--rounds 3] [--directory DIR]

Segments of 64 MiB in a directory, page cache warm, read in pieces of 8 MiB by all: `hash_objects` (SHA-256 alone, the
`data` level of any source), `check_logs` (and batches walked, CRC-32C: the `data` level of Kafka), `decode_pieces` (and
records decoded and digested: the `records` level). CPU seconds in one process, best of `--rounds`. The bar is 0.6 of
SHA-256 alone for `check_logs`.
"""

import argparse
import hashlib
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.record_kernels import written_batches
from logkeep.formats.kafka.batches import walk
from logkeep.kafka.logs.batch_check import check_logs
from logkeep.kafka.verify.records import RecordUnit, SegmentRange, decode_pieces
from logkeep.model.segments import Collection, LogName, Segment
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.verify.checks import HashUnit, hash_objects
from logkeep.store.local.store import LocalStore

_SEGMENT_BYTES = 64 << 20


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--megabytes", type=int, default=512)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--directory", type=Path)
    chosen = arguments.parse_args()
    for size, batch_bytes in ((100, 235_000), (100, 16_000), (1000, 235_000), (1000, 16_000)):
        directory = Path(tempfile.mkdtemp(dir=chosen.directory))
        try:
            _measure(size, batch_bytes, chosen.megabytes << 20, chosen.rounds, directory)
        finally:
            shutil.rmtree(directory)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


def _measure(size: int, batch_bytes: int, total: int, rounds: int, directory: Path) -> None:
    store = LocalStore(directory)
    store.create()
    pieces = _filled(store, size, batch_bytes, total)
    objects = [p.expected for p in pieces]
    alone = _best(lambda: hash_objects(HashUnit(store, objects), lambda _: None).findings, rounds)
    data = _best(lambda: check_logs(HashUnit(store, objects), lambda _: None).findings, rounds)
    place = SourceRef(store, "r", "s")
    records = _best(lambda: decode_pieces(RecordUnit(place, pieces), lambda _: None).findings, rounds)
    stored = sum(p.segment.stored_bytes for p in pieces) / 1e6
    print(
        f"{size:5} B, {batch_bytes // 1000:3} kB batches: sha256 {stored / alone:6.0f} MB/s, data {stored / data:6.0f}"
        f" ({alone / data:.2f} x), records {stored / records:6.0f} ({alone / records:.2f} x)"
    )


def _filled(store: LocalStore, size: int, batch_bytes: int, total: int) -> list[SegmentRange]:
    """One log, repeated: what stands in it makes no difference to the work."""
    data = b"".join(written_batches(size, batch_bytes, min(total, _SEGMENT_BYTES)))
    headers = walk(data).batches
    digest, last = hashlib.sha256(data).hexdigest(), int(headers.last_offsets[-1])
    pieces = []
    for index in range(max(total // len(data), 1)):
        segment = Segment(
            log=LogName(Collection.TOPICS, "bench", "0" * 32, index),
            start=0,
            end=last + 1,
            first=0,
            token=f"{index:016x}",
            records=int(headers.headers["records"].sum()),
            stored_bytes=len(data),
            plain_bytes=len(data),
            base_time_ms=-1,
            max_time_ms=-1,
            sha256=digest,
            plain_sha256=digest,
        )
        name = layout.segment("bench", segment)
        writer = store.open_new(name, len(data))
        writer.write(data)
        writer.close()
        pieces.append(SegmentRange(segment, name, 0, last + 1))
    return pieces


def _best(work: Callable[[], Sequence[object]], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        began = time.process_time()
        assert work() == []
        times.append(time.process_time() - began)
    return min(times)


if __name__ == "__main__":
    main()
