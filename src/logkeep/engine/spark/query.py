"""One question in SQL over rows that tasks read: a temporary view, one Spark task per unit.

Only a query is answered: what would write is refused, because it must also make sense as a part of another query.
"""

import base64
import logging
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from logkeep.engine.outcomes import UnitFailed, decode, encode, foreseen, to_error
from logkeep.engine.spark.failures import mistake_in, one_line, spark_text, whole_text
from logkeep.engine.spark.session import EngineSession
from logkeep.errors import LogkeepError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_OURS = re.compile(r"logkeep-outcome:([A-Za-z0-9+/=]+)")
"""How an error of a task travels in the text of Spark's."""
_NOISY = "SQLQueryContextLogger"
"""Where pyspark tells of each query that is wrong, with a hundred lines of Java, on standard error."""
_PLANS = {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "8"}
"""A session is made for tasks; a query over small answers wants few partitions."""


@dataclass(frozen=True)
class Query:
    sql: str
    view: str
    """The name under which the rows are known in the query."""
    columns: str
    """Their names and types, as Spark writes them: `zxid bigint, path string`."""
    rows: Callable[[Any], Iterator["pa.RecordBatch"]]
    """A top-level function, as tasks are: all rows of one unit."""
    units: Sequence[Any]
    most: int
    """So many rows of the answer are wanted at most."""


@dataclass(frozen=True)
class QueryResult:
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool
    """Whether there are more rows than were wanted."""


def answer(session: EngineSession, asked: Query, group: str, given: Collection[str] = ()) -> QueryResult:
    """`given`: settings that are the user's own."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import AnalysisException, PySparkException  # noqa: PLC0415 - slow to import

    logging.getLogger(_NOISY).disabled = True
    spark = session.spark
    for name, value in _PLANS.items():
        if name not in given:
            spark.conf.set(name, value)
    spark.sparkContext.setJobGroup(group, asked.view, True)
    _view(session, asked)
    sql = asked.sql.strip().removesuffix(";")
    try:
        spark.sql(f"SELECT * FROM (\n{sql}\n)")  # noqa: S608 - the user's own query, on the user's own machine
        table = spark.sql(sql).limit(asked.most + 1).toArrow()
    except AnalysisException as error:
        raise _refused(asked, one_line(spark_text(error))) from error
    except (PySparkException, Py4JJavaError) as error:
        # An error of a task comes as Python's, or, out of a query within the query, inside one of Java's. A value that
        # cannot be cast is met while the query runs.
        text = whole_text(error)
        if (ours := _of_a_task(text)) is not None:
            raise ours from error
        if (what := mistake_in(text)) is None:
            raise
        raise _refused(asked, what) from error
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return QueryResult(tuple(table.column_names), tuple(rows[: asked.most]), len(rows) > asked.most)


def _refused(asked: Query, what: str) -> UsageError:
    remedy = f"write one SELECT over `{asked.view}`, which has: {asked.columns}"
    return UsageError(f"Spark cannot answer the query: {what}", remedy=remedy)


def _view(session: EngineSession, asked: Query) -> None:
    units, rows = session.spark.sparkContext.broadcast(list(asked.units)), asked.rows

    def partition(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        for batch in batches:
            for unit in batch.column(0).to_pylist():
                yield from _rows(rows, units.value[unit])

    count = len(asked.units)
    frame = session.spark.range(0, count, 1, max(count, 1)).mapInArrow(partition, asked.columns)
    frame.createOrReplaceTempView(asked.view)


def _rows(rows: Callable[[Any], Iterator["pa.RecordBatch"]], unit: Any) -> Iterator["pa.RecordBatch"]:
    try:
        yield from rows(unit)
    except LogkeepError as error:
        outcome = base64.b64encode(encode(foreseen(error))).decode()
        raise RuntimeError(f"logkeep-outcome:{outcome}") from None


def _of_a_task(text: str) -> Exception | None:
    """An error of ours that a task raised, as it was."""
    match = _OURS.search(text)
    failed = decode(base64.b64decode(match[1])) if match else None
    return to_error(failed) if isinstance(failed, UnitFailed) else None
