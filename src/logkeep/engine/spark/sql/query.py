"""One query in SQL over tables. Each is made when the query names it: a backup may have thousands of topics.

Only queries run. A statement that would write is refused: the SQL must also be valid inside another query.
"""

import base64
import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from logkeep import errors
from logkeep.engine.outcomes import UnitFailed, decode, to_error
from logkeep.engine.spark.failures import mistake_in, one_line, spark_text, whole_text
from logkeep.engine.spark.session import EngineSession
from logkeep.engine.spark.sql.table_names import TableMissing, missing_table, unknown_table
from logkeep.engine.spark.sql.tables import QueryTable, SourceTable, create_view, drop_views
from logkeep.errors import LogkeepError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_OURS = re.compile(r"logkeep-outcome:([A-Za-z0-9+/=]+)")
"""One of our errors, encoded in the text of Spark's error."""
_SHOWN = re.compile(r"^(?:logkeep\.errors\.)(\w+): (.*)\n(?:remedy: (.*))?", re.M)
"""One of our errors as a data source raises it: as text for people."""
_NOISY = "SQLQueryContextLogger"
"""pyspark logs each wrong query here, with a hundred lines of Java, to standard error."""
_SCAN = "RelationV2["
"""Begins the line of a data source in a plan."""
_PLANS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.python.filterPushdown.enabled": "true",
}
"""The session is configured for tasks; a query with a small result needs few partitions."""


class ResultSink(Protocol):
    """Gets all rows of a result, in order."""

    def begin(self, schema: "pa.Schema") -> None: ...

    def batch(self, rows: "pa.RecordBatch") -> bool:
        """Take some rows; returns whether more rows are wanted."""

    def end(self) -> None: ...


@dataclass(frozen=True)
class Query:
    sql: str
    tables: Mapping[str, QueryTable]
    """The tables, by the names that they have in the query."""
    most: int | None
    """Maximum number of rows of the result; None: all, for a sink."""
    sink: ResultSink | None = None
    """Gets the rows as they arrive; the result then has no rows."""


@dataclass(frozen=True)
class QueryResult:
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool
    """Whether the query has more rows than that."""


def run_query(session: EngineSession, query: Query, group: str, given: Collection[str] = ()) -> QueryResult:
    """Run a query in a session. `given`: settings that the user chose, which are not changed."""
    logging.getLogger(_NOISY).disabled = True
    spark = session.spark
    for name, value in _PLANS.items():
        if name not in given:
            spark.conf.set(name, value)
    spark.sparkContext.setJobGroup(group, "query", True)
    created: list[str] = []
    try:
        return _answered(query, lambda: _answer(session, query, created))
    finally:
        drop_views(session, created)


def _answered(query: Query, step: Callable[[], QueryResult]) -> QueryResult:
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import AnalysisException, PySparkException  # noqa: PLC0415 - slow to import

    try:
        return step()
    except (PySparkException, Py4JJavaError) as error:
        # A task's error arrives as a Python error or, from a subquery, inside a Java one. A value that cannot be cast
        # fails only while the query runs.
        text = whole_text(error)
        if (own := _own_error(text)) is not None:
            raise own from error
        if isinstance(error, AnalysisException):
            raise _usage_error(query, one_line(spark_text(error))) from error
        if (what := mistake_in(text)) is None:
            raise
        raise _usage_error(query, what) from error


def _answer(session: EngineSession, query: Query, created: list[str]) -> QueryResult:
    sql = query.sql.strip().removesuffix(";")
    _resolve(session, query, sql, created)
    _push_filters(session, query, sql, created)
    frame = session.spark.sql(sql)
    if query.sink is not None:
        return _stream(frame if query.most is None else frame.limit(query.most), query.sink)
    most = query.most or 0
    from logkeep.engine.spark.sql.result_files import python_values  # noqa: PLC0415 - Arrow, slow to load

    table = frame.limit(most + 1).toArrow()
    rows = list(zip(*map(python_values, table.columns), strict=True))
    return QueryResult(tuple(table.column_names), tuple(rows[:most]), len(rows) > most)


def _resolve(session: EngineSession, query: Query, sql: str, created: list[str]) -> None:
    """Create the tables that the query names, one after the other, until Spark misses none."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415

    while True:
        try:
            session.spark.sql(f"SELECT * FROM (\n{sql}\n)")  # noqa: S608 - the user's own query, on the user's own machine
        except AnalysisException as error:
            missing = missing_table(error.getCondition() or "", error.getMessageParameters() or {}, spark_text(error))
            if missing is None:
                raise
            name = _table_name(query, missing)
            if name in created:
                raise
            created.append(name)
            create_view(session, name, query.tables[name])
        else:
            return


def _push_filters(session: EngineSession, query: Query, sql: str, created: list[str]) -> None:
    """Let filters reach the sources, if each is read once: see `data_source`."""
    sources = {name: table for name in created if isinstance(table := query.tables[name], SourceTable)}
    if not sources:
        return
    execution: Any = session.spark.sql(sql)._jdf.queryExecution()
    if each_read_once(len(sources), execution.analyzed().toString(), execution.optimizedPlan().toString()):
        for name, table in sources.items():
            create_view(session, name, table.with_pushdown())


def each_read_once(sources: int, analyzed: str, optimized: str) -> bool:
    """Whether a query reads each of its sources once, by its plans. Pure.

    Each is in the first plan at least once. A common table expression is there once, and copied where it is used.
    """
    copied = analyzed.count("CTERelationRef") > analyzed.count("CTERelationDef")
    return analyzed.count(_SCAN) == sources and optimized.count(_SCAN) <= sources and not copied


def _table_name(query: Query, missing: TableMissing) -> str:
    found = missing.among(query.tables)
    if found is None:
        raise unknown_table(missing, query.tables)
    return found


def _stream(frame: "DataFrame", sink: ResultSink) -> QueryResult:
    """Rows travel as Arrow messages, one of some thousand rows after the other: the driver holds a few at a time."""
    import pyarrow as pa  # noqa: PLC0415
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    sink.begin(to_arrow_schema(frame.schema, timezone="UTC"))
    for row in frame.mapInArrow(as_messages, "message binary").toLocalIterator(prefetchPartitions=True):
        with pa.ipc.open_stream(row[0]) as reader:
            if not all(sink.batch(batch) for batch in reader):
                break
    sink.end()
    return QueryResult(tuple(frame.columns), (), more=False)


def as_messages(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    """Each batch as one row with its bytes."""
    import pyarrow as pa  # noqa: PLC0415

    for batch in batches:
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([out.getvalue().to_pybytes()], pa.binary())], names=["message"])


def _usage_error(query: Query, what: str) -> UsageError:
    named = [f"`{name}`, which has: {table.columns}" for name, table in query.tables.items()]
    over = named[0] if len(named) == 1 else "the tables of the backup; `logkeep_topics` lists its topics"
    return UsageError(f"Spark cannot answer the query: {what}", remedy=f"write one SELECT over {over}")


def _own_error(text: str) -> Exception | None:
    """The error that a task or a data source raised, if it is one of ours."""
    if match := _OURS.search(text):
        failed = decode(base64.b64decode(match[1]))
        return to_error(failed) if isinstance(failed, UnitFailed) else None
    shown = _SHOWN.search(text)
    kind = getattr(errors, shown[1], None) if shown else None
    if shown is None or not (isinstance(kind, type) and issubclass(kind, LogkeepError)):
        return None
    return kind(shown[2], remedy=shown[3])
