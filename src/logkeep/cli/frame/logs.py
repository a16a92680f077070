"""Logs: where they go, and how a record becomes a line of text or JSON without secrets.

Every module logs with `logging.getLogger(__name__).info("retrying", extra={"attempt": 2})`. Redaction is done by the
root handler's formatter: events, extra values and exception texts, of Logkeep and of libraries. In lines of text the
same are escaped, so that none of them begins a line or controls a terminal; JSON escapes them anyway.
"""

import json
import logging
import os
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from logkeep.cli.terminal.console import Console, one_line, text_to_redact
from logkeep.cli.terminal.escaping import shown
from logkeep.errors import ConfigError
from logkeep.model.redaction import redact, redact_values

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def choose_level(level: str | None, *, quiet: bool, verbose: int, to_file: bool) -> str:
    """-q and -v are given for this call, so they override a configured level."""
    if quiet:
        return "error"
    if verbose:
        return "info" if verbose == 1 else "debug"
    return level or ("info" if to_file else "warning")


def set_up_logs(
    console: Console, *, level: str, form: str, file: Path | None, to_stdout: bool = False
) -> logging.Handler:
    """Send all logs of this process to the file, else to stderr (or stdout, where a program offers that).

    Libraries log warnings and errors only, whatever the level: their debug output may contain keys.
    Raises ConfigError when the file cannot be opened.
    """
    handler = _FileHandler(file) if file else _ConsoleHandler(console, to_stdout=to_stdout)
    handler.setFormatter(_RedactingFormatter(form))
    handler.setLevel(_LEVELS[level])
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(logging.WARNING, _LEVELS[level]))
    logging.getLogger("logkeep").setLevel(_LEVELS[level])
    logging.captureWarnings(True)
    return handler


def take_down_logs(handler: logging.Handler) -> None:
    root = logging.getLogger()
    if handler in root.handlers:
        root.removeHandler(handler)
    handler.close()


class _ConsoleHandler(logging.Handler):
    """Writes through the console, which prints a log line above the progress bar."""

    def __init__(self, console: Console, *, to_stdout: bool) -> None:
        super().__init__()
        self._console, self._to_stdout = console, to_stdout

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        if self._to_stdout:
            self._console.answer(line)
        else:
            self._console.show(line, redacted=True)


class _FileHandler(logging.StreamHandler[IO[str]]):
    def __init__(self, path: Path) -> None:
        super().__init__(open_private(path))

    def close(self) -> None:
        self.stream.close()
        super().close()


def open_private(path: Path) -> IO[str]:
    """Append to a file, created with mode 0600; a symbolic link in its place is refused."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"the log file cannot be written: {error.strerror}", subject=str(path), remedy="choose another --log-file"
        ) from error
    return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")


_STANDARD = frozenset(logging.makeLogRecord({}).__dict__)
"""Attributes that every record has; others were passed as `extra`."""


class _RedactingFormatter(logging.Formatter):
    """A line of text or of JSON: event, level, logger, extra values, timestamp, exception."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._json = form == "json"

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, Any] = {
            "event": record.getMessage(),
            **({"stack_info": record.stack_info} if record.stack_info else {}),
            "level": record.levelname.lower(),
            "logger": record.name,
            **{name: value for name, value in record.__dict__.items() if name not in _STANDARD},
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
        }
        if record.exc_info and record.exc_info[0]:
            make = self.formatException if self._json else safe_traceback
            event["exception"] = make(record.exc_info)
        if not self._json:
            event = {name: text_to_redact(value) if isinstance(value, str) else value for name, value in event.items()}
        redacted = redact_values(event)
        assert isinstance(redacted, dict)  # noqa: S101  a mapping in is a mapping out
        # A secret that only appears when values are joined is hidden in the finished line. In JSON that could break it.
        return json.dumps(redacted) if self._json else redact(_as_line(redacted))


def _as_line(event: dict[str, Any]) -> str:
    """`2026-11-15T10:30:00Z warning retrying attempt=2 [logkeep.store]`, the traceback below it, indented."""
    moment, level, name, text = (event.pop(field) for field in ("timestamp", "level", "logger", "event"))
    trace = event.pop("exception", "")
    extra = "".join(f" {shown(f'{key}={value}')}" for key, value in sorted(event.items()))
    return f"{moment} {level:<7} {shown(text.strip())}{extra} [{name}]" + (f"\n{trace}" if trace else "")


def safe_traceback(exc_info: BaseException | tuple[Any, ...]) -> str:
    """The traceback, redacted, in indented lines. The text of an exception stays one line, whatever newlines it has."""
    error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    return "\n".join(f"  {one_line(line)}" for line in _traceback_lines(error))


def _traceback_lines(error: BaseException) -> Iterator[str]:
    found = traceback.TracebackException.from_exception(error)
    _join_notes(found)
    for part in found.format():
        if part.startswith("  File "):  # a frame: its lines are source code
            yield from part.rstrip("\n").split("\n")
        else:
            yield part.strip("\n")


def _join_notes(found: traceback.TracebackException | None) -> None:
    """Notes become one line each; Python would print every line of a note as a line of its own."""
    while found is not None:
        found.__notes__ = [one_line(str(note)) for note in found.__notes__ or ()]
        found = found.__cause__ or found.__context__
