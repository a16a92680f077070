"""Arrow records with all that formats lose: null and empty, repeated headers, names that are no text, odd times."""

import random
from typing import Any

import pyarrow as pa

from logkeep.formats.datasets.arrow import SCHEMA

TOPIC, PARTITION = "orders.eu-1", 3
Header = tuple[bytes, bytes | None]


def header_rows(headers: list[Header]) -> list[dict[str, bytes | None]]:
    return [{"key": key, "value": value} for key, value in headers]


def sample(count: int, seed: int = 1, *, plain: bool = False, first: int = 10**10) -> pa.RecordBatch:
    """Rising offsets with holes. `plain`: only what the schema `seed001` can hold."""
    chance, offset, rows = random.Random(seed), first, []
    for _ in range(count):
        value: bytes | None = chance.randbytes(chance.choice((0, 1, 60, 300)))
        headers: list[Header] = [(b"h%d" % i, chance.randbytes(3)) for i in range(chance.choice((0, 0, 2, 20)))]
        if not plain:
            value = chance.choice((None, value, value))
            odd: tuple[Header, ...] = (
                (b"\xff\xfe", b"x"),
                (b"", None),
                (b"a", None),
                (b"a", b""),
                ("ä".encode(), b"y"),
            )
            headers += [chance.choice(odd) for _ in range(chance.choice((0, 0, 5)))]
        key = chance.choice((None, b"", chance.randbytes(9)))
        time_ms = chance.choice((-1, 0, 1_700_000_000_000 - offset % 97, 253_402_300_799_999))
        kind = 0 if plain else chance.choice((0, 1))
        rows.append((offset, time_ms, kind, key, value, header_rows(headers)))
        offset += chance.choice((1, 1, 1, 5))
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in SCHEMA]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def rows_of(batches: list[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    """Times as numbers: Python has no year 10000."""
    rows: list[tuple[Any, ...]] = []
    for batch in batches:
        times = batch.column("timestamp").cast(pa.int64()).to_pylist()
        headers = [[(h["key"], h["value"]) for h in row] for row in batch.column("headers").to_pylist()]
        rest = [batch.column(name).to_pylist() for name in ("offset", "timestamp_type", "key", "value")]
        rows += zip(*rest, times, headers, strict=True)
    return rows
