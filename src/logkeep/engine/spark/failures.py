"""Errors of Spark, py4j and the JVM as one line of text."""

import re
from contextlib import suppress
from functools import partial

from logkeep.engine.stop import Background
from logkeep.errors import TaskFailed

_LOST_TASK = re.compile(r"most recent failure: Lost task [^:]*: (?:[\w.$]+: )?(.*)")
_JAVA_NAME = re.compile(r"^(?:\w+\.)+(\w+): ")
_MISTAKE = re.compile(r"(\[[A-Z][A-Z0-9_.]*\] [^\n]*?) SQLSTATE: (?:0A|21|22|42|P0)\w{3}\b")
"""SQLSTATE classes for errors of the query or its values; all others are errors of Spark or its machines."""

_ANSWER_S = 5.0
"""How long the JVM may take to return its error text: one that was killed or hangs returns nothing."""


def one_line(text: str) -> str:
    """The cause inside Spark's message: the last lost task's first line, or the last line of a Python traceback."""
    if match := _LOST_TASK.search(text):
        text = match[1]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return "no message"
    traceback = [line for line in lines if re.match(r"^[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt)\b", line)]
    return _JAVA_NAME.sub(r"\1: ", traceback[-1] if traceback else lines[0])[:500].rstrip(":")


def mistake_in(text: str) -> str | None:
    """What is wrong with a query that failed while it ran; None if the query is not the cause."""
    match = _MISTAKE.search(text)
    return match[1][:500] if match else None


def job_error(error: BaseException, log: str) -> TaskFailed:
    """The error of a unit whose worker could not report it: the worker was killed, or the JVM is gone."""
    return TaskFailed(one_line(spark_text(error)), remedy=f"{TaskFailed.remedy}; log: {log}")


def spark_text(error: BaseException, answer_s: float = _ANSWER_S) -> str:
    """Spark's message without py4j's first line, also when the JVM has died since or hangs."""
    lines = whole_text(error, answer_s).splitlines() or [type(error).__name__]
    if not hasattr(error, "java_exception"):
        return "\n".join(lines)
    # The first line of py4j's text names the call that failed; the Java exception follows.
    return "\n".join(lines[1:]).removeprefix(": ") or lines[0]


def whole_text(error: BaseException, answer_s: float = _ANSWER_S) -> str:
    """`str(error)`, for which py4j and pyspark call the JVM. Without an answer: the text in the exception itself.

    pyspark copies the message when it converts a Java exception; py4j has only the name of the call.
    """
    message = getattr(error, "_desc", None)
    if isinstance(message, str) and message:
        return message
    if not hasattr(error, "java_exception"):
        return str(error)
    text = Background(partial(str, error))
    with suppress(Exception):  # a lost connection: the first error is the one to report
        if text.wait(answer_s):
            return text.result()
    return str(getattr(error, "errmsg", ""))


def start_failure(error: BaseException, log_lines: list[str]) -> str:
    """Why Spark did not start: the JVM's exception, or the first error in the log of a JVM that never started."""
    if hasattr(error, "java_exception"):
        return one_line(spark_text(error))
    complaints = [line.strip() for line in log_lines if "Exception" in line or "rror" in line]
    first = re.sub(r'^Exception in thread "[^"]*" ', "", complaints[0] if complaints else one_line(whole_text(error)))
    return _JAVA_NAME.sub(r"\1: ", first)[:300]
