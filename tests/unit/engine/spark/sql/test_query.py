"""A mistake in a user's query that shows while it runs is the user's to mend, and no failure of Spark's."""

import base64
from collections.abc import Callable
from threading import Event
from typing import cast
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from logkeep.engine.outcomes import encode, own_failure
from logkeep.engine.spark.failures import job_error, mistake_in, spark_text
from logkeep.engine.spark.session import EngineSession
from logkeep.engine.spark.sql.query import Query, each_read_once, run_query
from logkeep.engine.spark.sql.tables import UnitTable
from logkeep.errors import Damaged, UsageError

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
    view = UnitTable("session string", lambda _: iter(()), [])
    query = Query("SELECT CAST(session AS BIGINT) FROM v", {"v": view}, 10)
    run_query(cast("EngineSession", session), query, "group")


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


class _JavaError(Py4JJavaError):  # type: ignore[misc]  # py4j has no types
    """What a call to a JVM raises: its text is asked from the JVM, each time."""

    def __init__(self, answer: Callable[[], str]) -> None:
        super().__init__("An error occurred while calling o211.getResult.\n", MagicMock(_target_id="o212"))
        self._answer = answer

    def __str__(self) -> str:
        return self._answer()


def _gone() -> str:
    raise Py4JNetworkError("Error while sending or receiving")


@pytest.mark.parametrize("answer", [_gone, Event().wait])
def test_an_error_is_told_though_the_jvm_behind_it_is_gone_or_hangs(answer: Callable[[], str]) -> None:
    error = _JavaError(answer)
    assert spark_text(error, 0.05) == "An error occurred while calling o211.getResult."
    assert job_error(_JavaError(_gone), "the.log").what == "An error occurred while calling o211.getResult."


def test_a_query_whose_jvm_is_gone_fails_as_what_it_was() -> None:
    with pytest.raises(_JavaError):
        _asked(_JavaError(_gone))


def test_a_jvm_that_answers_is_heard() -> None:
    with pytest.raises(UsageError, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        _asked(_JavaError(lambda: IN_A_JAVA_TRACE))
    assert spark_text(_JavaError(lambda: IN_A_JAVA_TRACE)).startswith("org.apache.spark.SparkException: Exception")


class _Captured(PySparkException):
    """As pyspark's own: the message came along, and `str` wants the JVM all the same."""

    _desc = CAST

    def __str__(self) -> str:
        raise AssertionError("SparkContext._jvm is None")


def test_what_pyspark_took_along_is_not_asked_for_again() -> None:
    with pytest.raises(UsageError, match="CAST_INVALID_INPUT"):
        _asked(_Captured(CAST))


@pytest.mark.parametrize("kind", [PySparkException, lambda text: _JavaError(lambda: text)])
def test_damage_that_a_task_meets_comes_back_as_damage(kind: Callable[[str], Exception]) -> None:
    """Out of a subquery it comes inside an error of Java's."""
    outcome = base64.b64encode(encode(own_failure(Damaged("the record behind zxid 0x4 is damaged")))).decode()
    text = f"Exception thrown in awaitResult: \nCaused by: RuntimeError: logkeep-outcome:{outcome}\n\tat org.apache"
    with pytest.raises(Damaged, match="the record behind zxid 0x4 is damaged"):
        _asked(kind(text))


@pytest.mark.parametrize(
    ("sources", "analyzed", "optimized", "once"),
    [
        (1, "RelationV2[a#1] logkeep", "RelationV2[a#1] logkeep", True),
        (1, "Union RelationV2[a#1] RelationV2[a#2]", "RelationV2[a#1] RelationV2[a#2]", False),
        (2, "Join RelationV2[a#1] RelationV2[b#2]", "RelationV2[a#1]", True),
        (1, "CTERelationDef RelationV2[a#1] CTERelationRef", "RelationV2[a#1]", True),
        (2, "CTERelationDef RelationV2[a#1] CTERelationRef CTERelationRef RelationV2[b#1]", "RelationV2[a#1]", False),
        (1, "another spelling", "another spelling", False),
    ],
)
def test_filters_are_pushed_down_where_each_source_is_read_once(
    sources: int, analyzed: str, optimized: str, once: bool
) -> None:
    assert each_read_once(sources, analyzed, optimized) is once
