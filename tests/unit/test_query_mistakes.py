"""A mistake in a user's query that shows while it runs is the user's to mend, and no failure of Spark's."""

from typing import cast
from unittest.mock import MagicMock

import pytest
from pyspark.errors import PySparkException

from logkeep.errors import UsageError
from logkeep.spark.failures import mistake_in
from logkeep.spark.query import Query, answer
from logkeep.spark.session import Session

CAST = (
    '[CAST_INVALID_INPUT] The value \'0x3\' of the type "STRING" cannot be cast to "BIGINT" because it is malformed. '
    "SQLSTATE: 22018\n== SQL (line 1, position 8) =="
)
IN_A_JAVA_TRACE = (
    "An error occurred while calling o211.getResult.\n"
    ": org.apache.spark.SparkException: Exception thrown in awaitResult: \n"
    "\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)\n"
    "Caused by: org.apache.spark.SparkRuntimeException: [SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row returned. "
    "SQLSTATE: 21000\n"
)


def _asked(error: Exception) -> None:
    session = MagicMock()
    session.spark.sql.side_effect = error
    query = Query("SELECT CAST(session AS BIGINT) FROM v", "v", "session string", lambda _: iter(()), [], 10)
    answer(cast("Session", session), query, "group")


def test_a_value_that_cannot_be_cast_is_a_mistake_of_the_query() -> None:
    with pytest.raises(UsageError, match=r"Spark cannot answer the query: \[CAST_INVALID_INPUT\]") as refused:
        _asked(PySparkException(CAST))
    assert refused.value.exit_code == 40
    assert "session string" in refused.value.remedy


@pytest.mark.parametrize(
    "text",
    ["Job aborted due to stage failure: ExecutorLostFailure", "[INTERNAL_ERROR] The plan is broken. SQLSTATE: XX000"],
)
def test_what_fails_in_spark_itself_stays_a_failure(text: str) -> None:
    with pytest.raises(PySparkException, match=r"stage failure|INTERNAL_ERROR"):
        _asked(PySparkException(text))


def test_the_mistake_is_found_in_what_java_tells() -> None:
    assert mistake_in(IN_A_JAVA_TRACE) == "[SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row returned."
    assert mistake_in("no message") is None
