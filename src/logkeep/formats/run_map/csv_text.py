"""Run maps as CSV, for other tools: one line per run.

    topic,partition,source_offset,target_offset,count,target_topic,target_partition

`count` consecutive records of the source partition, from `source_offset` on, have consecutive offsets in the target
partition, from `target_offset` on.
"""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyarrow import csv

from logkeep.formats.arrow_start import start_arrow
from logkeep.formats.run_map.file_format import Route, decode
from logkeep.formats.run_map.runs import RunMap

start_arrow()

COLUMNS = ("topic", "partition", "source_offset", "target_offset", "count", "target_topic", "target_partition")
_CHUNK_RUNS = 65_536
_PLAIN = csv.WriteOptions(include_header=False, quoting_style="needed")


def csv_chunks(maps: Mapping[Route, bytes], subject: str) -> Iterator[bytes]:
    """The lines of all maps in order of their routes, one map in memory at a time. Raises Damaged."""
    yield (",".join(COLUMNS) + "\n").encode()
    for route in sorted(maps):
        runs = decode(maps[route], f"{subject}, {route.topic}/{route.partition}")
        for first in range(0, len(runs), _CHUNK_RUNS):
            yield _lines(route, runs, slice(first, first + _CHUNK_RUNS))


def _lines(route: Route, runs: RunMap, part: slice) -> bytes:
    source, target, n = runs.source[part], runs.target[part], runs.n[part]
    values = (route.topic, route.partition, source, target, n, route.target_topic, route.target_partition)
    columns = [
        pa.repeat(pa.scalar(value), len(source)) if isinstance(value, str | int) else pa.array(value)
        for value in values
    ]
    sink = pa.BufferOutputStream()
    csv.write_csv(pa.table(columns, names=list(COLUMNS)), sink, _PLAIN)
    return bytes(sink.getvalue())
