"""How fast is a fold? One log of many small records, against Spark's latest record per key and the broker's cleaner.

    python -m benchmarks.fold [--records 20000000] [--keys 1000000] [--rounds 1] [--spark] [--cleaner] [--directory DIR]

A log of records of 100 bytes with random keys, stored as plain segments of 256 MiB in a directory, page cache warm, one
kept backup. `fold` is the task of `kafka fold` in a process of its own: transactions, rows, decision, rewriting, and
reading everything back. With --spark the same batches are decoded by Spark's workers, and Spark takes
`max_by(offset)` per key and writes Parquet: decode, maximum by key, write; on two cores, while the fold has one. With
--cleaner a broker gets the segments as the log of a compacted topic, and says how long its cleaner took. Wall
and CPU seconds, records per second, the ratio, and the peak memory of the process that folds.
"""

import argparse
import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.fold_peers import cleaner_speed, remove, spark_seconds
from logkeep.formats.compaction.barriers import Barrier, Barriers
from logkeep.formats.kafka.batches import BatchStretch, walk
from logkeep.formats.kafka.record_kernels import KEY_AT
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.warm import warm
from logkeep.kafka.fold.fold_task import fold_log
from logkeep.kafka.fold.units import FoldUnit
from logkeep.model.cache import cache_dir
from logkeep.model.segments import Collection, LogName, Segment
from logkeep.model.time import random_token
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from logkeep.store.local.store import LocalStore

LOG = LogName(Collection.TOPICS, "state", "a" * 32, 0)
_BATCH = 150
_RECORD_BYTES = 100
_SEGMENT_BYTES = 256 << 20


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--records", type=int, default=20_000_000)
    arguments.add_argument("--keys", type=int, default=1_000_000)
    arguments.add_argument("--rounds", type=int, default=1)
    arguments.add_argument("--spark", action="store_true")
    arguments.add_argument("--cleaner", action="store_true")
    arguments.add_argument("--directory", type=Path)
    arguments.add_argument("--unit", type=Path, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.unit:
        print(json.dumps(_folded(pickle.loads(chosen.unit.read_bytes()))))  # noqa: S301 - this script wrote it
        return
    directory = Path(tempfile.mkdtemp(dir=chosen.directory))
    try:
        place = SourceRef(LocalStore(directory / "store"), "0" * 32, "prod")
        place.store.create()  # type: ignore[attr-defined]  # a directory is made
        rows = _written(place, chosen.records, chosen.keys)
        for _ in range(chosen.rounds):
            _round(place, rows, directory, chosen)
    finally:
        shutil.rmtree(directory)


def _round(place: SourceRef, rows: tuple[Segment, ...], directory: Path, chosen: argparse.Namespace) -> None:
    millions = chosen.records / 1e6
    ours = _fold(place, rows, directory, chosen.records)
    if chosen.spark:
        theirs, cpu = spark_seconds(place, rows, directory / "peer")
        remove(directory / "peer")
        speed = f"{millions / theirs:6.2f} M records/s  {cpu:.1f} CPU s"
        print(f"Spark  {theirs:7.1f} s  {speed}  fold {theirs / ours:.2f} x", flush=True)
    if chosen.cleaner:
        cache = cache_dir(os.environ, Path.home())
        print(f"cleaner: {cleaner_speed(place, rows, directory / 'peer', cache, len(_template()))}", flush=True)
        remove(directory / "peer")


def _fold(place: SourceRef, rows: tuple[Segment, ...], directory: Path, records: int) -> float:
    """In a process of its own; what it wrote is removed."""
    file = directory / "unit"
    file.write_bytes(
        pickle.dumps(FoldUnit(place, LOG, rows, Barriers((Barrier(1, 0, records),)), seeds=(11, 12, 13, 14, 15, 16)))
    )
    command = [sys.executable, "-m", "benchmarks.fold", "--unit", str(file)]
    done = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    took, speed = done["wall"], records / done["wall"] / 1e6
    kept = f"{done['before']:,} records became {done['after']:,}"
    print(
        f"fold   {took:7.1f} s  {speed:6.2f} M records/s  {done['cpu']:.1f} CPU s  peak {done['peak']:.0f} MiB  {kept}",
        flush=True,
    )
    return float(took)


def _folded(unit: FoldUnit) -> dict[str, float]:
    """In this process."""
    warm()
    began, cpu = time.perf_counter(), time.process_time()
    done = fold_log(unit, lambda _: None)
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    if done.before is None or done.after is None or done.before.latest != done.after.latest:
        raise SystemExit(str(done))
    for _, row in done.replaced:
        unit.place.store.delete(layout.segment(unit.place.source, row))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"wall": took, "cpu": cpu, "peak": peak, "before": done.before.records, "after": done.after.records}


def _written(place: SourceRef, records: int, keys: int) -> tuple[Segment, ...]:
    """Batches with the same shape, whose keys are overwritten in place: no record is encoded twice."""
    random = np.random.default_rng(1)
    template = np.frombuffer(bytearray(_template()), np.uint8).copy()
    spots = _key_spots(template)
    writer = SegmentWriter(place, LOG, 0, SegmentLimits(_SEGMENT_BYTES), 0, random_token)
    for base in range(0, records, _BATCH):
        template[spots] = _digits(random.integers(0, keys, len(spots)))
        data = _sealed(template, base)
        writer.write(memoryview(data), walk(data).batches)
    writer.finish(records)
    return tuple(writer.segments)


def _template() -> bytes:
    from tests.support.kafka.slow_records import Slow, batch_of  # noqa: PLC0415

    value = bytes(_RECORD_BYTES - 20)
    return batch_of(0, [Slow(n, 0, b"k" + b"0" * 9, value) for n in range(_BATCH)])


def _key_spots(template: np.ndarray) -> np.ndarray:
    data = template.tobytes()
    stretch = BatchStretch(data, walk(data).batches)
    (records,) = visible_records([stretch], View(0, _BATCH))
    return records.spans[:, KEY_AT].astype(np.int64)[:, None] + 1 + np.arange(9)


def _digits(numbers: np.ndarray) -> np.ndarray:
    return (numbers[:, None] // 10 ** np.arange(8, -1, -1) % 10 + ord("0")).astype(np.uint8)


def _sealed(template: np.ndarray, base: int) -> bytes:
    import google_crc32c  # noqa: PLC0415

    template[:8] = np.frombuffer(base.to_bytes(8, "big"), np.uint8)
    data = bytearray(template.tobytes())
    data[17:21] = google_crc32c.value(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


if __name__ == "__main__":
    main()
