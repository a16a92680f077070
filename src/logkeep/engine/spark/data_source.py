"""The Spark side of `spark.read.format(…)`: a data source in Python over any `TableFormat`.

With the option `pushdown`, filters reach the format; Spark applies all of them to all rows again, so a format can only
leave out what they would remove. It is off by default. Spark 4.3 keeps one plan for each loaded frame, that of the
filters that came last: where one frame is read twice with different filters, or with filters and then without, both
reads get the same plan, and rows are missing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from logkeep.engine.spark.imported_modules import freeze_imported_modules
from logkeep.errors import LogkeepError
from logkeep.model.table_format import ColumnFilter, Comparison, TableFormat

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

PUSHDOWN = "pushdown"
REMEDY = "remedy: "
"""Begins the line after an error of ours, in Spark's message."""
_COMPARISONS: Mapping[type, Comparison] = {
    EqualTo: "=",
    EqualNullSafe: "=",
    In: "in",
    LessThan: "<",
    LessThanOrEqual: "<=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
}


class TableSource(DataSource):
    """A subclass names the format. Its options are checked when the query is analysed."""

    table_format: ClassVar[Callable[[], TableFormat]]

    def __init__(self, options: dict[str, str]) -> None:
        with_remedy(lambda: self._format().schema(options))
        super().__init__(self._format().kept_options(options))
        freeze_imported_modules()

    @classmethod
    def _format(cls) -> TableFormat:
        return cls.table_format()

    def schema(self) -> str:
        return self._format().schema(self.options)

    def reader(self, schema: "StructType") -> "TableReader":
        """Spark fails a query whose reader takes filters, where the session's setting is off, which is its default. A
        reader cannot see the setting."""
        reader = FilteredTableReader if self.options.get(PUSHDOWN) == "true" else TableReader
        return reader(self._format(), self.options)


class TablePartition(InputPartition):
    """One unit of a table, as Spark's partition."""


class TableReader(DataSourceReader):
    def __init__(self, table_format: TableFormat, options: Mapping[str, str]) -> None:
        self._format, self._options = table_format, dict(options)
        self.filters: tuple[ColumnFilter, ...] = ()

    def partitions(self) -> list[InputPartition]:
        freeze_imported_modules()
        units = with_remedy(lambda: self._format.units(self._options, self.filters))
        return [TablePartition(unit) for unit in units]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """Spark passes a partition of its own where there is none."""
        freeze_imported_modules()
        if isinstance(partition, TablePartition):
            batches = self._format.rows(partition.value)
            while (batch := with_remedy(lambda: next(batches, None))) is not None:
                yield batch


class FilteredTableReader(TableReader):
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """All filters are returned: Spark applies them to every row."""
        self.filters = tuple(found for each in filters if (found := column_filter(each)) is not None)
        return filters


def column_filter(pushed: Filter) -> ColumnFilter | None:
    """A filter of Spark as a format gets it; None for a filter that no format can use."""
    comparison = _COMPARISONS.get(type(pushed))
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    value = getattr(pushed, "value", None)
    if comparison is None or len(path) != 1 or value is None:
        return None
    return ColumnFilter(path[0], comparison, tuple(value) if comparison == "in" else value)


def with_remedy(step: Callable[[], Any]) -> Any:
    """An error's remedy is a line of its message: Spark shows a message as it is, and nothing else."""
    try:
        return step()
    except LogkeepError as error:
        error.add_note(f"{REMEDY}{error.remedy}")
        raise
