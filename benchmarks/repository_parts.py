"""How fast are parts with many segments? Encode, decode with all checks, cut to a backup, name every object.

    python -m benchmarks.repository_parts [--segments 1000000] [--logs 10000]

Each step runs in a process of its own, so that its peak memory is its own; prints a Markdown table.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from logkeep.model.ranges import Range
from logkeep.repository.parts import SegmentTable, decode, encode
from logkeep.repository.parts.table import SCHEMA

_RECORDS = 10_000
"""In each segment."""


def made_up(segments: int, logs: int) -> SegmentTable:
    """`logs` partitions, ten to a topic, each with its share of segments, and random tokens and hashes."""
    chance = np.random.default_rng(1)
    per_log = segments // logs
    log = np.repeat(np.arange(logs), per_log)
    rows = len(log)
    start = np.tile(np.arange(per_log), logs) * _RECORDS
    time_ms = 1_700_000_000_000 + start

    def text(values: list[str], which: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(which, pa.int32()), pa.array(values, pa.string()))

    def noise(width: int) -> pa.Array:
        return pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(width), rows, [None, pa.py_buffer(chance.bytes(rows * width))]
        )

    topics = logs // 10 + 1
    none = np.zeros(rows, np.int64)
    columns = {
        "collection": text(["topics"], none),
        "name": text([f"orders.region-{t:05}.events" for t in range(topics)], log // 10),
        "history": text([f"{t:022}" for t in range(topics)], log // 10),
        "partition": pa.array(log % 10, pa.int32()),
        "start": pa.array(start),
        "end": pa.array(start + _RECORDS),
        "first": pa.array(start),
        "token": noise(8),
        "has_object": pa.array(np.ones(rows, np.bool_)),
        "proof": text(["proven"], none),
        "records": pa.array(np.full(rows, _RECORDS)),
        "stored_bytes": pa.array(chance.integers(10**6, 10**8, rows)),
        "plain_bytes": pa.array(chance.integers(10**6, 10**8, rows)),
        "base_time_ms": pa.array(time_ms),
        "max_time_ms": pa.array(time_ms + 999),
        "sha256": noise(32),
        "plain_sha256": noise(32),
        "codec": text(["none"], none),
        "digest": text([""], none),
    }
    return SegmentTable.validated(pa.Table.from_arrays([columns[f.name] for f in SCHEMA], schema=SCHEMA))


def measure(step: str, part: Path, segments: int, logs: int) -> str:
    """Carry out one step and describe it as a row of the table."""
    data = b"" if step == "encode" else part.read_bytes()
    if step == "encode":
        table = made_up(segments, logs)
    else:  # decoding is measured alone, the other steps need its result
        table = SegmentTable.merge([]) if step == "decode and check" else decode(data, segments)
    span = Range(0, segments // logs // 2 * _RECORDS)
    cuts = dict.fromkeys(table.logs(), span) if step == "covering" else {}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    steps: dict[str, Callable[[], object]] = {
        "encode": lambda: part.write_bytes(encode(table)),
        "decode and check": lambda: len(decode(data, segments)),
        "covering": lambda: len(table.covering(cuts)),
        "object_names": lambda: sum(1 for _ in table.object_names("bench")),
        "object_names as a set": lambda: len(set(table.object_names("bench"))),
    }
    began = time.perf_counter()
    result = steps[step]()
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f"| {step} | {seconds:.2f} | {peak / 1024:.0f} | {(peak - before) / 1024:.0f} | {result:,} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=1_000_000)
    parser.add_argument("--logs", type=int, default=10_000)
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--part", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(measure(options.step, options.part, options.segments, options.logs), flush=True)
        return
    print(f"{options.segments:,} segments of {options.logs:,} logs, pyarrow {pa.__version__}, {os.cpu_count()} cores\n")
    print("| step | s | peak RSS, MiB | of it grown in the step | result |\n|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        sizes = [f"--segments={options.segments}", f"--logs={options.logs}", f"--part={folder}/part.parquet"]
        for step in ("encode", "decode and check", "covering", "object_names", "object_names as a set"):
            command = [sys.executable, "-m", "benchmarks.repository_parts", f"--step={step}", *sizes]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
