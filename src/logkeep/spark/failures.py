"""Turns what Spark raises for a failed job into one line."""

import re

from logkeep.errors import TaskFailed

_LOST_TASK = re.compile(r"most recent failure: Lost task [^:]*: (?:[\w.$]*\.)?(.*)")
_JAVA_NAME = re.compile(r"^(?:\w+\.)+(\w+): ")


def one_line(text: str) -> str:
    """The cause inside Spark's message: the last lost task's first line, or the last line of a Python traceback."""
    if match := _LOST_TASK.search(text):
        text = match[1]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return "no message"
    traceback = [line for line in lines if re.match(r"^[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt)\b", line)]
    return _JAVA_NAME.sub(r"\1: ", traceback[-1] if traceback else lines[0])[:500]


def job_error(error: BaseException, log: str) -> TaskFailed:
    """A unit failed in a way its own worker could not report: it was killed, or the JVM is gone."""
    java = getattr(error, "java_exception", None)
    # Asking the JVM for the message could fail again when the JVM is what died: str() holds it as well.
    text = str(error) if java is None else _java_text(error)
    return TaskFailed(one_line(text), remedy=f"{TaskFailed.remedy}; log: {log}")


def _java_text(error: BaseException) -> str:
    lines = str(error).splitlines()
    # The first line of py4j's text tells which call failed; the Java exception follows.
    return "\n".join(lines[1:]).removeprefix(": ") or lines[0]
