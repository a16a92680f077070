"""Segment rows as immutable Parquet objects ("parts"), for a million segments and more. The door to Arrow tables.

- `table`: `SegmentTable`, the rows as checked, sorted columns
- `part_file`: rows ↔ bytes, safe on hostile bytes
- `answers`: what others ask of the rows
- `pages`, `thrift`: what a Parquet file would make a reader do, found out before a reader sees it
- `tiers`: which parts to merge when a backup adds rows (pure)

Importing this package imports pyarrow; verbs that need no segment rows leave it alone.
"""

from logkeep.repository.parts.answers import (
    Expected,
    LogTotals,
    expected,
    log_totals,
    objects,
    ranges,
    row_tokens,
    small_objects,
    tokens,
    total,
)
from logkeep.repository.parts.part_file import decode, encode
from logkeep.repository.parts.table import SegmentTable
from logkeep.repository.parts.tiers import MergePlan, plan_parts

__all__ = [
    "Expected",
    "LogTotals",
    "MergePlan",
    "SegmentTable",
    "decode",
    "encode",
    "expected",
    "log_totals",
    "objects",
    "plan_parts",
    "ranges",
    "row_tokens",
    "small_objects",
    "tokens",
    "total",
]
