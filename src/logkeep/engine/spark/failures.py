"""Turns what Spark raises for a failed job into one line."""

import re
from contextlib import suppress
from functools import partial

from logkeep.engine.background import Background
from logkeep.errors import TaskFailed

_LOST_TASK = re.compile(r"most recent failure: Lost task [^:]*: (?:[\w.$]+: )?(.*)")
_JAVA_NAME = re.compile(r"^(?:\w+\.)+(\w+): ")
_MISTAKE = re.compile(r"(\[[A-Z][A-Z0-9_.]*\] [^\n]*?) SQLSTATE: (?:0A|21|22|42|P0)\w{3}\b")
"""The classes of SQL's states that tell of the query or of the values it meets; others tell of Spark and machines."""

_ANSWER_S = 5.0
"""How long a JVM may take to say what it threw: one that was killed, or collects garbage for ever, says nothing."""


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
    """What is wrong with a query that failed while it ran; None where the query is not what failed."""
    match = _MISTAKE.search(text)
    return match[1][:500] if match else None


def job_error(error: BaseException, log: str) -> TaskFailed:
    """A unit failed in a way its own worker could not report: it was killed, or the JVM is gone."""
    return TaskFailed(one_line(spark_text(error)), remedy=f"{TaskFailed.remedy}; log: {log}")


def spark_text(error: BaseException, answer_s: float = _ANSWER_S) -> str:
    """What Spark said, without py4j's frame: also where the JVM that said it has died since, or hangs."""
    lines = whole_text(error, answer_s).splitlines() or [type(error).__name__]
    if not hasattr(error, "java_exception"):
        return "\n".join(lines)
    # The first line of py4j's text tells which call failed; the Java exception follows.
    return "\n".join(lines[1:]).removeprefix(": ") or lines[0]


def whole_text(error: BaseException, answer_s: float = _ANSWER_S) -> str:
    """`str(error)`, which py4j and pyspark ask the JVM for: what the exception itself has, where no answer comes.

    pyspark takes the message along when it makes an exception of Java's; py4j has only the name of the call.
    """
    told = getattr(error, "_desc", None)
    if isinstance(told, str) and told:
        return told
    if not hasattr(error, "java_exception"):
        return str(error)
    asked = Background(partial(str, error))
    with suppress(Exception):  # whatever a lost connection raises: the error to tell is the one that came first
        if asked.wait(answer_s):
            return asked.result()
    return str(getattr(error, "errmsg", ""))


def start_failure(error: BaseException, log_lines: list[str]) -> str:
    """Why there is no session: what the JVM threw, or the first complaint in the log of a JVM that never came up."""
    if hasattr(error, "java_exception"):
        return one_line(spark_text(error))
    complaints = [line.strip() for line in log_lines if "Exception" in line or "rror" in line]
    first = re.sub(r'^Exception in thread "[^"]*" ', "", complaints[0] if complaints else one_line(whole_text(error)))
    return _JAVA_NAME.sub(r"\1: ", first)[:300]
