"""The Spark side of `spark.read.format(…)`: a data source in Python over any `TableFormat`.

A session with `spark.sql.python.filterPushdown.enabled` passes filters to the format; a plain one does not, and works
as well. Spark applies all filters to all rows again, so a format can only leave out what they would remove.
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

from logkeep.errors import LogkeepError
from logkeep.model.table_format import ColumnFilter, Comparison, TableFormat

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

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

    @classmethod
    def _format(cls) -> TableFormat:
        return cls.table_format()

    def schema(self) -> str:
        return self._format().schema(self.options)

    def reader(self, schema: "StructType") -> "TableReader":
        return TableReader(self._format(), self.options)


class TablePartition(InputPartition):
    """One unit."""


class TableReader(DataSourceReader):
    def __init__(self, table_format: TableFormat, options: Mapping[str, str]) -> None:
        self._format, self._options = table_format, dict(options)
        self.filters: tuple[ColumnFilter, ...] = ()

    @property
    def pushFilters(self) -> "PushFilters":  # noqa: N802 - Spark's name; see PushFilters
        return PushFilters(self)

    def partitions(self) -> list[InputPartition]:
        units = with_remedy(lambda: self._format.units(self._options, self.filters))
        return [TablePartition(unit) for unit in units]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """Spark passes a partition of its own where there is none."""
        if isinstance(partition, TablePartition):
            batches = self._format.rows(partition.value)
            while (batch := with_remedy(lambda: next(batches, None))) is not None:
                yield batch


class PushFilters:
    """The reader's method that gets filters.

    Spark fails a query whose reader has such a method while the session's setting is off, and a reader cannot see the
    setting. Spark compares `__func__`: with that of the base class the method is not used in a plain session, and is
    called in one that passes filters.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        """All filters are returned: Spark applies them to every row."""
        self._reader.filters = tuple(found for each in filters if (found := column_filter(each)) is not None)
        return filters


def column_filter(pushed: Filter) -> ColumnFilter | None:
    """None for what no format can use."""
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
