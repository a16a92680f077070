"""Parts: segment rows as immutable Parquet objects, for a million segments and more.

- `table`: `SegmentTable`, the rows as checked, sorted columns
- `part_file`: rows ↔ bytes, safe on hostile bytes
- `answers`: queries on the rows
- `pages`: checks a Parquet file before the Parquet reader sees it
- `tiers`: which parts to merge when a backup adds rows (pure)

Importing this package imports pyarrow; verbs that need no segment rows do not.
"""

from logkeep.repository.parts.answers import (
    Expected,
    LogTotals,
    dense_logs,
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
from logkeep.repository.parts.tiers import plan_parts

__all__ = [
    "Expected",
    "LogTotals",
    "SegmentTable",
    "decode",
    "dense_logs",
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
