"""What a table is, for the engine that offers it to Spark: its columns, its units, the rows of each.

The engine knows no kind of source, and a kind knows no engine: both know this protocol.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Comparison = Literal["=", "in", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class ColumnFilter:
    """A condition that every wanted row fulfils."""

    column: str
    comparison: Comparison
    value: Any
    """With `in`, a tuple of values. Times are aware datetimes."""


class TableFormat(Protocol):
    """A value that crosses process borders: a query is planned in one process and read in others."""

    def schema(self, options: Mapping[str, str]) -> str:
        """Names and types of the columns, as Spark writes them. Raises UsageError for wrong options."""

    def kept_options(self, options: Mapping[str, str]) -> dict[str, str]:
        """The options without those that must not be stored: values for other programs, which may be secrets."""

    def units(self, options: Mapping[str, str], filters: Sequence[ColumnFilter]) -> list[Any]:
        """What tasks read, one unit each. Filters may leave out rows that cannot fulfil them, and need not."""

    def rows(self, unit: Any) -> Iterator[Any]:
        """Arrow batches of exactly the types of the schema."""
