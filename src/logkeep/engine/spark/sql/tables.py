"""The tables of a query: rows that tasks read, a data source, or rows that are there already."""

import base64
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from logkeep.engine.outcomes import encode, own_failure
from logkeep.engine.spark.session import EngineSession
from logkeep.errors import EngineUnavailable, LogkeepError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class UnitTable:
    """One Spark task per unit."""

    columns: str
    """Names and types, as Spark writes them: `zxid bigint, path string`."""
    rows: Callable[[Any], Iterator["pa.RecordBatch"]]
    """A top-level function, as tasks are: all rows of one unit."""
    units: Sequence[Any]

    def frame(self, session: EngineSession) -> "DataFrame":
        units, rows = session.spark.sparkContext.broadcast(list(self.units)), self.rows

        def partition(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
            for batch in batches:
                for unit in batch.column(0).to_pylist():
                    yield from _rows(rows, units.value[unit])

        count = len(self.units)
        return session.spark.range(0, count, 1, max(count, 1)).mapInArrow(partition, self.columns)


@dataclass(frozen=True)
class SourceTable:
    """A data source of Spark."""

    columns: str
    format: str
    options: Mapping[str, str]

    def with_pushdown(self) -> "SourceTable":
        return replace(self, options={**self.options, "pushdown": "true"})

    def frame(self, session: EngineSession) -> "DataFrame":
        from pyspark.errors import AnalysisException  # noqa: PLC0415

        try:
            return session.spark.read.format(self.format).options(**self.options).load()
        except AnalysisException as error:
            if error.getCondition() != "DATA_SOURCE_NOT_FOUND":
                raise
            raise EngineUnavailable(
                f"Spark's Python does not have the data source {self.format}",
                subject=sys.executable,
                remedy="install logkeep for this Python, and do not set PYSPARK_DRIVER_PYTHON to another one",
            ) from error


@dataclass(frozen=True)
class ReadyTable:
    """Rows that the driver has or reads when they are asked for."""

    columns: str
    rows: Callable[[], "pa.Table"]

    def frame(self, session: EngineSession) -> "DataFrame":
        return session.spark.createDataFrame(self.rows())


QueryTable = UnitTable | SourceTable | ReadyTable


def create_view(session: EngineSession, name: str, table: QueryTable) -> None:
    table.frame(session).createOrReplaceTempView(quoted(name))


def drop_views(session: EngineSession, names: Iterable[str]) -> None:
    for name in names:
        session.spark.catalog.dropTempView(name)  # takes a name as it is, where the creation takes SQL


def quoted(name: str) -> str:
    """A name of any characters, as SQL writes it."""
    return "`" + name.replace("`", "``") + "`"


def _rows(rows: Callable[[Any], Iterator["pa.RecordBatch"]], unit: Any) -> Iterator["pa.RecordBatch"]:
    try:
        yield from rows(unit)
    except LogkeepError as error:
        outcome = base64.b64encode(encode(own_failure(error))).decode()
        raise RuntimeError(f"logkeep-outcome:{outcome}") from None
