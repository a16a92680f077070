"""One query in SQL over rows that tasks read: a temporary view, one Spark task per unit.

Only queries run. A statement that would write is refused: the SQL must also be valid inside another query.
"""

import base64
import logging
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from logkeep.engine.outcomes import UnitFailed, decode, encode, own_failure, to_error
from logkeep.engine.spark.failures import mistake_in, one_line, spark_text, whole_text
from logkeep.engine.spark.session import EngineSession
from logkeep.errors import LogkeepError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_OURS = re.compile(r"logkeep-outcome:([A-Za-z0-9+/=]+)")
"""One of our errors, encoded in the text of Spark's error."""
_NOISY = "SQLQueryContextLogger"
"""pyspark logs each wrong query here, with a hundred lines of Java, to standard error."""
_PLANS = {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "8"}
"""The session is configured for tasks; a query with a small result needs few partitions."""


@dataclass(frozen=True)
class Query:
    sql: str
    view: str
    """The name of the rows in the query."""
    columns: str
    """Their names and types, as Spark writes them: `zxid bigint, path string`."""
    rows: Callable[[Any], Iterator["pa.RecordBatch"]]
    """A top-level function, as tasks are: all rows of one unit."""
    units: Sequence[Any]
    most: int
    """Maximum number of rows of the result."""


@dataclass(frozen=True)
class QueryResult:
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool
    """Whether the query has more rows than that."""


def run_query(session: EngineSession, query: Query, group: str, given: Collection[str] = ()) -> QueryResult:
    """`given`: settings that the user chose; they are not changed."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import AnalysisException, PySparkException  # noqa: PLC0415 - slow to import

    logging.getLogger(_NOISY).disabled = True
    spark = session.spark
    for name, value in _PLANS.items():
        if name not in given:
            spark.conf.set(name, value)
    spark.sparkContext.setJobGroup(group, query.view, True)
    _create_view(session, query)
    sql = query.sql.strip().removesuffix(";")
    try:
        spark.sql(f"SELECT * FROM (\n{sql}\n)")  # noqa: S608 - the user's own query, on the user's own machine
        table = spark.sql(sql).limit(query.most + 1).toArrow()
    except AnalysisException as error:
        raise _usage_error(query, one_line(spark_text(error))) from error
    except (PySparkException, Py4JJavaError) as error:
        # A task's error arrives as a Python error or, from a subquery, inside a Java one. A value that cannot be cast
        # fails only while the query runs.
        text = whole_text(error)
        if (own := _task_error(text)) is not None:
            raise own from error
        if (what := mistake_in(text)) is None:
            raise
        raise _usage_error(query, what) from error
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return QueryResult(tuple(table.column_names), tuple(rows[: query.most]), len(rows) > query.most)


def _usage_error(query: Query, what: str) -> UsageError:
    remedy = f"write one SELECT over `{query.view}`, which has: {query.columns}"
    return UsageError(f"Spark cannot answer the query: {what}", remedy=remedy)


def _create_view(session: EngineSession, query: Query) -> None:
    units, rows = session.spark.sparkContext.broadcast(list(query.units)), query.rows

    def partition(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        for batch in batches:
            for unit in batch.column(0).to_pylist():
                yield from _rows(rows, units.value[unit])

    count = len(query.units)
    frame = session.spark.range(0, count, 1, max(count, 1)).mapInArrow(partition, query.columns)
    frame.createOrReplaceTempView(query.view)


def _rows(rows: Callable[[Any], Iterator["pa.RecordBatch"]], unit: Any) -> Iterator["pa.RecordBatch"]:
    try:
        yield from rows(unit)
    except LogkeepError as error:
        outcome = base64.b64encode(encode(own_failure(error))).decode()
        raise RuntimeError(f"logkeep-outcome:{outcome}") from None


def _task_error(text: str) -> Exception | None:
    """The error that a task raised, if it is one of ours."""
    match = _OURS.search(text)
    failed = decode(base64.b64decode(match[1])) if match else None
    return to_error(failed) if isinstance(failed, UnitFailed) else None
